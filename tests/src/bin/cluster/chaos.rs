//! One node killed, one frozen and thawed, the database killed and started again, under load.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use carillon_tests::cluster::{Cluster, Life, Member, Witness, check};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use carillon_tests::settings::Settings;

use crate::settings::{any_server, create, database, members, settle, timing, wait_for};

/// Something that happens to a node, and the jobs that it held then.
struct Blow {
    what: String,
    at_us: u64,
    jobs: BTreeSet<String>,
}

pub fn run(settings: &Settings) -> bool {
    let (jobs, seconds) = (settings.number("jobs", 300), settings.number("seconds", 180));
    // As in the scenario of 180 seconds.
    let at = |second: u64| Duration::from_secs(second * seconds / 180);
    let (server, database) = database(settings);
    let cluster = Cluster::new(&database.url(), timing(settings));
    let witness = Witness::new(cluster.dir());
    let nodes = members(&cluster, settings.number("nodes", 3));
    let name = |n: u64| format!("job-{n}");
    let began = Instant::now();
    create(&nodes, jobs, |n| {
        // Every tenth takes longer than its period: it has overlaps to be skipped.
        let command = if n % 10 == 0 { witness.command(3, "0.45") } else { witness.command(1, "0.05") };
        json!({"name": name(n), "schedule": "@every 1s", "params": {"command": command},
               "misfire": {"policy": "fire_once", "grace": "30s"}})
    });

    wait_for(began, at(60));
    let killed = blow("SIGKILL", &nodes[0], &witness);
    nodes[0].signal(Signal::SIGKILL);
    wait_for(began, at(100));
    let frozen = blow("SIGSTOP", &nodes[1], &witness);
    let frozen_server = nodes[1].server().expect("the node runs");
    frozen_server.signal(Signal::SIGSTOP);
    wait_for(began, at(130));
    println!("{:>4} s: the database is killed", began.elapsed().as_secs());
    server.kill();
    let away = Instant::now();
    server.start_again();
    println!("{:>4} s: the database answers again after {} ms", began.elapsed().as_secs(), away.elapsed().as_millis());
    wait_for(began, at(150));
    println!("{:>4} s: {} is thawed", began.elapsed().as_secs(), nodes[1].name());
    frozen_server.signal(Signal::SIGCONT);
    drop(frozen_server);
    wait_for(began, at(180));

    let records = settle(&nodes, jobs, name);
    let lives = witness.lives();
    let verdict = check(&lives, &records, 1_000);
    println!(
        "\n{jobs} jobs each second for {seconds} s on {} nodes, timing {}",
        nodes.len(),
        settings.text("timing", "default")
    );
    print!("{verdict}");
    for blow in [&killed, &frozen] {
        takeover(blow, &lives);
    }
    per_node(&records);
    let mut logs = 0;
    for node in nodes {
        let (name, ends) = (node.name().to_owned(), node.ends());
        let log = node.server().map(|server| server.log()).unwrap_or_default();
        logs += ["panicked", "an invariant does not hold"].into_iter().filter(|bad| log.contains(bad)).count();
        let last = node.drain();
        println!("{name}: ended {:?}, at last {last}", ends.into_iter().map(|(_, how)| how).collect::<Vec<_>>());
    }
    println!("panics and broken invariants in the logs: {logs}");
    verdict.is_clean() && logs == 0
}

/// Notes which jobs the node has been running of late.
fn blow(what: &str, node: &Member, witness: &Witness) -> Blow {
    let of_node: Vec<Value> = any_server(std::slice::from_ref(node)).get("/v1/runs?limit=1000")["items"]
        .as_array()
        .expect("a listing has items")
        .clone();
    let mine = of_node.iter().filter(|run| run["node"] == node.name());
    let jobs = mine.filter_map(|run| run["job"].as_str()).map(str::to_owned).collect();
    let at_us = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_micros();
    println!("{} gets {what}; {} lines so far", node.name(), witness.len());
    Blow { what: format!("{} of {}", what, node.name()), at_us: u64::try_from(at_us).unwrap_or(0), jobs }
}

/// A job that starts sooner after the blow was on its way already, or not with that node any more.
const ON_ITS_WAY_MS: u64 = 2_000;

/// From the blow to the first start of each job that the node had and that had to wait for others.
fn takeover(blow: &Blow, lives: &[Life]) {
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    for life in lives.iter().filter(|life| life.first_us > blow.at_us && blow.jobs.contains(&life.job)) {
        let wait_ms = (life.first_us - blow.at_us) / 1_000;
        let seen = first.entry(&life.job).or_insert(u64::MAX);
        // What was started while the blow fell is no takeover.
        *seen = (*seen).min(if wait_ms < 500 { u64::MAX } else { wait_ms });
    }
    let mut waits: Vec<u64> = first.into_values().filter(|wait| *wait > ON_ITS_WAY_MS).collect();
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len().saturating_sub(1) * share / 100).copied().unwrap_or(0);
    println!(
        "{}: {} jobs were taken over: p50 {} ms, p99 {} ms, the last after {} ms",
        blow.what,
        waits.len(),
        at(50),
        at(99),
        at(100)
    );
}

fn per_node(records: &[Value]) {
    let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
    for node in records.iter().filter_map(|run| run["node"].as_str()) {
        *runs.entry(node).or_default() += 1;
    }
    println!("runs by node: {runs:?}");
}
