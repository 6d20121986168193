//! Commands that mean harm: endless output, endless children, memory, hundreds at once.

use carillon_tests::accounting::account;
use carillon_tests::fixture::{Gate, directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::processes::{keeper_of, marked, resident_kib};
use carillon_tests::server::Server;
use carillon_tests::waiting::wait_until;
use serde_json::json;

#[test]
fn endless_output_fills_no_memory_and_blocks_nobody() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    server.create(&job("endless", NEVER, "yes 0123456789abcdef", json!({"timeout": "3s"})));
    server.create(&job("tick", "@every 1s", "true", json!({})));
    let id = server.run_now("endless");
    server.started(&id);
    let keeper = keeper_of(server.pid());
    let mut most = (0, 0);
    server.wait_until("it ends", || {
        most = (most.0.max(resident_kib(server.pid())), most.1.max(resident_kib(keeper)));
        !["waiting", "running"].contains(&status(&server.run(&id)))
    });
    // `yes` prints gigabytes meanwhile.
    assert!(most.0 < 100 * 1024 && most.1 < 30 * 1024, "server {} KiB, keeper {} KiB", most.0, most.1);
    let run = server.run(&id);
    assert_eq!((status(&run), &run["output_truncated"]), ("timed_out", &json!(true)));
    assert_eq!(text(&run, "output").len(), 64 * 1024);
    server.wait_for_runs("tick", 3, |run| status(run) == "succeeded");
    let account = account(&server.settle(&["tick"]), 1_000);
    assert_eq!((account.duplicates, account.silent_misses), (vec![], vec![]));
}

#[test]
fn endless_children_end_with_the_timeout() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    // Bounded by its pace: 150 a second, until the timeout; each leaves its session, none hears SIGTERM.
    let bomb = "trap '' TERM; more() { while :; do setsid -f sleep 30; sleep 0.02; done; }; export -f more; \
                more & more & setsid -f bash -c more; wait";
    let params = json!({"command": bomb, "env": {"MARK": dir.path()}});
    let more = json!({"timeout": "2s", "kill_grace": "500ms"});
    let run = server.run_once("bomb", params, more);
    assert_eq!(status(&run), "timed_out", "{run}");
    let mark = format!("MARK={}", dir.path().display());
    assert_eq!(marked(&mark), Vec::<i32>::new(), "a run has not ended while something of it lives");
    assert_eq!(status(&server.run_once("after", json!({"command": "true"}), json!({}))), "succeeded");
    assert!(!server.log().contains("panicked"));
}

#[test]
fn a_job_that_leaves_children_behind_ends_with_its_main_process() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let left = "setsid -f sleep 300; sleep 300 & (trap '' TERM HUP; sleep 300) & echo left";
    let run = server.run_once("leaves", json!({"command": left, "env": {"MARK": dir.path()}}), json!({}));
    assert_eq!((status(&run), text(&run, "output")), ("succeeded", "left\n"), "{run}");
    let mark = format!("MARK={}", dir.path().display());
    wait_until("what it left behind is dead", || marked(&mark).is_empty());
}

#[test]
fn a_job_cannot_reach_the_keeper_by_its_descriptors_or_kill_a_neighbours_run() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let gate = Gate::new(dir.path(), "gate");
    let up = dir.path().join("up");
    let command = format!("echo up >> {}; {}", up.display(), gate.wait());
    server.create(&job("neighbour", NEVER, &command, json!({})));
    let neighbour = server.run_now("neighbour");
    wait_for_lines(&up, 1);
    // Its own group and session only: kill 0 reaches nobody else.
    let run = server.run_once("suicide", json!({"command": "kill -KILL 0"}), json!({}));
    assert_eq!((status(&run), &run["signal"]), ("failed", &json!(9)));
    assert_eq!(status(&server.run(&neighbour)), "running");
    gate.open();
    assert_eq!(status(&server.ended(&neighbour)), "succeeded");
}

#[test]
fn two_hundred_jobs_due_in_one_second_all_run_once() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let started = dir.path().join("started");
    let next = server.post("/v1/schedules/explain", &json!({"schedule": "* * * * * *", "count": 4}));
    let due = next["next"][3].as_str().expect("a due time").to_owned();
    let command = format!("echo $CARILLON_JOB >> {}", started.display());
    let items: Vec<_> =
        (0..200).map(|n| job(&format!("job-{n}"), &format!("@at {due}"), &command, json!({}))).collect();
    server.post("/v1/jobs:batch", &json!({ "items": items }));
    let mut names = wait_for_lines(&started, 200);
    server.wait_until("all are recorded", || server.all("/v1/runs?status=succeeded").len() == 200);
    assert_eq!(lines(&started).len(), 200);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 200, "each runs once");
    let runs = server.all("/v1/runs");
    assert!(runs.iter().all(|run| run["due_at"] == due.as_str() && run["lag_ms"].as_i64() >= Some(0)), "none is early");
}

#[test]
fn runs_beyond_max_executing_wait_their_turn() {
    let dir = directory();
    let server = Server::start_with(dir.path(), "[scheduler]\nmax_executing = 3\nmax_in_flight = 50\n");
    let gate = Gate::new(dir.path(), "gate");
    for n in 0..8 {
        server.create(&job(&format!("job-{n}"), NEVER, &gate.wait(), json!({})));
        server.run_now(&format!("job-{n}"));
    }
    let running = || server.all("/v1/runs?status=running").len();
    server.wait_until("three run", || running() == 3);
    for _ in 0..8 {
        assert!(running() <= 3);
        gate.open();
    }
    server.wait_until("all ran", || {
        assert!(running() <= 3, "never more than three");
        server.all("/v1/runs?status=succeeded").len() == 8
    });
}
