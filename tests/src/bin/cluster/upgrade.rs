//! A rolling upgrade: for a while an older binary and the current one run side by side on one schema.

use std::path::Path;
use std::time::{Duration, Instant};

use carillon_checker::judge;
use carillon_tests::cluster::{Cluster, Witness};
use carillon_tests::server::{Server, binary};
use serde_json::{Value, json};

use carillon_tests::settings::Settings;

use crate::settings::{database, timing, wait_for};

/// How long each mix of binaries runs.
const STAY: Duration = Duration::from_secs(15);

pub fn run(settings: &Settings) -> bool {
    let jobs = settings.number("jobs", 100);
    let older = Path::new(settings.text("older", ""));
    assert!(older.is_file(), "older=PATH names the older binary");
    let (_server, database) = database(settings);
    let cluster = Cluster::new(&database.url(), timing(settings));
    let witness = Witness::new(cluster.dir());
    let names = ["node-1", "node-2", "node-3"];
    let mut nodes: Vec<Server> = names.iter().map(|name| cluster.node_of(older, name)).collect();
    let items: Vec<Value> = (0..jobs)
        .map(|n| {
            json!({"name": format!("job-{n}"), "schedule": "@every 1s", "params": {"command": witness.command(1, 50, "0")},
                   "misfire": {"policy": "skip", "grace": "5s"}})
        })
        .collect();
    nodes[0].post("/v1/jobs:batch", &json!({ "items": items }));
    for name in names {
        wait_for(Instant::now(), STAY);
        let now = nodes[0].post("/v1/schedules/explain", &json!({"schedule": "* * * * * *", "count": 1}));
        println!("{name} goes before {}, {} starts so far", now["next"][0], witness.lives().len());
        let status = nodes.remove(0).drain();
        println!("    drained: {status}; the current binary takes its place");
        nodes.push(cluster.node_of(&binary(), name));
    }
    wait_for(Instant::now(), STAY);
    let names: Vec<String> = (0..jobs).map(|n| format!("job-{n}")).collect();
    let records = nodes[0].settle(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let verdict = judge(&witness.evidence(&records));
    print!("{verdict}");
    for run in records.iter().filter(|run| run["status"] == "skipped").take(5) {
        println!("    skipped: {} {} to {}", run["job"], run["first_due_at"], run["due_at"]);
    }
    let logs: String = nodes.iter().map(Server::log).collect();
    let bad = ["panicked", "an invariant does not hold"].into_iter().filter(|bad| logs.contains(bad)).count();
    println!("panics and broken invariants in the logs: {bad}");
    let skipped = verdict.fates.keys().any(|fate| fate.starts_with("skipped"));
    verdict.is_clean() && !skipped && bad == 0
}
