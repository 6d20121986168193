//! A node that died and starts again on its machine: its former session is ended at once where nothing of it lives, and no sooner.

use carillon_tests::cluster::{Cluster, PATIENT};
use carillon_tests::jobs::job;
use carillon_tests::processes::{keeper_of, marked};
use carillon_tests::server::Server;
use carillon_tests::waiting::{wait_until, wait_until_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::{TAKEOVER, database, sessions};

/// A node with a run that lives, its child's mark and the run.
fn at_work(cluster: &Cluster, name: &str) -> (Server, String, String) {
    let mark = format!("at-work-{name}-{}", std::process::id());
    let node = cluster.node("a");
    node.create(&job("long", "@at 2090-01-01T00:00:00Z", &format!("while true; do sleep 1; done # {mark}"), json!({})));
    let run = node.run_now("long");
    node.started(&run);
    wait_until("the child lives", || !marked(&mark).is_empty());
    (node, mark, run)
}

fn live(node: &Server) -> usize {
    sessions(node).iter().filter(|session| session["state"] == "live").count()
}

/// Others would wait for 70 s.
#[test]
fn a_node_that_was_killed_gives_its_runs_back_when_it_starts_again() {
    for (name, others) in [("alone", 0), ("beside-another", 1)] {
        let database = database();
        let cluster = Cluster::new(&database.url(), PATIENT);
        let (node, mark, run) = at_work(&cluster, name);
        let other = (others > 0).then(|| cluster.node("b"));
        node.kill();
        wait_until("its keeper ends the child", || marked(&mark).is_empty());
        let node = cluster.node("a");
        wait_until_within(TAKEOVER, "the run is recorded", || node.run(&run)["status"] == "lost");
        wait_until("nothing is left of the session", || live(&node) == 1 + others);
        let again = node.run_now("long");
        node.started(&again);
        node.kill();
        drop(other);
    }
}

#[test]
fn a_former_session_stays_while_anything_of_it_may_live() {
    let database = database();
    let cluster = Cluster::new(&database.url(), PATIENT);
    let (node, mark, run) = at_work(&cluster, "frozen");
    let keeper = Pid::from_raw(keeper_of(node.pid()));
    kill(keeper, Signal::SIGSTOP).expect("the keeper is there");
    node.kill();
    let node = cluster.node("a");
    assert!(node.log().contains("is held by another process"), "{}", node.log());
    assert!(!marked(&mark).is_empty(), "nobody could end the child");
    assert_eq!((live(&node), node.run(&run)["status"].as_str()), (2, Some("running")));
    kill(keeper, Signal::SIGCONT).expect("the keeper is there");
    wait_until("its keeper ends the child", || marked(&mark).is_empty());
    node.kill();
}
