//! Requests of people about jobs, at every moment: pause, resume, update, delete, run now.

use carillon_domain::time::Timestamp;
use carillon_tests::accounting::account;
use carillon_tests::fixture::{Gate, directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::server::Server;
use serde_json::{Value, json};

fn ms(value: &Value, field: &str) -> i64 {
    Timestamp::parse_rfc3339(text(value, field)).expect("a time").as_ms()
}

fn now_of(server: &Server) -> i64 {
    let explained = server.post("/v1/schedules/explain", &json!({"schedule": "* * * * * *", "count": 1}));
    Timestamp::parse_rfc3339(explained["next"][0].as_str().unwrap()).unwrap().as_ms() - 1_000
}

fn at_ms(ms: i64) -> String {
    Timestamp::from_ms(ms).to_string()
}

#[test]
fn a_pause_starts_nothing_and_its_due_times_are_recorded() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let started = dir.path().join("started");
    server.create(&job("tick", "@every 1s", &format!("echo x >> {}", started.display()), json!({})));
    wait_for_lines(&started, 1);
    let paused = server.post("/v1/jobs/tick/pause", &json!({"reason": "maintenance"}));
    assert_eq!((&paused["paused"], &paused["pause"]["reason"]), (&json!(true), &json!("maintenance")));
    let since = ms(&paused["pause"], "since");
    server.wait_until("idle", || server.get("/v1/jobs/tick")["state"] == "idle");
    let before = lines(&started).len();
    server.wait_until("due times pass", || now_of(&server) > since + 3_000);
    assert_eq!(lines(&started).len(), before, "nothing starts while paused");
    server.post("/v1/jobs/tick/resume", &json!({}));
    wait_for_lines(&started, before + 1);
    let account = account(&server.settle(&["tick"]), 1_000);
    assert!(account.skipped["paused"] >= 2, "{account:?}");
    assert_eq!((account.duplicates, account.silent_misses), (vec![], vec![]));
}

#[test]
fn a_pause_with_an_end_ends_by_itself() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    server.create(&job("tick", "@every 1s", "true", json!({})));
    let until = now_of(&server) + 3_000;
    let paused = server.post("/v1/jobs/tick/pause", &json!({"until": at_ms(until)}));
    assert_eq!(ms(&paused["pause"], "until"), until);
    let runs = server.wait_for_runs("tick", 1, |run| status(run) == "succeeded");
    let first = runs.iter().filter(|run| status(run) == "succeeded").map(|run| ms(run, "started_at")).min();
    assert!(first >= Some(until), "{first:?} is before {until}");
    assert_eq!(server.get("/v1/jobs/tick")["paused"], false);
    let (code, answer) = server.call("POST", "/v1/jobs/tick/pause", Some(&json!({"until": "2020-01-01T00:00:00Z"})));
    assert_eq!((code, text(&answer, "detail")), (400, "until: 2020-01-01T00:00:00.000Z has passed"));
    let account = account(&server.settle(&["tick"]), 1_000);
    assert_eq!((account.duplicates, account.silent_misses), (vec![], vec![]));
}

#[test]
fn an_update_or_a_delete_lets_the_running_one_finish_as_it_was() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let started = dir.path().join("started");
    let command = |version| format!("echo {version} >> {}; {}; echo {version}", started.display(), gate.wait());
    server.create(&job("worker", "@every 1s", &command("old"), json!({})));
    let first = wait_for_lines(&started, 1);
    let running = server.get("/v1/jobs/worker")["current_run"]["id"].as_str().expect("it runs").to_owned();
    let (code, updated) =
        server.call("PUT", "/v1/jobs/worker", Some(&job("worker", "@every 2s", &command("new"), json!({}))));
    assert_eq!((code, &updated["generation"], &updated["current_run"]["id"]), (200, &json!(2), &json!(running)));
    gate.open();
    let ended = server.ended(&running);
    assert_eq!((status(&ended), text(&ended, "output")), ("succeeded", "old\n"), "{ended} {first:?}");
    assert_eq!(wait_for_lines(&started, 2)[1], "new");

    let running = server.get("/v1/jobs/worker")["current_run"]["id"].as_str().expect("it runs").to_owned();
    assert_eq!(server.call("DELETE", "/v1/jobs/worker", None).0, 204);
    assert_eq!(server.call("GET", "/v1/jobs/worker", None).0, 404);
    assert_eq!(server.call("POST", "/v1/jobs/worker/run", Some(&json!({}))).0, 404);
    assert_eq!(status(&server.run(&running)), "running", "a delete cancels nothing");
    let again = server.create(&job("worker", NEVER, "true", json!({})));
    assert_eq!(again["current_run"], json!(null), "the name is free at once and new: {again}");
    gate.open();
    assert_eq!(status(&server.ended(&running)), "succeeded");
    assert_eq!(status(&server.ended(&server.run_now("worker"))), "succeeded");
    assert_eq!(lines(&started).len(), 2, "nothing started after the delete");
}

