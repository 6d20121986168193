//! A process that tries to escape (ignores SIGTERM, forks twice, makes a session of its own) dies with its run, whatever ends
//! that, with cgroups and without.

use std::time::Duration;

use carillon_executors::executor::{Exit, Outcome, Stop};
use carillon_keeper::{KeeperHandle, RunningChild};
use nix::sys::signal::Signal;

use crate::node::Node;
use crate::support::*;
use crate::tests;

tests![
    it_dies_on_a_timeout,
    it_dies_on_a_cancellation,
    it_dies_when_the_node_is_killed,
    it_dies_when_the_node_is_frozen,
    it_dies_with_its_marks_shed,
    it_dies_when_the_keeper_is_killed,
    a_main_process_dies_with_its_keeper_though_the_node_is_frozen,
    what_both_left_behind_dies_when_the_next_keeper_starts,
];

/// Starts an escaping run, lets `end` act once it is up, and checks that all is dead when the exit is reported.
fn escape(cgroups: bool, timeout: Option<Duration>, end: fn(&KeeperHandle, &RunningChild)) -> Exit {
    let mut witness = Witness::new();
    let mut spawn = script(&escaping(&witness));
    (spawn.timeout, spawn.kill_grace) = (timeout, Duration::from_millis(50));
    run(async {
        let keeper = keeper(cgroups);
        let mut child = start(&keeper, spawn);
        assert_eq!(witness.line(), "up");
        end(&keeper, &child);
        let exit = child.exit().await;
        if keeper.died().borrow().is_none() && exit.how != Outcome::Lost {
            assert!(witness.is_dead(), "reported before all were dead");
        }
        witness.wait_until_dead();
        exit
    })
}

fn it_dies_on_a_timeout() {
    for cgroups in BOTH {
        let exit = escape(cgroups, Some(Duration::from_millis(700)), |_, _| {});
        assert_eq!((exit.how, exit.signal), (Outcome::TimedOut, Some(libc::SIGKILL)));
    }
}

fn it_dies_on_a_cancellation() {
    for cgroups in BOTH {
        assert_eq!(escape(cgroups, None, |_, child| child.stop(Stop::Politely)).how, Outcome::Cancelled);
        assert_eq!(escape(cgroups, None, |_, child| child.stop(Stop::Now)).how, Outcome::Cancelled);
    }
}

fn it_dies_when_the_node_is_killed() {
    for cgroups in BOTH {
        let mut witness = Witness::new();
        let mut node = Node::start(3_600_000, cgroups, "-", &[&escaping(&witness)]);
        assert_eq!(witness.line(), "up");
        node.process.kill().unwrap();
        witness.wait_until_dead();
        until("the keeper has exited", || !std::path::Path::new(&format!("/proc/{}", node.keeper)).exists());
    }
}

fn it_dies_when_the_node_is_frozen() {
    for cgroups in BOTH {
        let mut witness = Witness::new();
        let mut node = Node::start(600, cgroups, "-", &[&escaping(&witness)]);
        assert_eq!(witness.line(), "up");
        signal(node.process.id(), Signal::SIGSTOP);
        witness.wait_until_dead();
        signal(node.process.id(), Signal::SIGCONT);
        assert_eq!(node.line(), "Lost the node did not renew its lease in time");
    }
}

/// No cgroup, another session, another group, another environment: such an orphan is killed as soon as it is seen.
fn it_dies_with_its_marks_shed() {
    let mut witness = Witness::new();
    let inner = format!("exec 9>{}; echo up >&9; sleep 1000", witness.path().display());
    let shed = format!("(env -i setsid /bin/bash -c '{inner}' &) ; exec sleep 1000");
    run(async {
        let keeper = keeper(false);
        let mut child = start(&keeper, script(&shed));
        assert_eq!(witness.line(), "up");
        child.stop(Stop::Now);
        child.exit().await;
        witness.wait_until_dead();
    });
}

fn it_dies_when_the_keeper_is_killed() {
    if !has_cgroups() {
        return skip("without cgroup v2 an escaped process outlives a killed keeper");
    }
    let exit = escape(true, None, |keeper, _| signal(keeper.pid(), Signal::SIGKILL));
    assert_eq!(exit.how, Outcome::Lost);
    assert!(exit.reason.unwrap().contains("the keeper"));
}

fn a_main_process_dies_with_its_keeper_though_the_node_is_frozen() {
    let mut witness = Witness::new();
    let main = format!("exec 9>{}; echo up >&9; trap '' TERM HUP; while :; do :; done", witness.path().display());
    let node = Node::start(3_600_000, false, "-", &[&main]);
    assert_eq!(witness.line(), "up");
    signal(node.process.id(), Signal::SIGSTOP);
    signal(node.keeper, Signal::SIGKILL);
    witness.wait_until_dead();
}

fn what_both_left_behind_dies_when_the_next_keeper_starts() {
    if !has_cgroups() {
        return skip("without cgroup v2 the leftovers of a killed node and keeper are unknown");
    }
    let mut witness = Witness::new();
    let mut node = Node::start(3_600_000, true, "-", &[&escaping(&witness)]);
    assert_eq!(witness.line(), "up");
    signal(node.process.id(), Signal::SIGSTOP);
    signal(node.keeper, Signal::SIGKILL);
    node.process.kill().unwrap();
    node.process.wait().unwrap();
    // It has escaped, unless a keeper of another test started in that time.
    run(async {
        let _next = keeper(true);
        witness.wait_until_dead();
    });
}

fn has_cgroups() -> bool {
    std::fs::read_to_string("/proc/mounts").unwrap().contains("cgroup2") && is_root()
}
