//! Readers of events: whatever node they read from, and however many they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::Duration;

use carillon_tests::cluster::{Cluster, PATIENT, STEADY};
use carillon_tests::databases::{self, StatementCount};
use carillon_tests::events::{Event, EventReader, hold_readers};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::processes::resident_kib;
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// A name of a run's end among the events.
fn end_of(record: &Value) -> String {
    let step = if status(record) == "skipped" { "skipped" } else { "ended" };
    format!("run:{}:{step}", text(record, "id"))
}

/// Every event once, in the order in which it came first.
fn once(events: &[Event]) -> Vec<&Event> {
    let mut seen = BTreeSet::new();
    events.iter().filter(|event| seen.insert(event.key())).collect()
}

/// Each job's runs are told by ascending due times, each as started before it is told as ended.
fn check_order(events: &[&Event]) {
    let mut due: BTreeMap<&str, &str> = BTreeMap::new();
    let mut started = BTreeSet::new();
    for event in events {
        let run = &event.data["run"];
        match event.name.as_str() {
            "run.started" => _ = started.insert(text(run, "id")),
            "run.ended" | "run.skipped" => {
                let last = due.insert(text(&event.data, "job"), text(run, "due_at"));
                assert!(last.is_none_or(|last| last < text(run, "due_at")), "{last:?} was told before {run}");
                let ran = run["started_at"].is_string();
                assert!(!ran || started.contains(text(run, "id")), "it was never told as started: {run}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_reader_whose_node_dies_resumes_at_another_one_and_misses_nothing() {
    let cluster = Cluster::new(&super::database().url(), STEADY);
    let [a, b] = ["a", "b"].map(|name| cluster.node(name));
    let mut reader = EventReader::connect(&a, "", None);
    let names = super::each_second(&b, 20, "sleep 0.1", &json!({}));
    let mut events = Vec::new();
    while events.iter().filter(|event: &&Event| event.name == "run.ended").count() < 40 {
        events.push(reader.next(PATIENCE).expect("runs end"));
    }
    a.kill();
    while let Some(event) = reader.next(PATIENCE) {
        events.push(event);
    }
    let before = events.len();
    // Events that nobody reads now are told to readers that come back.
    wait_until("runs of the dead node are recorded as lost, or it held none", || {
        super::sessions(&b).iter().all(|session| text(session, "node") == "b")
    });
    let mut reader = EventReader::connect(&b, "", Some(&reader.last_id));
    let history = super::settled(&b, &names);
    let mut missing: BTreeSet<String> = history.iter().map(end_of).collect();
    assert!(missing.len() > 100, "{} records", missing.len());
    events.iter().for_each(|event| _ = missing.remove(&event.key()));
    while !missing.is_empty() {
        let event = reader.next(PATIENCE).unwrap_or_else(|| panic!("never told: {missing:?}"));
        assert!(!matches!(event.name.as_str(), "reset" | "cut"), "{event:?}");
        missing.remove(&event.key());
        events.push(event);
    }
    let told = once(&events);
    check_order(&told);
    let ends = told.iter().filter(|event| matches!(event.name.as_str(), "run.ended" | "run.skipped")).count();
    assert_eq!(ends, history.len(), "nothing is told that is not in the history");
    assert!(told.iter().any(|event| event.name == "session.changed"), "the dead node's session");
    eprintln!("{before} events from one node, {} from the other, {} different", events.len() - before, told.len());
}

#[test]
fn a_change_of_a_job_at_one_node_is_told_at_another() {
    let cluster = Cluster::new(&super::database().url(), PATIENT);
    let [a, b] = ["a", "b"].map(|name| cluster.node(name));
    let mut reader = EventReader::connect(&a, "?types=job.changed,run.ended", None);
    b.create(&job("told", NEVER, "true", json!({})));
    assert_eq!(status(&b.ended(&b.run_now("told"))), "succeeded");
    let (code, _) = b.call("PUT", "/v1/jobs/told", Some(&job("told", NEVER, "false", json!({}))));
    assert_eq!(code, 200);
    let mut told: Vec<Event> = Vec::new();
    while told.len() < 3 {
        told.push(reader.next(PATIENCE).expect("the change is told"));
    }
    let names = told.iter().map(|event| event.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["job.changed", "run.ended", "job.changed"]);
    let (_, log) = b.call("GET", "/v1/audit?job=told", None);
    let entry = log["items"].as_array().expect("a page").iter().find(|entry| entry["action"] == "job.updated");
    let entry = entry.expect("the put is in the audit log");
    let expected = json!({
        "type": "job.changed",
        "key": told[2].key(),
        "at": entry["at"],
        "namespace": "default",
        "job": {"name": "told", "generation": 2},
        "action": "job.updated",
        "who": entry["who"],
    });
    assert_eq!(told[2].data, expected);
    assert_eq!(told[0].data["action"], "job.created");
    // Who comes back with the mark of the first one gets the second one, at the other node.
    let mut again = EventReader::connect(&b, "?types=job.changed", Some(&told[0].id));
    assert_eq!(again.next(PATIENCE).expect("it was missed").key(), told[2].key());
}

fn looks(server: &Server) -> u64 {
    let (_, _, metrics) = server.call_raw("GET", "/metrics", &[], None);
    let line = metrics.lines().find_map(|line| line.strip_prefix("carillon_event_looks_total "));
    line.expect("looks are counted").parse().expect("a number")
}

#[test]
fn a_thousand_readers_cost_the_database_what_one_does() {
    // Questions are counted for the whole server.
    let server = databases::Server::start(crate::BRAND, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    let cluster = Cluster::new(&database.url(), PATIENT);
    let node = cluster.node("a");
    node.create(&job("a", NEVER, "true", json!({})));
    let mut count = StatementCount::on(&server);
    // So many statements for as many looks of the feed: the fewest of several tries. The node's other work comes by the clock, and a node that
    // is short of CPU looks more rarely meanwhile.
    let mut cost = |most: u64| {
        let tries = (0..3).map(|_| {
            let (begun, asked) = (looks(&node), count.now());
            wait_until("the feed looks", || looks(&node) >= begun + most);
            let looked = looks(&node) - begun;
            (count.now() - asked) as f64 / looked as f64
        });
        tries.fold(f64::INFINITY, f64::min)
    };
    let first = hold_readers(&node, "", 1);
    let one = cost(8);
    let before_kib = resident_kib(node.pid());
    let mut readers = hold_readers(&node, "", 999);
    let thousand = cost(8);
    let kib = resident_kib(node.pid()).saturating_sub(before_kib) / 999;
    eprintln!("{one:.1} statements a look for one reader, {thousand:.1} for a thousand; {kib} KiB a reader");
    assert!(thousand < one * 1.3 + 2.0, "{one} statements a look for one reader, {thousand} for a thousand");
    assert!(kib <= 64, "{kib} KiB a reader");
    readers.extend(first);
    assert_eq!(status(&node.ended(&node.run_now("a"))), "succeeded");
    for mut reader in readers {
        let (mut told, mut piece) = (String::new(), [0; 4096]);
        while !told.contains("event: run.ended") {
            let length = reader.read(&mut piece).expect("each reader is told");
            assert!(length > 0, "the stream ended: {told}");
            told.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    }
}
