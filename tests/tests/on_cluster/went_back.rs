//! A database that goes back in time under real nodes: a failover that loses commits, a restore from a backup.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use carillon_checker::fault::Fault;
use carillon_checker::witness::Life;
use carillon_checker::{Evidence, Verdict};
use carillon_domain::time::Timestamp;
use carillon_tests::cluster::{Cluster, Witness};
use carillon_tests::databases::{self, Replicated};
use carillon_tests::fixture::Gate;
use carillon_tests::jobs::{NEVER, job, status, text};
use carillon_tests::processes::marked;
use carillon_tests::server::Server;
use carillon_tests::waiting::{wait_until, wait_until_within};
use serde_json::{Value, json};

use super::alerts::{ear_for, told};
use super::{carillon, database_on, each_second, sessions, settled, wait_for_more};

const LOST: &str = "the database went back in time: nobody knows whether it started";
const JOBS: usize = 10;

/// A lease that outlasts the restart of a server. A loss is accepted no sooner than `expire_after` later.
const ENDURING: &str = carillon_tests::session!("20s", "26s");

/// A server whose files can be kept and put back, as from a backup or on a replica that lags behind.
struct Past {
    server: databases::Server,
}

impl Past {
    fn of(server: databases::Server) -> Self {
        Self { server }
    }

    fn kept(&self) -> PathBuf {
        self.server.data().with_file_name("kept")
    }

    fn keep(&self) {
        self.server.kill();
        databases::copy_data(&self.server.data(), &self.kept()).unwrap_or_else(|why| panic!("{why}"));
        self.server.start_again();
    }

    fn go_back(&self) {
        self.server.kill();
        fs::remove_dir_all(self.server.data()).expect("the newer files go");
        fs::rename(self.kept(), self.server.data()).expect("the older files come back");
        self.server.start_again();
    }
}

/// Jobs that make good whatever they think was missed: where a start is forgotten, they start it again.
fn eager(node: &Server, witness: &Witness) -> Vec<String> {
    let catch_up = json!({"misfire": {"policy": "catch_up", "grace": "1s"}});
    each_second(node, JOBS, &witness.command(3, 100, "0"), &catch_up)
}

fn time(value: &Value, field: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text(value, field)).unwrap_or_else(|| panic!("{field} is no time in {value}"))
}

fn due(life: &Life) -> Timestamp {
    Timestamp::from_ms(life.due_us / 1_000)
}

/// When each session gave its last sign of life, by the database's clock.
fn heartbeats(node: &Server) -> Vec<Timestamp> {
    sessions(node).iter().map(|session| time(session, "heartbeat_at")).collect()
}

/// Waits until all sessions have given signs of life for so long, on top of those that are there.
fn wait_for_heartbeats(node: &Server, span: Duration) {
    let newest = heartbeats(node).into_iter().max().expect("sessions");
    wait_until("heartbeats go on", || heartbeats(node).into_iter().all(|at| at >= newest + span));
}

fn readiness(node: &Server) -> (u16, String) {
    let (status, _, said) = node.call_raw("GET", "/readyz", &[], None);
    (status, said)
}

fn is_withheld(node: &Server) -> bool {
    let (status, said) = readiness(node);
    status == 503 && said.contains("the database went back in time") && said.contains("`carillon cluster accept`")
}

fn windows(node: &Server) -> Vec<Value> {
    node.get("/v1/cluster")["lost_commits"].as_array().expect("windows").clone()
}