#[test]
fn an_update_keeps_due_times_unless_the_timing_changed() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let put = |body: &Value| server.call("PUT", "/v1/jobs/tick", Some(body));
    let (code, created) = put(&job("tick", "@every 1h", "true", json!({})));
    assert_eq!((code, &created["generation"]), (201, &json!(1)));
    let (code, command) = put(&job("tick", "@every 1h", "false", json!({"paused": true})));
    assert_eq!((code, &command["next_due_at"]), (200, &created["next_due_at"]));
    let (_, kept) = put(&job("tick", "@every 1h", "false", json!({"timeout": "5s"})));
    assert_eq!(kept["paused"], true, "a put without paused does not unpause");
    let (_, moved) = put(&job("tick", "@every 2h", "false", json!({"paused": false})));
    assert_eq!(moved["paused"], false);
    assert!(ms(&moved, "next_due_at") >= ms(&created, "next_due_at") + 3_600_000, "{moved}");
    let (code, soon) = put(&job("tick", &format!("@at {}", at_ms(now_of(&server) + 2_500)), "true", json!({})));
    assert_eq!(code, 200, "{soon}");
    let run = server.wait_for_runs("tick", 1, |run| status(run) == "succeeded").remove(0);
    assert_eq!(run["due_at"], soon["next_due_at"], "what was changed to come up soon comes up");
}

#[test]
fn a_run_now_has_an_id_that_answers_in_every_state() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    std::thread::scope(|scope| {
        for overlap in ["skip", "delay", "replace", "allow"] {
            scope.spawn(|| run_now_of_a_running_one(&server, overlap));
        }
    });
}

fn run_now_of_a_running_one(server: &Server, overlap: &str) {
    let gate = Gate::new(server.dir(), overlap);
    server.create(&job(overlap, NEVER, &gate.wait(), json!({"overlap": overlap})));
    let first = server.run_now(overlap);
    assert!(["waiting", "running"].contains(&status(&server.run(&first))));
    assert_eq!(status(&server.started(&first)), "running");
    let second = server.run_now(overlap);
    let at_once = server.run(&second);
    match overlap {
        "skip" => assert_eq!((status(&at_once), text(&at_once, "reason")), ("skipped", "overlap")),
        "delay" => {
            assert_eq!(status(&at_once), "waiting");
            let third = server.run(&server.run_now(overlap));
            assert_eq!((status(&third), text(&third, "reason")), ("skipped", "overlap"), "one waits");
            let (code, cancelled) = server.call("POST", &format!("/v1/runs/{second}/cancel"), Some(&json!({})));
            assert_eq!((code, status(&cancelled)), (200, "cancelled"), "it never started");
            let fourth = server.run_now(overlap);
            gate.open();
            assert_eq!(status(&server.ended(&first)), "succeeded");
            assert_eq!(status(&server.started(&fourth)), "running");
        }
        "replace" => {
            assert_eq!(text(&server.ended(&first), "reason"), "replaced");
            assert_eq!(status(&server.started(&second)), "running");
        }
        _ => assert_eq!(status(&server.started(&second)), "running"),
    }
    server.wait_until("all have ended", || {
        gate.open();
        server.get(&format!("/v1/jobs/{overlap}"))["state"] == "idle"
            && server.all(&format!("/v1/jobs/{overlap}/runs?status=running")).is_empty()
    });
}

#[test]
fn a_run_now_of_a_prepared_a_paused_and_a_completed_job_runs() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    server.create(&job("prepared", &format!("@at {}", at_ms(now_of(&server) + 20_000)), "true", json!({})));
    server.wait_until("prepared", || server.get("/v1/jobs/prepared")["state"] == "prepared");
    let due = server.get("/v1/jobs/prepared")["next_due_at"].clone();
    server.create(&job("paused", "@every 1h", "true", json!({"paused": true})));
    server.create(&job("completed", &format!("@at {}", at_ms(now_of(&server) + 2_000)), "true", json!({})));
    server.wait_until("completed", || server.get("/v1/jobs/completed")["next_due_at"].is_null());
    server.wait_for_runs("completed", 1, |run| status(run) == "succeeded");
    for name in ["prepared", "paused", "completed"] {
        let run = server.ended(&server.run_now(name));
        assert_eq!((status(&run), text(&run, "trigger")), ("succeeded", "manual"), "{run}");
    }
    assert_eq!(server.get("/v1/jobs/prepared")["next_due_at"], due, "its own due time still stands");
    assert_eq!(server.get("/v1/jobs/paused")["paused"], true, "a run now does not resume");
    assert_eq!(server.call("POST", "/v1/jobs/nobody/run", Some(&json!({}))).0, 404);
    assert_eq!(server.call("GET", "/v1/runs/8000000000000007-1", None).0, 404);
    assert_eq!(server.call("GET", "/v1/runs/garbage", None).0, 400);
}
