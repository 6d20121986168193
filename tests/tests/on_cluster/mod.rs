//! Clusters of real nodes on a real server, `crate::BRAND`: nothing starts twice and nothing is missed silently, whatever
//! becomes of a node.

mod alerts;
mod any_node;
mod cut_wire;
mod events;
mod in_process;
mod pages;
mod starts_again;
mod together;
mod went_back;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use carillon_checker::fault::End;
use carillon_checker::{Evidence, judge};
use carillon_tests::chaos::now_us;
use carillon_tests::cluster::{Cluster, Member, PATIENT, STEADY, Witness};
use carillon_tests::databases::{self, Database};
use carillon_tests::fixture::lines;
use carillon_tests::jobs::{job, status};
use carillon_tests::processes::marked;
use carillon_tests::server::{Server, binary};
use carillon_tests::waiting::{wait_until, wait_until_within};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Longer than a dead node is noticed, swept and taken over.
const TAKEOVER: Duration = Duration::from_secs(40);
/// Within this, jobs are handed over by who leaves in good order.
const HANDED_OVER: Duration = Duration::from_secs(5);

fn database() -> Database {
    database_on(databases::Server::shared(crate::BRAND))
}

fn database_on(server: &databases::Server) -> Database {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(server.database())
}

fn each_second(server: &Server, jobs: usize, command: &str, more: &Value) -> Vec<String> {
    scheduled(server, jobs, |_| "@every 1s".to_owned(), command, more)
}

/// A third of these falls due each second, each of them every three: room for a run on a machine that is held up for seconds.
fn each_three_seconds(server: &Server, jobs: usize, command: &str, more: &Value) -> Vec<String> {
    scheduled(server, jobs, |n| format!("{}-59/3 * * * * *", n % 3), command, more)
}

fn scheduled(
    server: &Server,
    jobs: usize,
    schedule: impl Fn(usize) -> String,
    command: &str,
    more: &Value,
) -> Vec<String> {
    let names: Vec<String> = (0..jobs).map(|n| format!("job-{n}")).collect();
    let of = |(n, name): (usize, &String)| job(name, &schedule(n), command, more.clone());
    let items: Vec<_> = names.iter().enumerate().map(of).collect();
    server.post("/v1/jobs:batch", &json!({ "items": items }));
    names
}

fn settled(server: &Server, names: &[String]) -> Vec<Value> {
    server.settle(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn sessions(server: &Server) -> Vec<Value> {
    server.get("/v1/cluster")["items"].as_array().expect("a listing has items").clone()
}

/// The command line, asking a node.
fn carillon(server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments).env("CARILLON_SERVER", server.url()).env("CARILLON_TOKEN", server.token());
    command.output().expect("the binary can be started")
}

/// Waits until the witness has so many lines more.
fn wait_for_more(witness: &Witness, lines: usize) {
    let before = witness.len();
    wait_until("the jobs go on", || witness.len() >= before + lines);
}

/// How the processes of a node have ended so far.
fn ends(node: &Member) -> Vec<End> {
    let at_us = |at: Instant| {
        i64::try_from(now_us()).expect("a time") - i64::try_from(at.elapsed().as_micros()).expect("a time")
    };
    node.ends().into_iter().map(|(at, how)| End { node: node.name().to_owned(), at_us: at_us(at), how }).collect()
}

#[test]
fn a_killed_and_a_frozen_node_are_taken_over_and_nothing_starts_twice() {
    let database = database();
    let cluster = Cluster::new(&database.url(), STEADY);
    let witness = Witness::new(cluster.dir());
    let nodes: Vec<Member> = ["a", "b", "c"].map(|name| cluster.member(name)).into();
    let third = nodes[2].server().expect("it runs");
    let names = each_second(&third, 30, &witness.command(2, 200, "0"), &json!({}));
    wait_for_more(&witness, 300);
    nodes[0].signal(Signal::SIGKILL);
    wait_until_within(TAKEOVER, "the killed node runs again", || {
        nodes[0].server().is_some() && nodes[0].ends().len() == 1
    });
    wait_for_more(&witness, 300);

    let frozen = nodes[1].server().expect("it runs");
    let its_session =
        |server: &Server| sessions(server).into_iter().any(|of| of["node"] == "b" && of["state"] == "live");
    frozen.signal(Signal::SIGSTOP);
    wait_until_within(TAKEOVER, "the frozen node is ended by the others", || !its_session(&third));
    wait_for_more(&witness, 300);
    frozen.signal(Signal::SIGCONT);
    drop(frozen);
    wait_until_within(TAKEOVER, "the thawed node is started anew", || {
        nodes[1].server().is_some() && its_session(&third)
    });
    assert!(nodes[1].ends().iter().any(|(_, how)| how.contains("70")), "fenced: {:?}", nodes[1].ends());
    let told = lines(&cluster.dir().join("b").join(carillon_tests::server::LOG));
    assert!(told.iter().any(|line| line.contains("this node did not run for")), "{told:?}");
    wait_for_more(&witness, 100);

    let runs = settled(&third, &names);
    let verdict = judge(&Evidence { ends: nodes.iter().flat_map(ends).collect(), ..witness.evidence(&runs) });
    assert!(verdict.is_clean(), "{verdict}");
    for node in nodes {
        let log = node.server().map(|server| server.log()).unwrap_or_default();
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
        assert!(node.drain().contains("exit status: 0"));
    }
    eprintln!("{verdict}");
}

#[test]
fn nodes_restarted_one_after_another_miss_nothing() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let witness = Witness::new(cluster.dir());
    let mut nodes: Vec<Server> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    // Due times that pass while a busy machine hands a job over are made good.
    let catching_up = json!({"misfire": {"policy": "catch_up", "grace": "5s"}, "overlap": "delay"});
    let names = each_three_seconds(&nodes[0], 90, &witness.command(1, 100, "0"), &catching_up);
    for name in ["a", "b", "c"] {
        wait_for_more(&witness, 220);
        let leaving = nodes.remove(0);
        assert!(leaving.drain().success(), "a drain is an end in good order");
        let gone = sessions(&nodes[0]).iter().all(|session| session["node"] != name);
        assert!(gone, "who has left in good order holds nothing and is not waited for");
        nodes.push(cluster.node(name));
    }
    wait_for_more(&witness, 220);
    let runs = settled(&nodes[0], &names);
    let verdict = judge(&witness.evidence_every(3, &runs));
    assert!(verdict.is_clean(), "{verdict}");
    assert!(runs.iter().all(|run| status(run) == "succeeded"), "{verdict}");
    let lag = runs.iter().filter_map(|run| run["lag_ms"].as_u64()).max().map(Duration::from_millis);
    assert!(
        lag.is_some_and(|lag| lag < HANDED_OVER),
        "{lag:?}; who takes over from the dead waits for 70 s: {verdict}"
    );
    eprintln!("{verdict}");
}

