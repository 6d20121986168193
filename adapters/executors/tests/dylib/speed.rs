//! A figure, not a test: runs of `noop` a second through a host process and in the server's own, beside `true` through the keeper. Run it with
//! `cargo test --release -p carillon-executors --test dylib -- --ignored`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use carillon_executors::executor::{Isolation, Outcome};
use carillon_keeper::KeeperHandle;
use serde_json::json;

use crate::fixtures::*;
use crate::support::*;
use crate::tests;

tests![; ignored runs_a_second];

const SPAWNS: usize = 3_000;
const RUNS: usize = 100_000;

fn runs_a_second() {
    for in_flight in [1, 8, 64] {
        let spawns = rate(SPAWNS, in_flight, |keeper| async move {
            assert_eq!(finish(&keeper, argv(["/bin/true"])).await.how, Outcome::Succeeded);
        });
        let of_noop = |isolation| {
            let noop = Arc::new(OnceLock::new());
            rate(RUNS, in_flight, move |keeper| {
                let noop = noop.clone();
                async move {
                    let noop = noop.get_or_init(|| crate::fixtures::noop(&keeper, isolation));
                    assert_eq!(run_to_end(noop, facts(json!({}))).await.how, Outcome::Succeeded);
                }
            })
        };
        let (hosted, in_process) = (of_noop(Isolation::Process), of_noop(Isolation::InProcess));
        println!(
            "{in_flight} in flight: {hosted:.0} runs/s of noop in a host, {in_process:.0} in process, \
             {spawns:.0} spawns/s of true"
        );
    }
}

/// How often a second `once` is done, after a first time that does not count.
fn rate<F>(runs: usize, in_flight: usize, once: impl Fn(KeeperHandle) -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    run(async {
        let keeper = keeper(true);
        once(keeper.clone()).await;
        let began = Instant::now();
        let workers: Vec<_> = (0..in_flight)
            .map(|_| {
                let (keeper, once) = (keeper.clone(), once.clone());
                tokio::spawn(async move {
                    for _ in 0..runs / in_flight {
                        once(keeper.clone()).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        runs as f64 / began.elapsed().as_secs_f64()
    })
}
