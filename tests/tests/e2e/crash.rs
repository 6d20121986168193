//! Servers that die, freeze or lose their keeper: no child survives, and every firing is accounted for.

use std::path::Path;
use std::time::{Duration, Instant};

use carillon_tests::accounting::account;
use carillon_tests::fixture::{directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job, merged, status, text};
use carillon_tests::processes::{children, keeper_of, marked, state};
use carillon_tests::server::Server;
use carillon_tests::waiting::{wait_until, wait_until_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A session that ends soon, within the fencing inequality: (3 + 1 + 1) x 1.01 < 6 x 0.99.
const FAST: &str = "[session]\nheartbeat = \"300ms\"\nheartbeat_timeout = \"500ms\"\nself_kill_after = \"3s\"\n\
                    fence_grace = \"1s\"\npause = \"1s\"\nexpire_after = \"6s\"\n";

/// How long children may live on without their server.
const MERCY: Duration = Duration::from_secs(15);

/// A job whose children ignore SIGTERM, fork twice, and leave their session; each says in a file that it is there.
fn escapist(dir: &Path, name: &str, more: Value) -> Value {
    let up = dir.join(format!("{name}.up"));
    let command = format!(
        "trap '' TERM HUP INT; say() {{ echo $1 $CARILLON_ATTEMPT >> {}; }}; \
         (say forked; exec sleep 300) & \
         (setsid bash -c 'trap \"\" TERM HUP; (echo orphan $CARILLON_ATTEMPT >> {}; exec sleep 300) & exit') ; \
         (setsid setsid -f sleep 300; say detached); \
         say main; sleep 300; sleep 300",
        up.display(),
        up.display()
    );
    let base = job(name, NEVER, &command, json!({}));
    let params = json!({"params": {"command": command, "env": {"MARK": dir}}});
    merged(merged(base, params), more)
}

/// Starts the job's run and waits until all of its processes are there.
fn start(server: &Server, job: &Value) -> String {
    server.create(job);
    let name = text(job, "name");
    let id = server.run_now(name);
    wait_for_lines(&server.dir().join(format!("{name}.up")), 4);
    assert!(marked(&mark(server.dir())).len() >= 4);
    id
}

fn mark(dir: &Path) -> String {
    format!("MARK={}", dir.display())
}

fn all_dead(dir: &Path) {
    wait_until_within(MERCY, "every child is dead", || marked(&mark(dir)).is_empty());
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("the process is there");
}

fn ticking(server: &Server) -> std::path::PathBuf {
    let ticks = server.dir().join("ticks");
    server.create(&job("tick", "@every 1s", &format!("echo $CARILLON_DUE_AT >> {}", ticks.display()), json!({})));
    wait_for_lines(&ticks, 1);
    ticks
}

/// Nothing of the ticking job is missing, doubled or unexplained.
fn check_ticks(server: &Server, ticks: &Path) {
    let seen = lines(ticks).len();
    wait_for_lines(ticks, seen + 1);
    let runs = server.settle(&["tick"]);
    let account = account(&runs, 1_000);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{runs:#?}");
    let mut started = lines(ticks);
    let count = started.len();
    started.sort();
    started.dedup();
    assert_eq!(started.len(), count, "no due time started twice");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn kill_9_leaves_no_child_and_no_firing_unaccounted() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ticks = ticking(&server);
    let skipped = start(&server, &escapist(dir.path(), "skip", json!({})));
    let rerun = start(&server, &escapist(dir.path(), "rerun", json!({"on_lost": "rerun"})));
    server.kill();
    all_dead(dir.path());
    let server = Server::start(dir.path(), &[]);
    for id in [&skipped, &rerun] {
        let run = server.run(id);
        assert_eq!(status(&run), "lost", "{run}");
        assert_eq!(text(&run, "reason"), "the node's session ended while it ran");
    }
    wait_for_lines(&dir.path().join("rerun.up"), 8);
    let again = server.runs("rerun");
    assert_eq!((again.len(), status(&again[0]), &again[0]["attempt"]), (2, "running", &json!(2)), "{again:#?}");
    assert_eq!(again[0]["due_at"], again[1]["due_at"], "a rerun is the same firing");
    assert_eq!(server.runs("skip").len(), 1, "at most one start");
    let tokens: Vec<_> = again.iter().map(|run| run["fencing_token"].as_u64()).collect();
    assert!(tokens[0] > tokens[1], "fencing tokens grow: {tokens:?}");
    check_ticks(&server, &ticks);
    server.call("POST", &format!("/v1/runs/{}/cancel", text(&again[0], "id")), Some(&json!({})));
    all_dead_but_by_cancel(&server, text(&again[0], "id"), dir.path());
}

fn all_dead_but_by_cancel(server: &Server, id: &str, dir: &Path) {
    assert_eq!(status(&server.ended(id)), "cancelled");
    assert_eq!(marked(&mark(dir)), Vec::<i32>::new(), "a run has not ended while something of it lives");
}

#[test]
fn a_frozen_servers_children_die_and_it_goes_on_when_it_wakes() {
    let dir = directory();
    let server = Server::start_with(dir.path(), FAST);
    let ticks = ticking(&server);
    let lost = start(&server, &escapist(dir.path(), "frozen", json!({"kill_grace": "5m"})));
    let frozen = Instant::now();
    server.signal(Signal::SIGSTOP);
    all_dead(dir.path());
    let before = lines(&ticks).len();
    wait_until("past its lease", || frozen.elapsed() > Duration::from_secs(4));
    assert_eq!(lines(&ticks).len(), before, "a frozen server starts nothing");
    assert_eq!(state(server.pid()), Some('T'));
    server.signal(Signal::SIGCONT);
    let run = server.ended(&lost);
    assert_eq!((status(&run), text(&run, "reason")), ("lost", "the node did not renew its lease in time"), "{run}");
    server.wait_until("ready", || server.is_ready());
    check_ticks(&server, &ticks);
    assert_eq!(status(&server.run_once("after", json!({"command": "true"}), json!({}))), "succeeded");
}

#[test]
fn a_server_without_its_keeper_ends_with_70_and_the_next_accounts_for_its_runs() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let ticks = ticking(&server);
    let command = "trap '' TERM; sleep 300 & sleep 300; sleep 300";
    let params = json!({"params": {"command": command, "env": {"MARK": dir.path()}}});
    server.create(&merged(job("long", NEVER, "", json!({})), params));
    let id = server.run_now("long");
    wait_until("its processes are there", || marked(&mark(dir.path())).len() >= 3);
    send(keeper_of(server.pid()), Signal::SIGKILL);
    wait_until("the server ends", || server.has_ended().is_some());
    assert_eq!(server.has_ended().and_then(|status| status.code()), Some(70));
    assert!(server.log().contains("its keeper died, and with it every run"), "{}", server.log());
    all_dead(dir.path());
    let server = Server::start(dir.path(), &[]);
    let run = server.run(&id);
    assert_eq!(status(&run), "lost", "{run}");
    assert!(text(&run, "reason").contains("keeper"), "{run}");
    check_ticks(&server, &ticks);
}

#[test]
fn a_frozen_keeper_does_not_keep_a_new_server_from_refusing_politely() {
    let dir = directory();
    let server = Server::start_with(dir.path(), FAST);
    let id = start(&server, &escapist(dir.path(), "held", json!({})));
    let keeper = keeper_of(server.pid());
    send(keeper, Signal::SIGSTOP);
    server.kill();
    // Its children may live, so nobody may take over.
    let refused = Server::try_start(dir.path(), &[]);
    let (status_, said) = refused.err().expect("the lock is held");
    assert_eq!(status_.code(), Some(1));
    assert!(said.contains("is served by another Carillon (pid "), "{said}");
    send(keeper, Signal::SIGCONT);
    all_dead(dir.path());
    wait_until("the keeper ends", || state(keeper).is_none_or(|state| state == 'Z'));
    let server = Server::start(dir.path(), &[]);
    assert_eq!(status(&server.run(&id)), "lost");
}

#[test]
fn a_frozen_keeper_does_not_hold_up_the_end_of_its_server() {
    let dir = directory();
    let server = Server::start_with(dir.path(), FAST);
    let keeper = keeper_of(server.pid());
    send(keeper, Signal::SIGSTOP);
    assert!(server.drain().success());
    send(keeper, Signal::SIGCONT);
    wait_until("the keeper ends", || state(keeper).is_none_or(|state| state == 'Z'));
}

#[test]
fn signals_to_the_whole_group_drain_and_do_not_hurt_the_keeper() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    let up = dir.path().join("up");
    let command = format!("echo up >> {}; sleep 1; echo done", up.display());
    server.create(&job("long", NEVER, &command, json!({})));
    let id = server.run_now("long");
    wait_for_lines(&up, 1);
    // The processes that systemd signals in the control group, as far as they are known: the server and its keeper.
    for pid in children(server.pid()) {
        send(pid, Signal::SIGTERM);
        send(pid, Signal::SIGINT);
        send(pid, Signal::SIGHUP);
    }
    assert!(server.drain().success());
    let run = Server::start(dir.path(), &[]).run(&id);
    assert_eq!((status(&run), text(&run, "output")), ("succeeded", "done\n"), "{run}");
}

#[test]
fn a_log_that_nobody_reads_any_more_stops_nothing() {
    std::thread::scope(|scope| {
        scope.spawn(|| goes_on_after(Server::close_its_log));
        scope.spawn(|| goes_on_after(Server::stall_its_log));
    });
}

fn goes_on_after(trouble: fn(&Server)) {
    let dir = directory();
    let server = Server::start_as(dir.path(), |command| command.env("CARILLON_LOG", "trace"));
    trouble(&server);
    // Says more than any pipe holds.
    for _ in 0..500 {
        server.get("/v1/jobs");
    }
    let ticks = ticking(&server);
    wait_for_lines(&ticks, 2);
    assert_eq!(status(&server.run_once("after", json!({"command": "true"}), json!({}))), "succeeded");
    assert!(server.drain().success());
}