#[test]
fn a_node_that_loses_the_database_ends_its_children_and_then_itself() {
    let server = databases::Server::start(crate::BRAND, &[]);
    let cluster = Cluster::new(&database_on(&server).url(), STEADY);
    let node = cluster.node("a");
    let mark = format!("lonely-{}", std::process::id());
    let command = format!("trap '' TERM; while true; do sleep 1; done # {mark}");
    node.create(&job("stubborn", "@at 2090-01-01T00:00:00Z", &command, json!({})));
    let run = node.run_now("stubborn");
    node.started(&run);
    wait_until("the child lives", || !marked(&mark).is_empty());
    server.freeze();
    let status = node.wait();
    assert_eq!(status.code(), Some(70));
    assert_eq!(marked(&mark), Vec::<i32>::new(), "children die first");
    server.thaw();
    let node = cluster.node("a");
    wait_until_within(TAKEOVER, "the run is recorded", || node.run(&run)["status"] == "lost");
}

#[test]
fn a_fourth_node_takes_its_share_and_hardly_anything_else_moves() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let mut nodes: Vec<Server> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    let held = |nodes: &[Server]| -> Vec<Vec<u64>> {
        let of = |node: &Server| {
            let name = node.dir().file_name().expect("a name").to_string_lossy().into_owned();
            let all = sessions(node);
            let mine = all.iter().find(|session| session["node"] == *name).expect("its own session");
            mine["partitions"].as_array().expect("partitions").iter().filter_map(Value::as_u64).collect()
        };
        nodes.iter().map(of).collect()
    };
    let whole = |shares: &[Vec<u64>]| {
        let mut all: Vec<u64> = shares.concat();
        all.sort_unstable();
        all == (0..16).collect::<Vec<u64>>()
    };
    wait_until("three share", || whole(&held(&nodes)));
    let before = held(&nodes);
    nodes.push(cluster.node("d"));
    wait_until("four share", || whole(&held(&nodes)) && !held(&nodes)[3].is_empty());
    let after = held(&nodes);
    let moved_among_others: usize =
        (0..3).map(|n| after[n].iter().filter(|partition| !before[n].contains(partition)).count()).sum();
    // Its own share comes to it; a few others change hands so that the shares are even.
    assert!(moved_among_others <= 4, "{before:?} {after:?}");
    assert!(after.iter().all(|share| share.len() == 4), "{after:?}");
}

#[test]
fn a_lock_row_that_is_missing_stops_the_node_with_a_sentence() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let node = cluster.node("a");
    let names = each_second(&node, 20, "true", &json!({}));
    node.wait_for_runs(&names[0], 1, |run| status(run) == "succeeded");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(database.run(&["DELETE FROM lock_row WHERE id > 4"]));
    // A job that runs already is claimed in its finishes, under no lock: somebody must claim.
    each_second(&node, 40, "true", &json!({}));
    let said = node.wait_for_log("carillon: the lock row");
    assert!(said.contains("lock_row"), "{said}");
    assert_eq!(node.wait().code(), Some(1));
}

#[test]
fn a_timing_that_breaks_the_fencing_inequality_is_refused_with_the_numbers() {
    let database = database();
    let cluster = Cluster::new(&database.url(), "[session]\nexpire_after = \"15s\"\n");
    let home = cluster.dir().join("a");
    std::fs::create_dir_all(&home).expect("a directory");
    let url = database.url();
    let text = format!("[session]\nexpire_after = \"15s\"\n[store]\nurl = \"{url}\"\n");
    std::fs::write(home.join("carillon.toml"), text).expect("the configuration can be written");
    let Err((status, said)) = Server::try_start(&home, &[]) else { panic!("it must not start") };
    assert_eq!(status.code(), Some(2));
    assert!(said.contains("19190 ms") && said.contains("15000 ms"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn the_log_and_the_answers_show_no_password() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let node = cluster.node("a");
    assert!(node.log().contains("mysql://127.0.0.1"), "{}", node.log());
    assert!(!node.log().contains("secret"), "{}", node.log());
    let begun = Instant::now();
    assert!(node.drain().success());
    assert!(begun.elapsed() < Duration::from_secs(20));
    let log = cluster.dir().join("a").join(carillon_tests::server::LOG);
    assert!(lines(&log).iter().all(|line| !line.contains("secret")));
}
