//! A fourth node joins three.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use carillon_tests::cluster::{Cluster, Member};
use carillon_tests::waiting::wait_until;
use serde_json::json;

use carillon_tests::settings::Settings;

use crate::settings::{any_server, create, database, members, settle, timing, wait_for};

type Shares = BTreeMap<String, Vec<u64>>;

pub fn run(settings: &Settings) -> bool {
    let jobs = settings.number("jobs", 300);
    let (_server, database) = database(settings);
    let cluster = Cluster::new(&database.url(), timing(settings));
    let mut nodes = members(&cluster, settings.number("nodes", 3));
    create(
        &nodes,
        jobs,
        |n| json!({"name": format!("job-{n}"), "schedule": "@every 1s", "params": {"command": "true"}}),
    );
    wait_until("three share all", || whole(&shares(&nodes), nodes.len()));
    let before = shares(&nodes);
    wait_for(Instant::now(), Duration::from_secs(20));
    let joined_at = any_server(&nodes).get("/v1/cluster");
    println!("before: {}", counts(&before));
    let began = Instant::now();
    nodes.push(cluster.member("node-4"));
    wait_until("four share all", || whole(&shares(&nodes), nodes.len()));
    println!("the fourth had its share {} ms after its start", began.elapsed().as_millis());
    let after = shares(&nodes);
    println!("after:  {}", counts(&after));
    let moved = after.get("node-4").map_or(0, Vec::len);
    let others = after.iter().filter(|(node, _)| *node != "node-4");
    let gained: usize = others.map(|(node, share)| share.iter().filter(|p| !before[node].contains(p)).count()).sum();
    println!("{moved} partitions moved to it; {gained} moved among the others");
    wait_for(began, Duration::from_secs(40));
    let all = settle(&nodes, jobs, |n| format!("job-{n}"));
    let joined = joined_at["items"].as_array().map_or(0, Vec::len);
    println!("{joined} sessions before; runs by second after the join, by node:");
    by_second(&all, "node-4");
    true
}

fn shares(nodes: &[Member]) -> Shares {
    let mut shares = Shares::new();
    // Each node tells what it holds itself.
    for node in nodes {
        let Some(server) = node.server() else { continue };
        let sessions = server.get("/v1/cluster")["items"].as_array().cloned().unwrap_or_default();
        let live = sessions.iter().filter(|session| session["state"] == "live").count();
        let mine = sessions.iter().find(|session| session["node"] == node.name());
        let held = mine.and_then(|session| session["partitions"].as_array().cloned()).unwrap_or_default();
        if live == nodes.len() {
            shares.insert(node.name().to_owned(), held.iter().filter_map(serde_json::Value::as_u64).collect());
        }
    }
    shares
}

/// Whether all nodes agree: each partition is held, and by one.
fn whole(shares: &Shares, nodes: usize) -> bool {
    let mut all: Vec<u64> = shares.values().flatten().copied().collect();
    all.sort_unstable();
    shares.len() == nodes && all == (0..16).collect::<Vec<u64>>()
}

fn counts(shares: &Shares) -> String {
    shares.iter().map(|(node, share)| format!("{node} {}", share.len())).collect::<Vec<_>>().join(", ")
}

/// The share of each node's runs, in stretches of five seconds around the first run of the newcomer.
fn by_second(records: &[serde_json::Value], newcomer: &str) {
    let at = |run: &serde_json::Value| {
        let started = run["started_at"].as_str().and_then(carillon_domain::time::Timestamp::parse_rfc3339)?;
        Some(started.as_ms())
    };
    let first = records.iter().filter(|run| run["node"] == newcomer).filter_map(at).min().unwrap_or(0);
    let mut stretches: BTreeMap<i64, BTreeMap<String, u64>> = BTreeMap::new();
    for run in records {
        let (Some(started), Some(node)) = (at(run), run["node"].as_str()) else { continue };
        let stretch = (started - first).div_euclid(5_000) * 5;
        *stretches.entry(stretch).or_default().entry(node.to_owned()).or_default() += 1;
    }
    for (second, runs) in stretches.range(-10..=30) {
        println!("{second:>4} s: {runs:?}");
    }
}
