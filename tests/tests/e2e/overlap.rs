//! Due times that come while the previous run lives: each ends up in one record, whatever the policy (S1, S6).

use carillon_domain::time::Timestamp;
use carillon_tests::accounting::{Account, account};
use carillon_tests::fixture::{Gate, directory, wait_for_lines};
use carillon_tests::jobs::{job, status, text};
use carillon_tests::server::Server;
use serde_json::{Value, json};

/// A machine that stands still for two due times makes misfires of them; no machine is expected to stand still for as long as this.
const EVERY: &str = "@every 3s";
const EVERY_MS: i64 = 3_000;

/// The time on this machine's clock, which is the database's too.
fn now_ms() -> i64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock before the end of time")
}

fn ms(run: &Value, field: &str) -> i64 {
    Timestamp::parse_rfc3339(text(run, field)).expect("a time").as_ms()
}

/// Waits until `count` due times have passed since `run` started.
fn wait_for_due_times(server: &Server, run: &Value, count: i64) {
    let until = ms(run, "due_at") + count * EVERY_MS + 100;
    server.wait_until("due times pass", || now_ms() > until);
}

fn clean(runs: &[Value]) -> Account {
    let account = account(runs, EVERY_MS);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{runs:#?}");
    account
}

/// Starts a job that waits at a gate each time; its first run, which lives.
fn gated(server: &Server, gate: &Gate, overlap: &str) -> (std::path::PathBuf, Value) {
    let started = server.dir().join("started");
    let command = format!("echo $CARILLON_RUN_ID >> {}; {}", started.display(), gate.wait());
    server.create(&job("gated", EVERY, &command, json!({"overlap": overlap, "kill_grace": "1s"})));
    let first = wait_for_lines(&started, 1).remove(0);
    let run = server.run(&first);
    (started, run)
}

#[test]
fn skip_records_every_due_time_that_came_while_it_ran() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let (started, first) = gated(&server, &gate, "skip");
    wait_for_due_times(&server, &first, 2);
    let job = server.get("/v1/jobs/gated");
    assert_eq!((&job["state"], &job["current_run"]["id"]), (&json!("executing"), &first["id"]), "one at a time");
    gate.open();
    assert_eq!(server.ended(text(&first, "id"))["status"], "succeeded");
    wait_for_lines(&started, 2);
    gate.open();
    server.wait_for_runs("gated", 2, |run| status(run) == "succeeded");
    gate.open();
    let account = clean(&server.settle(&["gated"]));
    assert!(account.skipped["overlap"] >= 2, "{account:?}");
    assert_eq!(account.skipped.keys().collect::<Vec<_>>(), ["overlap"], "{account:?}");
}

#[test]
fn delay_keeps_one_waiting_and_records_the_others() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let (started, first) = gated(&server, &gate, "delay");
    wait_for_due_times(&server, &first, 2);
    gate.open();
    let second = wait_for_lines(&started, 2).remove(1);
    let second = server.run(&second);
    assert_eq!(ms(&second, "due_at"), ms(&first, "due_at") + EVERY_MS, "the first that waited goes first: {second}");
    assert_eq!(text(&second, "trigger"), "schedule", "a delayed firing is no misfire");
    assert!(second["lag_ms"].as_i64() >= Some(EVERY_MS), "{second}");
    server.post("/v1/jobs/gated/pause", &json!({}));
    gate.open();
    let account = clean(&server.settle(&["gated"]));
    assert_eq!(account.runs["succeeded"], 2);
    assert!(account.skipped["overlap"] >= 1, "{account:?}");
}

#[test]
fn replace_cancels_the_running_one_in_time_for_the_next() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let (started, first) = gated(&server, &gate, "replace");
    wait_for_lines(&started, 3);
    let ended = server.ended(text(&first, "id"));
    assert_eq!((status(&ended), text(&ended, "reason")), ("cancelled", "replaced"), "{ended}");
    server.post("/v1/jobs/gated/pause", &json!({}));
    gate.open();
    let account = clean(&server.settle(&["gated"]));
    assert!(account.runs["cancelled"] >= 2, "{account:?}");
    let runs = server.runs("gated");
    let mut lived: Vec<_> = runs.iter().filter(|run| status(run) != "skipped").collect();
    lived.sort_by_key(|run| ms(run, "started_at"));
    for pair in lived.windows(2) {
        assert!(ms(pair[0], "finished_at") <= ms(pair[1], "started_at"), "two lived at once: {pair:?}");
    }
}

#[test]
fn allow_runs_them_beside_each_other() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let (started, _) = gated(&server, &gate, "allow");
    wait_for_lines(&started, 3);
    let running = server.all("/v1/jobs/gated/runs?status=running");
    assert!(running.len() >= 3, "{running:#?}");
    let id = server.run_now("gated");
    assert_eq!(status(&server.started(&id)), "running");
    server.post("/v1/jobs/gated/pause", &json!({}));
    server.wait_until("all have ended", || {
        gate.open();
        server.all("/v1/jobs/gated/runs?status=running").is_empty()
    });
    let account = clean(&server.runs("gated"));
    assert_eq!(account.runs.keys().collect::<Vec<_>>(), ["succeeded"], "{account:?}");
    assert!(account.skipped.keys().all(|reason| reason == "paused"), "{account:?}");
    assert_eq!(status(&server.run(&id)), "succeeded");
}

#[test]
fn backoff_counts_as_running() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let retry = json!({"retry": {"max_attempts": 2, "backoff": "3500ms"}});
    server.create(&job("failing", EVERY, "exit 1", retry));
    server.wait_for_runs("failing", 2, |run| run["attempt"] == 2 && status(run) == "failed");
    let account = clean(&server.settle(&["failing"]));
    assert!(account.skipped["overlap"] >= 2, "a due time passes in each backoff: {account:?}");
}

/// A run now goes before a firing that was claimed ahead of its time; if it outlasts that due time, the due time is one
/// that came while a run lived.
#[test]
fn a_run_now_that_outlasts_a_claimed_due_time_leaves_a_record_of_it() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    server.create(&job("gated", EVERY, &gate.wait(), json!({})));
    server.wait_until("prepared", || server.get("/v1/jobs/gated")["state"] == "prepared");
    let due = server.get("/v1/jobs/gated")["next_due_at"].clone();
    let asked = server.run_now("gated");
    server.started(&asked);
    let due_ms = Timestamp::parse_rfc3339(due.as_str().expect("a due time")).expect("a time").as_ms();
    server.wait_until("the due time passes", || now_ms() > due_ms + 100);
    gate.open();
    assert_eq!(status(&server.ended(&asked)), "succeeded");
    gate.open();
    let runs = server.settle(&["gated"]);
    let of_due = runs.iter().find(|run| run["first_due_at"] == due || run["due_at"] == due);
    assert!(of_due.is_some(), "{due} has no record: {runs:#?}");
}
