//! How a server ends: in good order, in a hurry, and how the next one goes on.

use std::io::Read;

use carillon_tests::accounting::account;
use carillon_tests::fixture::{Gate, directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::processes;
use carillon_tests::server::Server;
use nix::sys::signal::Signal;
use serde_json::json;

#[test]
fn sigterm_lets_runs_finish_and_starts_nothing_new() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let (gate, ticks, up) = (Gate::new(dir.path(), "gate"), dir.path().join("ticks"), dir.path().join("up"));
    server.create(&job("tick", "@every 1s", &format!("echo $CARILLON_DUE_AT >> {}", ticks.display()), json!({})));
    server.create(&job("long", NEVER, &format!("echo up >> {}; {}; echo done", up.display(), gate.wait()), json!({})));
    let long = server.run_now("long");
    wait_for_lines(&up, 1);
    wait_for_lines(&ticks, 1);
    let url = format!("{}/v1/runs/{long}/output?follow=true", server.url());
    let follower = ureq::get(url).header("Authorization", format!("Bearer {}", server.token())).call();
    let mut follower = follower.expect("the server answers").into_body().into_reader();
    server.signal(Signal::SIGTERM);
    server.wait_until("not ready", || server.get_open("/readyz") == 503);
    let (_, answer) = server.call("GET", "/readyz", None);
    assert_eq!(text(&answer, "detail"), "the node is draining");
    assert_eq!(server.get_open("/healthz"), 200);
    server.wait_until("what was prepared is given back", || server.get("/v1/cluster")["items"][0]["prepared"] == 0);
    server.wait_until("ticks have ended", || server.get("/v1/jobs/tick")["state"] == "idle");
    let before = lines(&ticks).len();
    server.create(&job("asked", NEVER, "true", json!({})));
    let asked = server.run_now("asked");
    let due = server.get("/v1/jobs/tick")["next_due_at"].clone();
    server.wait_until("a due time passes", || {
        let explained = server.post("/v1/schedules/explain", &json!({"schedule": "* * * * * *", "count": 1}));
        explained["next"][0].as_str() > due.as_str()
    });
    assert_eq!(lines(&ticks).len(), before, "nothing new starts in a drain");
    assert_eq!(status(&server.run(&asked)), "waiting");
    assert_eq!(status(&server.run(&long)), "running");
    gate.open();
    assert!(server.wait().success());
    let mut followed = String::new();
    follower.read_to_string(&mut followed).expect("a follower is served to the end");
    assert_eq!(followed, "done\n");

    let server = Server::start(dir.path(), &[]);
    let ended = server.run(&long);
    assert_eq!((status(&ended), text(&ended, "output")), ("succeeded", "done\n"));
    assert_eq!(status(&server.ended(&asked)), "succeeded", "what was asked for meanwhile runs under its id");
    wait_for_lines(&ticks, before + 2);
    let runs = server.settle(&["tick"]);
    let account = account(&runs, 1_000);
    assert_eq!((account.duplicates, account.silent_misses), (vec![], vec![]), "{runs:#?}\n{}", server.log());
    assert_eq!(server.get("/v1/cluster")["items"].as_array().map(Vec::len), Some(1), "no session is left behind");
}

/// A server with a run that hears SIGTERM only as a line in a file.
fn with_a_stubborn_run(dir: &std::path::Path, config: &str) -> (Server, String) {
    let server = Server::start_with(dir, config);
    let up = dir.join("up");
    let command =
        format!("trap 'echo told >> {0}; exit 5' TERM; echo up >> {0}; while :; do sleep 0.05; done", up.display());
    server.create(&job("stubborn", NEVER, &command, json!({})));
    let id = server.run_now("stubborn");
    wait_for_lines(&up, 1);
    (server, id)
}

#[test]
fn a_second_sigterm_cancels_at_once() {
    for signals in [[Signal::SIGTERM, Signal::SIGTERM], [Signal::SIGINT, Signal::SIGINT]] {
        let dir = directory();
        let (server, id) = with_a_stubborn_run(dir.path(), "");
        server.signal(signals[0]);
        server.wait_for_log("draining");
        assert_eq!(status(&server.run(&id)), "running");
        server.signal(signals[1]);
        assert!(server.wait().success());
        assert_eq!(lines(&dir.path().join("up")), ["up", "told"]);
        let run = Server::start(dir.path(), &[]).run(&id);
        assert_eq!((status(&run), &run["exit_code"]), ("cancelled", &json!(5)), "{run}");
    }
}

#[test]
fn runs_that_outlast_the_shutdown_timeout_are_cancelled() {
    let dir = directory();
    let (server, id) = with_a_stubborn_run(dir.path(), "[shutdown]\ntimeout = \"1s\"\n");
    assert!(server.drain().success());
    let run = Server::start(dir.path(), &[]).run(&id);
    assert_eq!(status(&run), "cancelled", "{run}");
}

#[test]
fn a_retry_does_not_hold_up_the_end_and_comes_afterwards() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let retry = json!({"retry": {"max_attempts": 2, "backoff": "5s"}});
    server.create(&job("flaky", NEVER, "test $CARILLON_ATTEMPT = 2", retry));
    server.ended(&server.run_now("flaky"));
    assert!(server.drain().success());
    let server = Server::start(dir.path(), &[]);
    let runs = server.wait_for_runs("flaky", 2, |run| run["finished_at"].is_string());
    assert_eq!((&runs[0]["attempt"], status(&runs[0])), (&json!(2), "succeeded"), "{runs:#?}");
}

#[test]
fn many_restarts_lose_and_repeat_nothing() {
    let dir = directory();
    let started = dir.path().join("started");
    let mut server = Server::start(dir.path(), &[]);
    server.create(&job("tick", "@every 1s", &format!("echo $CARILLON_DUE_AT >> {}", started.display()), json!({})));
    for round in 1..=5 {
        wait_for_lines(&started, round);
        let keeper = processes::keeper_of(server.pid());
        assert!(server.drain().success());
        assert_eq!(processes::state(keeper), None, "the keeper ends with its server");
        server = Server::start(dir.path(), &[]);
    }
    let account = account(&server.settle(&["tick"]), 1_000);
    assert_eq!((account.duplicates, account.silent_misses), (vec![], vec![]));
    let mut started = lines(&started);
    let count = started.len();
    started.sort();
    started.dedup();
    assert_eq!(started.len(), count, "no due time started twice");
    assert!(!server.log().contains("panicked"));
}
