//! A figure, not a test: spawns of `true` a second through the keeper, beside std's own. Run it with
//! `cargo test --release -p carillon-adapters --test keeper -- --ignored`.

use std::process::{Command, Stdio};
use std::time::Instant;

use carillon_adapters::executor::Ended;

use crate::support::*;
use crate::tests;

tests![; ignored spawns_a_second];

const RUNS: usize = 10_000;

fn spawns_a_second() {
    let raw_1 = raw(1);
    let raw_2 = raw(2);
    println!("std::process, one thread: {raw_1:.0} spawns/s; two threads: {raw_2:.0} spawns/s");
    for cgroups in BOTH {
        for in_flight in [2, 8, 64] {
            let rate = through_the_keeper(cgroups, in_flight);
            let share = 100.0 * rate / raw_2.max(raw_1);
            println!("keeper, cgroups {cgroups}, {in_flight} in flight: {rate:.0} spawns/s, {share:.0} % of raw");
        }
    }
}

/// Spawn and wait with pipes for output, as the keeper does it.
fn raw(threads: usize) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..RUNS / threads {
                    let mut command = Command::new("/bin/true");
                    assert!(command.stdin(Stdio::null()).stdout(Stdio::piped()).output().unwrap().status.success());
                }
            });
        }
    });
    RUNS as f64 / began.elapsed().as_secs_f64()
}

fn through_the_keeper(cgroups: bool, in_flight: usize) -> f64 {
    run(async {
        let keeper = keeper(cgroups);
        let began = Instant::now();
        let workers: Vec<_> = (0..in_flight)
            .map(|_| {
                let keeper = keeper.clone();
                tokio::spawn(async move {
                    for _ in 0..RUNS / in_flight {
                        assert_eq!(finish(&keeper, argv(["/bin/true"])).await.how, Ended::Succeeded);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        RUNS as f64 / began.elapsed().as_secs_f64()
    })
}
