//! Due times that pass while no server runs: what each policy makes of them, after a stop and after a crash.

use carillon_domain::time::Timestamp;
use carillon_tests::accounting::account;
use carillon_tests::fixture::directory;
use carillon_tests::jobs::{job, status, text};
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use serde_json::{Value, json};

const POLICIES: [&str; 3] = ["skip", "fire_once", "catch_up"];

fn start_jobs(server: &Server) {
    for policy in POLICIES {
        let misfire = json!({"misfire": {"policy": policy, "grace": "1s"}});
        server.create(&job(policy, "@every 1s", "true", misfire));
    }
    for policy in POLICIES {
        server.wait_for_runs(policy, 1, |run| status(run) == "succeeded");
    }
}

/// Lets more than three due times pass while nothing runs.
fn downtime() {
    let begun = std::time::Instant::now();
    wait_until("due times pass", || begun.elapsed().as_millis() > 3_600);
}

fn made_good(runs: &[Value]) -> Vec<&Value> {
    runs.iter().filter(|run| run["trigger"] == "misfire").collect()
}

/// The rules for the records after a downtime, whichever way it began.
fn check(server: &Server) {
    for policy in POLICIES {
        // Newer than the backlog: it comes up regularly again.
        let back = |run: &Value| run["session"] == server.get("/v1/cluster")["items"][0]["id"];
        server.wait_for_runs(policy, 1, |run| run["trigger"] == "schedule" && back(run));
        let runs = server.settle(&[policy]);
        let account = account(&runs, 1_000);
        assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{policy}: {runs:#?}");
        let (made_good, missed) = (made_good(&runs), account.skipped.get("misfire").copied().unwrap_or(0));
        match policy {
            "skip" => assert!(made_good.is_empty() && missed >= 3, "{account:?}"),
            "fire_once" => {
                assert!(made_good.len() == 1 && missed >= 2, "{account:?}");
                let skipped = runs.iter().find(|run| run["reason"] == "misfire").expect("a record of the others");
                let ms = |run: &Value, field| Timestamp::parse_rfc3339(text(run, field)).unwrap().as_ms();
                assert_eq!(ms(made_good[0], "due_at"), ms(skipped, "last_due_at") + 1_000, "the latest one runs");
            }
            _ => {
                assert!(made_good.len() >= 3 && missed == 0, "{account:?}");
                let mut by_due = made_good.clone();
                by_due.sort_by_key(|run| text(run, "due_at"));
                let starts: Vec<_> = by_due.iter().map(|run| text(run, "started_at")).collect();
                assert!(starts.is_sorted(), "oldest first, one at a time: {starts:?}");
            }
        }
    }
    assert!(!server.log().contains("panicked"));
}

#[test]
fn a_downtime_makes_a_batch_for_the_policy() {
    let after = |stop: fn(Server)| {
        let dir = directory();
        let server = Server::start(dir.path(), &[]);
        start_jobs(&server);
        stop(server);
        downtime();
        check(&Server::start(dir.path(), &[]));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| after(|server| assert!(server.drain().success())));
        scope.spawn(|| after(Server::kill));
    });
}

#[test]
fn one_due_time_within_its_grace_is_no_misfire_and_a_missed_one_shot_runs_late() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let soon = Timestamp::from_ms(
        Timestamp::parse_rfc3339(text(&server.create(&job("now", "@every 1h", "true", json!({}))), "created_at"))
            .unwrap()
            .as_ms()
            + 2_000,
    );
    for (name, policy, grace) in [("late", "fire_once", "1ms"), ("graced", "skip", "1h"), ("missed", "skip", "1ms")] {
        let misfire = json!({"misfire": {"policy": policy, "grace": grace}});
        server.create(&job(name, &format!("@at {soon}"), "true", misfire));
    }
    assert!(server.drain().success());
    downtime();
    let server = Server::start(dir.path(), &[]);
    for (name, status, trigger) in
        [("late", "succeeded", "misfire"), ("graced", "succeeded", "schedule"), ("missed", "skipped", "schedule")]
    {
        let run = server.wait_for_runs(name, 1, |run| run["finished_at"].is_string()).remove(0);
        assert_eq!((&run["status"], &run["trigger"]), (&json!(status), &json!(trigger)), "{run}");
        assert_eq!(text(&run, "due_at"), soon.to_string());
        server.wait_until("completed", || server.get(&format!("/v1/jobs/{name}"))["next_due_at"].is_null());
    }
}
