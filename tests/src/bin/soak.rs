//! Many `@every 1s` jobs on one SQLite server, with or without `kill -9` in the middle, and what became of every firing.
//!
//! `cargo run --release -p carillon-tests --bin soak -- [jobs] [seconds] [kill-after-seconds] [command]`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use carillon_tests::accounting::account;
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use serde_json::json;

fn main() -> ExitCode {
    let argument = |n: usize| std::env::args().nth(n).and_then(|text| text.parse::<u64>().ok());
    let (jobs, seconds, kill_after) = (argument(1).unwrap_or(200), argument(2).unwrap_or(60), argument(3));
    let command = std::env::args().nth(4).unwrap_or_else(|| "true".to_owned());
    let dir = tempfile::tempdir().expect("a directory for the database");
    let server = Server::start(dir.path(), &[]);
    let items: Vec<_> = (0..jobs)
        .map(|n| {
            json!({"name": format!("every-second-{n}"), "schedule": "@every 1s", "params": {"command": command},
                   "misfire": {"policy": "fire_once", "grace": "30s"}})
        })
        .collect();
    let began = Instant::now();
    server.post("/v1/jobs:batch", &json!({ "items": items }));
    let until = |after: u64| (began + Duration::from_secs(after)).saturating_duration_since(Instant::now());
    let server = match kill_after {
        None => server,
        Some(after) => {
            std::thread::park_timeout(until(after));
            server.kill();
            let killed = Instant::now();
            let server = Server::start(dir.path(), &[]);
            println!("killed with SIGKILL at {after} s; scheduling again {} ms later", killed.elapsed().as_millis());
            server
        }
    };
    while !until(seconds).is_zero() {
        std::thread::park_timeout(until(seconds));
    }
    for n in 0..jobs {
        server.post(&format!("/v1/jobs/every-second-{n}/pause"), &json!({}));
    }
    wait_until("the last runs end", || server.all("/v1/runs?status=running").is_empty());
    let account = account(&server.all("/v1/runs"), 1_000);
    println!("{jobs} jobs for {seconds} s: {} due times accounted for", account.due);
    println!("runs: {:?}; skipped: {:?}", account.runs, account.skipped);
    println!("lag p50 {:?} ms, p99 {:?} ms", account.lag_ms(0.5), account.lag_ms(0.99));
    println!("duplicates {}, silent misses {}", account.duplicates.len(), account.silent_misses.len());
    let clean = account.duplicates.is_empty() && account.silent_misses.is_empty();
    println!("{}", server.drain());
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
