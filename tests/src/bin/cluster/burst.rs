//! Many jobs that come due in the same second.

use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_tests::cluster::Cluster;
use carillon_tests::server::wait_until_within;
use serde_json::{Value, json};

use carillon_tests::settings::Settings;

use crate::settings::{Idle, any_server, create, database, members};

pub fn run(settings: &Settings) -> bool {
    let (jobs, rounds) = (settings.number("jobs", 1_000), settings.number("rounds", 5));
    let (_server, database) = database(settings);
    let idle = Idle::of(settings);
    let cluster = Cluster::new(&database.url(), &idle.config);
    let nodes = members(&cluster, settings.number("nodes", 1));
    for round in 0..rounds {
        let name = format!("round-{round}");
        let server = any_server(&nodes);
        let now =
            server.post("/v1/schedules/explain", &json!({"schedule": "* * * * * *", "count": 1}))["next"][0].clone();
        let now = Timestamp::parse_rfc3339(now.as_str().expect("a time")).expect("a time");
        let due = (now + Duration::from_secs(10)).to_rfc3339_short();
        create(&nodes, jobs, |n| idle.job(&format!("{name}-{n}"), &format!("@at {due}")));
        let mut runs: Vec<Value> = Vec::new();
        wait_until_within(Duration::from_secs(60), "all have run", || {
            std::thread::park_timeout(Duration::from_millis(500));
            runs = server.all("/v1/runs?status=succeeded");
            runs.retain(|run| run["job"].as_str().is_some_and(|job| job.starts_with(&format!("{name}-"))));
            runs.len() as u64 == jobs
        });
        let mut lags: Vec<i64> = runs.iter().filter_map(|run| run["lag_ms"].as_i64()).collect();
        lags.sort_unstable();
        let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize];
        println!(
            "{jobs} due at {due}: lag p50 {} ms, p99 {} ms, p99.9 {} ms, most {} ms",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
    true
}
