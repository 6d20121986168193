//! A short soak with a crash in the middle. The children's own files say what started; the server's word comes second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use carillon_tests::accounting::account;
use carillon_tests::fixture::{directory, lines};
use carillon_tests::jobs::{job, status, text};
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use serde_json::json;

const JOBS: usize = 50;
const HALF: Duration = Duration::from_secs(4);

#[test]
fn a_crash_in_the_middle_starts_nothing_twice_and_misses_nothing_silently() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let started = dir.path().join("started");
    let command = format!("echo $CARILLON_JOB $CARILLON_DUE_AT $CARILLON_RUN_ID >> {}; sleep 0.2", started.display());
    let items: Vec<_> = (0..JOBS).map(|n| job(&format!("job-{n}"), "@every 1s", &command, json!({}))).collect();
    server.post("/v1/jobs:batch", &json!({ "items": items }));
    let begun = Instant::now();
    wait_until("the first half", || begun.elapsed() > HALF && lines(&started).len() > 3 * JOBS / 2);
    server.kill();
    let at_crash = lines(&started).len();
    let server = Server::start(dir.path(), &[]);
    let begun = Instant::now();
    wait_until("the second half", || begun.elapsed() > HALF && lines(&started).len() > at_crash + 3 * JOBS / 2);
    let names: Vec<_> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let runs = server.settle(&names);
    assert!(server.drain().success());

    let seen = lines(&started);
    let mut by_run = BTreeMap::new();
    let mut firings = BTreeSet::new();
    for line in &seen {
        let words: Vec<_> = line.split(' ').collect();
        let [job, due, run] = words[..] else { panic!("a torn line: {line:?}") };
        assert!(firings.insert((job, due)), "{job} at {due} started twice");
        assert!(by_run.insert(run, (job, due)).is_none(), "{run} started twice");
    }
    let account = account(&runs, 1_000);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{account:?}");
    let of_id: BTreeMap<_, _> = runs.iter().map(|run| (text(run, "id"), run)).collect();
    for (id, (job, due)) in &by_run {
        let run = of_id.get(id).unwrap_or_else(|| panic!("{job} at {due} started as {id} and has no record"));
        assert_eq!((text(run, "job"), text(run, "due_at")), (*job, *due));
        assert_ne!(status(run), "skipped", "{run}");
    }
    for run in runs.iter().filter(|run| status(run) == "succeeded") {
        assert!(by_run.contains_key(text(run, "id")), "recorded and never started: {run}");
    }
    let log = std::fs::read_to_string(dir.path().join("server.log")).expect("a log");
    assert!(!log.contains("panicked") && !log.contains("S1:") && !log.contains("S2:"), "{log}");
    eprintln!("{} starts, {account:?}", seen.len());
}
