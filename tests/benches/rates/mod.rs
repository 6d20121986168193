//! What is measured of every store: creates, and firings through all three transitions, in batches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_adapters::store::{ClaimRequest, Finished, ManualClock, Me, Output, PutIf, PutJob, Store};
use carillon_domain::id::RunId;
use carillon_domain::node::port::{FinishRequest, StartAnswer};
use carillon_domain::run::Status;
use carillon_tests::conformance::Bench;
use carillon_tests::conformance::bench::{at, ending, job, refs};
use carillon_tests::databases::Server;
use mysql_async::prelude::Queryable;

/// How many partitions the store is to be made with.
pub const PARTITIONS: u16 = 4;

/// Prints the rates of an empty store that shows the time of `clock`.
pub async fn print(store: Arc<dyn Store>, clock: ManualClock, server: Option<&Server>) {
    let bench = Bench::new(store.clone(), clock.clone()).await;

    let jobs = 100_000;
    report("batch creates (1,000 a transaction)", jobs, async {
        for batch in 0..jobs / 1000 {
            let put = |n| PutJob { job: job(&format!("j{n}")), paused: None, when: PutIf::Any };
            let puts: Vec<_> = (batch * 1000..batch * 1000 + 1000).map(put).collect();
            store.put_jobs(&puts).await.expect("created");
        }
    })
    .await;
    report("durable creates, 64 callers", 6_400, async {
        let callers = (0..64).map(|caller| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    let put = PutJob { job: job(&format!("single-{caller}-{n}")), paused: None, when: PutIf::Any };
                    store.put_jobs(&[put]).await.expect("created");
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("created");
        }
    })
    .await;
    for size in [1, 10, 100, 1000] {
        cycle(&bench, &*store, &clock, size, server).await;
    }
}

async fn report(what: &str, count: usize, work: impl Future<Output = ()>) {
    let begun = Instant::now();
    work.await;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("{what}: {rate:.0}/s");
}

/// CPU seconds of a process.
fn cpu(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let words: Vec<&str> = stat.rsplit(')').next().expect("words").split_whitespace().collect();
    let ticks: u64 = words[11].parse::<u64>().expect("ticks") + words[12].parse::<u64>().expect("ticks");
    ticks as f64 / 100.0
}

/// How many statements the server was asked, this one not counted.
async fn questions(server: Option<&Server>) -> u64 {
    let Some(server) = server else { return 0 };
    let mut root = server.root().await;
    let row: Option<(String, u64)> = root.query_first("SHOW GLOBAL STATUS LIKE 'Questions'").await.expect("a row");
    row.expect("a row").1
}

/// Up to 20,000 firings through all three transitions.
async fn cycle(bench: &Bench, store: &dyn Store, clock: &ManualClock, size: usize, server: Option<&Server>) {
    let (mut claims, mut starts, mut finishes) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let count = (size * 300).min(20_000);
    clock.set(at(0));
    let pid = server.map(|server| server.pid().to_string());
    let spent = || (cpu("self"), pid.as_deref().map_or(0.0, cpu));
    let asked = questions(server).await;
    let before = spent();
    for _ in 0..count / size {
        let runs: Vec<RunId> = (0..size).map(|_| bench.draw()).collect();
        let partitions = (0..PARTITIONS).collect();
        let executors = vec!["shell".to_owned()];
        let request = ClaimRequest { me: Me::new(bench.me), partitions, until: at(10), runs, executors };
        let begun = Instant::now();
        let claimed = store.claim(&request).await.expect("claimed");
        claims += begun.elapsed();
        assert_eq!(claimed.len(), size);
        clock.set(at(10));
        let begun = Instant::now();
        let answers = store.start(Me::new(bench.me), &refs(&claimed)).await.expect("started");
        starts += begun.elapsed();
        let ended: Vec<_> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                StartAnswer::Started { at: running, .. } => Some(Finished {
                    request: FinishRequest { at: running, ending: ending(Status::Succeeded, at(10)) },
                    output: Output { bytes: b"done\n".to_vec(), truncated: false },
                }),
                StartAnswer::Early { .. } | StartAnswer::Moved | StartAnswer::Withheld | StartAnswer::Gone => None,
            })
            .collect();
        assert_eq!(ended.len(), size);
        let begun = Instant::now();
        store.finish(bench.me, &ended).await.expect("finished");
        finishes += begun.elapsed();
        clock.set(at(0));
    }
    let rate = |time: Duration| count as f64 / time.as_secs_f64();
    let after = spent();
    let asked = questions(server).await - asked;
    let per = |seconds: f64| seconds / count as f64 * 1e6;
    let batches = count / size;
    println!(
        "us of CPU a firing: client {:.0}, server {:.0}; statements a cycle {:.1}",
        per(after.0 - before.0),
        per(after.1 - before.1),
        asked as f64 / batches as f64
    );
    println!(
        "batches of {size}: claims {:.0}/s, starts {:.0}/s, finishes {:.0}/s, firings {:.0}/s",
        rate(claims),
        rate(starts),
        rate(finishes),
        rate(claims + starts + finishes)
    );
}