/// The one open window, which all nodes tell of, people too.
fn open_window(nodes: &[Server]) -> Value {
    let found = windows(&nodes[0]);
    let [window] = &found[..] else { panic!("one window: {found:?}") };
    assert!(window["accepted_at"].is_null(), "{window}");
    for node in nodes {
        assert_eq!(windows(node), found);
        let shown = carillon(node, &["cluster"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("The database went back in time"), "{shown}");
        assert!(shown.contains("runs `carillon cluster accept`"), "{shown}");
        for field in ["from_at", "until_at", "noticed_at", "session"] {
            assert!(shown.contains(text(window, field)), "{field} in {shown}");
        }
    }
    let [from, noticed, until] = ["from_at", "noticed_at", "until_at"].map(|field| time(window, field));
    assert!(from < noticed && noticed <= until, "{window}");
    window.clone()
}

/// While the window is open, nothing starts on any node, though due times pass.
fn nothing_starts(nodes: &[Server], witness: &Witness) {
    for node in nodes {
        wait_until("nothing is claimed or started", || is_withheld(node));
    }
    // A run that a node killed as it ended itself has told no end.
    let of_the_jobs = witness.file().display().to_string();
    wait_until("what ran has ended", || marked(&of_the_jobs).is_empty());
    let before = witness.len();
    wait_for_heartbeats(&nodes[0], Duration::from_secs(2));
    assert_eq!(witness.len(), before, "nothing starts before the loss is accepted");
    assert!(nodes.iter().all(is_withheld));
}

/// Accepts the loss as soon as that is not refused any more; answers what the command printed.
fn accept_in_time(node: &Server) -> String {
    let refused = carillon(node, &["cluster", "accept"]);
    assert_eq!(refused.status.code(), Some(4), "runs may live of which nobody knows: {refused:?}");
    let mut said = String::new();
    wait_until_within(Duration::from_secs(90), "the loss may be accepted", || {
        let accepted = carillon(node, &["cluster", "accept"]);
        said = String::from_utf8_lossy(&accepted.stdout).into_owned();
        accepted.status.success()
    });
    said
}

fn go_on(nodes: &[Server], witness: &Witness) {
    for node in nodes {
        wait_until("ready again", || readiness(node).0 == 200);
    }
    wait_for_more(witness, 15 * JOBS);
}

/// Nothing started twice, nothing is missing. Nodes that outlive the loss record again what they know. The records of others are lost: those
/// runs, and no others, are told by the witness alone, and each of their due times is recorded as lost.
fn judge(witness: &Witness, runs: &[Value], window: &Value, all_outlive_it: bool) -> Verdict {
    let until = time(window, "until_at");
    let us = |field: &str| time(window, field).as_ms() * 1_000;
    let loss = Fault {
        class: "loss".to_owned(),
        node: None,
        from_us: us("from_at"),
        until_us: us("until_at"),
        kills_runs: false,
        moves_clock: false,
        loses_commits: true,
    };
    let verdict = carillon_checker::judge(&Evidence { faults: vec![loss], ..witness.evidence(runs) });
    assert!(verdict.is_clean(), "{verdict}");

    let recorded: BTreeSet<&str> = runs.iter().map(|run| text(run, "id")).collect();
    let lives = witness.lives();
    let forgotten: Vec<&Life> = lives.iter().filter(|life| !recorded.contains(&*life.run)).collect();
    if all_outlive_it {
        assert!(forgotten.is_empty(), "{forgotten:?}: {verdict}");
        assert!(lives.iter().all(|life| life.end.is_some()), "nobody kills a run: {verdict}");
    } else {
        assert!(forgotten.len() >= JOBS, "commits were lost: {verdict}");
    }

    let lost: Vec<&Value> = runs.iter().filter(|run| run["reason"] == LOST).collect();
    for record in &lost {
        assert_eq!(status(record), "lost", "{record}");
        assert!(time(record, "due_at") <= until, "{record}");
    }
    for life in forgotten {
        let stretch = |run: &Value| {
            let last = time(run, "due_at");
            let first = if run["first_due_at"].is_null() { last } else { time(run, "first_due_at") };
            first..=last
        };
        let told = lost.iter().any(|run| run["job"] == *life.job && stretch(run).contains(&due(life)));
        assert!(told, "nothing is recorded as lost for {life:?}");
    }
    verdict
}

#[test]
fn nodes_that_outlive_a_loss_of_commits_start_nothing_twice() {
    let past = Past::of(databases::Server::start(crate::BRAND, &[]));
    let cluster = Cluster::new(&database_on(&past.server).url(), ENDURING);
    let (witness, gate) = (Witness::new(cluster.dir()), Gate::new(cluster.dir(), "gate"));
    let nodes: Vec<Server> = ["a", "b"].map(|name| cluster.node(name)).into();
    let ear = ear_for(&nodes[0], "commits_lost");
    let names = eager(&nodes[0], &witness);
    nodes[0].create(&job("long", NEVER, &gate.wait(), json!({})));
    let long = nodes[0].run_now("long");
    assert_eq!(status(&nodes[0].started(&long)), "running");
    wait_for_more(&witness, 5 * JOBS);
    nodes[0].create(&job("longer", NEVER, &gate.wait(), json!({})));
    let before = heartbeats(&nodes[0]).into_iter().min().expect("sessions");
    past.keep();
    wait_for_heartbeats(&nodes[0], Duration::ZERO);
    let longer = nodes[0].run_now("longer");
    assert_eq!(status(&nodes[0].started(&longer)), "running");
    wait_for_more(&witness, 10 * JOBS);
    let after = heartbeats(&nodes[0]).into_iter().min().expect("sessions");
    wait_for_heartbeats(&nodes[0], Duration::from_secs(1));
    past.go_back();

    nothing_starts(&nodes, &witness);
    let window = open_window(&nodes);
    assert!((before..after).contains(&time(&window, "from_at")), "{window} from {before} and before {after}");
    assert!(witness.lives().iter().all(|life| due(life) <= time(&window, "until_at")), "{window}");
    let told_of = told(&ear, "commits_lost", "open");
    assert!(told_of.starts_with("The database went back in time"), "{told_of}");
    let running = nodes[1].get(&format!("/v1/runs/{longer}"));
    assert_eq!(status(&running), "running", "its start was lost, and it was written back: {running}");
    let said = accept_in_time(&nodes[1]);
    assert!(said.contains("Accepted"), "{said}");
    assert!(said.contains(text(&window, "from_at")) && said.contains(text(&window, "until_at")), "{said}");
    assert!(told(&ear, "commits_lost", "recovered").contains("was accepted"));
    go_on(&nodes, &witness);

    gate.open();
    gate.open();
    assert_eq!(status(&nodes[1].ended(&long)), "succeeded", "what the copy knew and what still ran is recorded");
    assert_eq!(status(&nodes[1].ended(&longer)), "succeeded", "so is what the copy did not know");
    let verdict = judge(&witness, &settled(&nodes[0], &names), &window, true);
    for node in nodes {
        let log = node.log();
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
        assert!(node.drain().success());
    }
    eprintln!("{verdict}");
}

#[test]
fn nodes_that_a_restored_backup_does_not_know_end_and_wait_for_people() {
    let past = Past::of(databases::Server::start(crate::BRAND, &[]));
    let cluster = Cluster::new(&database_on(&past.server).url(), ENDURING);
    let witness = Witness::new(cluster.dir());
    let first = cluster.node("a");
    let names = eager(&first, &witness);
    wait_for_more(&witness, 5 * JOBS);
    let before = heartbeats(&first).into_iter().min().expect("sessions");
    assert!(first.drain().success());
    past.keep();

    let nodes: Vec<Server> = ["a", "b"].map(|name| cluster.node(name)).into();
    let after = heartbeats(&nodes[0]).into_iter().min().expect("sessions");
    wait_for_more(&witness, 10 * JOBS);
    wait_for_heartbeats(&nodes[0], Duration::from_secs(1));
    past.go_back();
    for node in nodes {
        let log = node.dir().join(carillon_tests::server::LOG);
        assert_eq!(node.wait().code(), Some(70));
        let sentence = "carillon: this node ended itself: the database went back in time";
        // Its last words come through a pipe.
        wait_until("it says why", || fs::read_to_string(&log).is_ok_and(|said| said.contains(sentence)));
    }

    let nodes: Vec<Server> = ["a", "b"].map(|name| cluster.unready_node(name)).into();
    nothing_starts(&nodes, &witness);
    let window = open_window(&nodes);
    assert!((before..after).contains(&time(&window, "from_at")), "{window} from {before} and before {after}");
    assert!(witness.lives().iter().all(|life| due(life) <= time(&window, "until_at")), "{window}");
    let (refused, problem) = nodes[0].call("POST", "/v1/cluster/accept", Some(&json!({})));
    assert_eq!(refused, 409, "{problem}");
    assert!(text(&problem, "detail").contains("forgotten"), "{problem}");
    let unknown = nodes[0].get("/v1/cluster")["still_unknown"].clone();
    assert_eq!(unknown["jobs"].as_array().map(Vec::len), Some(JOBS), "{unknown}");
    let mut accepted = Value::Null;
    wait_until_within(Duration::from_secs(90), "the loss may be accepted", || {
        let (status, answer) = nodes[0].call("POST", "/v1/cluster/accept", Some(&json!({})));
        accepted = answer;
        status == 200
    });
    let [of_answer] = &accepted["lost_commits"].as_array().expect("windows")[..] else { panic!("{accepted}") };
    for field in ["from_at", "until_at", "noticed_at", "session"] {
        assert_eq!(of_answer[field], window[field], "{accepted}");
    }
    assert!(time(of_answer, "accepted_at") >= time(of_answer, "until_at"), "{accepted}");
    go_on(&nodes, &witness);
    let verdict = judge(&witness, &settled(&nodes[0], &names), &window, false);
    for node in nodes {
        assert!(node.drain().success());
    }
    eprintln!("{verdict}");
}

#[test]
fn a_replica_that_lags_behind_takes_over_and_nothing_starts_twice() {
    let servers = Replicated::start(crate::BRAND);
    let cluster = Cluster::new(&servers.url(&database_on(servers.source())), ENDURING);
    let witness = Witness::new(cluster.dir());
    let nodes: Vec<Server> = ["a", "b"].map(|name| cluster.node(name)).into();
    let names = eager(&nodes[0], &witness);
    wait_for_more(&witness, 5 * JOBS);
    let before = heartbeats(&nodes[0]).into_iter().min().expect("sessions");
    servers.let_it_fall_behind().unwrap_or_else(|why| panic!("{why}"));
    wait_for_more(&witness, 10 * JOBS);
    let after = heartbeats(&nodes[0]).into_iter().min().expect("sessions");
    wait_for_heartbeats(&nodes[0], Duration::from_secs(1));
    let former = servers.source_number();
    servers.fail_over().unwrap_or_else(|why| panic!("{why}"));

    nothing_starts(&nodes, &witness);
    let window = open_window(&nodes);
    assert!((before..after).contains(&time(&window, "from_at")), "{window} from {before} and before {after}");
    let said = accept_in_time(&nodes[1]);
    assert!(said.contains("Accepted"), "{said}");
    go_on(&nodes, &witness);
    // Closed for writing, as people should start it.
    servers.start_again(former).unwrap_or_else(|why| panic!("{why}"));
    wait_for_more(&witness, 5 * JOBS);

    let verdict = judge(&witness, &settled(&nodes[0], &names), &window, true);
    for node in nodes {
        let log = node.log();
        assert!(log.contains("another server takes the writes now"), "{log}");
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
        assert!(node.drain().success());
    }
    eprintln!("{verdict}");
}
