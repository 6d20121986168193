//! Shared by the scenarios: a database, nodes, jobs.

use std::time::{Duration, Instant};

use carillon_tests::cluster::{Cluster, FAST, Member};
use carillon_tests::databases::{Brand, Database, Server};
use carillon_tests::settings::Settings;
use serde_json::{Value, json};

/// `[session]` for each node.
pub fn timing(settings: &Settings) -> &'static str {
    match settings.text("timing", "default") {
        "fast" => FAST,
        _ => "",
    }
}

/// A durable server of the scenario's own and a database in it. MySQL writes a binary log by itself.
pub fn database(settings: &Settings) -> (Server, Database) {
    let server = match settings.text("database", "mariadb") {
        "mysql" => Server::start(Brand::MySql, &[]),
        _ => Server::start(Brand::MariaDb, &["--log-bin", "--binlog-format=ROW", "--sync-binlog=1"]),
    };
    let database = blocking(server.database());
    (server, database)
}

/// Runs one future to its end.
pub fn blocking<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// `node-1`, `node-2`, ...
pub fn members(cluster: &Cluster, count: u64) -> Vec<Member> {
    (1..=count).map(|n| cluster.member(&format!("node-{n}"))).collect()
}

/// Any server that runs.
pub fn any_server(members: &[Member]) -> std::sync::Arc<carillon_tests::server::Server> {
    loop {
        let found = members.iter().filter_map(Member::server).find(|server| server.is_ready());
        if let Some(server) = found {
            return server;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Creates `count` jobs in batches; `item` makes each.
pub fn create(members: &[Member], count: u64, item: impl Fn(u64) -> Value) {
    let items: Vec<Value> = (0..count).map(item).collect();
    for part in items.chunks(1_000) {
        any_server(members).post("/v1/jobs:batch", &json!({ "items": part }));
    }
}

/// Waits until the moment `after` the beginning.
pub fn wait_for(began: Instant, after: Duration) {
    loop {
        let left = (began + after).saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

/// Pauses every job, waits until nothing lives, and answers all records.
pub fn settle(members: &[Member], count: u64, name: impl Fn(u64) -> String) -> Vec<Value> {
    let server = any_server(members);
    for n in 0..count {
        server.post(&format!("/v1/jobs/{}/pause", name(n)), &json!({}));
    }
    carillon_tests::waiting::wait_until_within(Duration::from_secs(90), "the last runs end", || {
        server.all("/v1/runs?status=running").is_empty()
    });
    server.all("/v1/runs")
}
