//! The cost of a load: CPU of the nodes and of the database apart, statements that the database counts, memory.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use carillon_tests::processes::{children, cpu_seconds, resident_kib};
use mysql_async::prelude::Queryable;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::site::Site;

/// How the counters of the database are called, and how they are shown.
const COUNTERS: [(&str, &str); 4] = [
    ("Questions", "statements"),
    ("Com_commit", "commits"),
    ("Innodb_row_lock_waits", "row lock waits"),
    ("Innodb_row_lock_time", "row lock wait ms"),
];

/// Runs while a load is measured.
pub struct Meter<'a> {
    lab: &'a Lab,
    nodes: Vec<i32>,
    before: Reading,
}

/// Counters at one moment.
struct Reading {
    at: Instant,
    database_cpu: f64,
    nodes_cpu: BTreeMap<i32, f64>,
    counters: BTreeMap<String, u64>,
    firings: u64,
}

/// The cost of so many firings.
#[derive(Debug, Clone)]
pub struct Cost {
    /// How many there were.
    pub firings: u64,
    /// For how long, in seconds.
    pub seconds: f64,
    nodes_cpu: f64,
    database_cpu: f64,
    counters: BTreeMap<String, u64>,
    resident_mib: f64,
}

impl<'a> Meter<'a> {
    /// Begins to measure what a site does.
    pub fn start(lab: &'a Lab, site: &Site<'_>) -> Self {
        let nodes = site.pids();
        let before = reading(lab, &nodes, site);
        Self { lab, nodes, before }
    }

    /// The cost since.
    pub fn stop(self, site: &Site<'_>) -> Cost {
        let after = reading(self.lab, &self.nodes, site);
        let spent = |pid: &i32, now: &f64| now - self.before.nodes_cpu.get(pid).copied().unwrap_or(0.0);
        let counters = after
            .counters
            .iter()
            .map(|(name, now)| (name.clone(), now - self.before.counters.get(name).copied().unwrap_or(0)));
        Cost {
            firings: after.firings - self.before.firings,
            seconds: (after.at - self.before.at).as_secs_f64(),
            nodes_cpu: after.nodes_cpu.iter().map(|(pid, now)| spent(pid, now)).sum(),
            database_cpu: after.database_cpu - self.before.database_cpu,
            counters: counters.collect(),
            resident_mib: self.nodes.iter().map(|pid| resident_kib(*pid)).sum::<u64>() as f64 / 1_024.0,
        }
    }
}

impl Cost {
    /// Firings a second.
    pub fn rate(&self) -> f64 {
        self.firings as f64 / self.seconds
    }

    /// Statements for each 1,000 firings.
    pub fn statements(&self) -> f64 {
        self.of_thousand(self.counters.get("Questions").copied().unwrap_or(0) as f64)
    }

    /// CPU of the nodes for each 1,000 firings, in ms.
    pub fn nodes_cpu_ms(&self) -> f64 {
        self.of_thousand(self.nodes_cpu * 1_000.0)
    }

    /// CPU of the database for each 1,000 firings, in ms.
    pub fn database_cpu_ms(&self) -> f64 {
        self.of_thousand(self.database_cpu * 1_000.0)
    }

    fn of_thousand(&self, amount: f64) -> f64 {
        amount * 1_000.0 / self.firings.max(1) as f64
    }

    /// As the report keeps it.
    pub fn json(&self, load: &str) -> Value {
        let mut value = json!({
            "load": load,
            "firings": self.firings,
            "firings a second": self.rate(),
            "CPU ms of the nodes": self.nodes_cpu_ms(),
            "CPU ms of the database": self.database_cpu_ms(),
            "resident MiB": self.resident_mib,
        });
        for (counter, shown) in COUNTERS {
            value[shown] = self.of_thousand(self.counters.get(counter).copied().unwrap_or(0) as f64).into();
        }
        value
    }
}

fn reading(lab: &Lab, nodes: &[i32], site: &Site<'_>) -> Reading {
    let (at, firings) = (Instant::now(), site.finished());
    let names = COUNTERS.map(|(name, _)| format!("'{name}'")).join(", ");
    let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({names})");
    let rows: Vec<(String, u64)> =
        lab.block(async { lab.server.root().await.query(sql).await.expect("the server counts") });
    let nodes_cpu = nodes.iter().flat_map(|node| family(*node)).map(|pid| (pid, cpu_seconds(pid))).collect();
    let counters = rows.into_iter().collect();
    Reading { at, database_cpu: cpu_seconds(lab.server.pid()), nodes_cpu, counters, firings }
}

/// A node with its keeper and its plugin hosts, without the commands that it runs.
fn family(node: i32) -> Vec<i32> {
    let mut found = vec![node];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let is_ours =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("carillon"));
        found.extend(children(parent).into_iter().filter(is_ours));
        next += 1;
    }
    found
}
