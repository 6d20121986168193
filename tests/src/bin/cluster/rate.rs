//! How many statements the database counts for each 1,000 firings.

use std::time::{Duration, Instant};

use carillon_tests::cluster::Cluster;
use carillon_tests::settings::Settings;
use mysql_async::prelude::Queryable;

use crate::settings::{Idle, blocking, create, database, members, settle, wait_for};

/// What is measured after things have settled.
const WARM: Duration = Duration::from_secs(10);

pub fn run(settings: &Settings) -> bool {
    let (jobs, seconds) = (settings.number("jobs", 100), settings.number("seconds", 30));
    let (server, database) = database(settings);
    let idle = Idle::of(settings);
    let cluster = Cluster::new(&database.url(), &idle.config);
    let nodes = members(&cluster, settings.number("nodes", 1));
    let began = Instant::now();
    create(&nodes, jobs, |n| idle.job(&format!("job-{n}"), "@every 1s"));
    wait_for(began, WARM);
    let count = || {
        blocking(async {
            let mut root = server.root().await;
            let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Com_commit', 'Innodb_row_lock_waits')";
            let rows: Vec<(String, u64)> = root.query(sql).await.expect("the server counts");
            rows.into_iter().collect::<std::collections::BTreeMap<_, _>>()
        })
    };
    let started = || -> u64 {
        let of_node = |node: &carillon_tests::cluster::Member| {
            let text = node.server().expect("the node runs").call_raw("GET", "/metrics", &[], None).2;
            let line = text.lines().find_map(|line| line.strip_prefix("carillon_runs_started_total "))?;
            line.parse::<u64>().ok()
        };
        nodes.iter().filter_map(of_node).sum()
    };
    let (before, firings) = (count(), started());
    let measured = Instant::now();
    wait_for(measured, Duration::from_secs(seconds));
    let (after, firings, took) = (count(), started() - firings, measured.elapsed());
    println!("{} firings in {:.1} s: {:.0} a second", firings, took.as_secs_f64(), firings as f64 / took.as_secs_f64());
    for (name, value) in &after {
        let of_thousand = (value - before[name]) as f64 * 1_000.0 / firings.max(1) as f64;
        println!("{name}: {of_thousand:.0} for each 1,000 firings");
    }
    let records = settle(&nodes, jobs, |n| format!("job-{n}"));
    let account = carillon_tests::accounting::account(&records, 1_000);
    println!("runs {:?}, skipped {:?}", account.runs, account.skipped);
    println!("lag p50 {:?} ms, p99 {:?} ms", account.lag_ms(0.5), account.lag_ms(0.99));
    account.duplicates.is_empty() && account.silent_misses.is_empty()
}
