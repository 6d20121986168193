//! The lease: what happens when it runs out, when the keeper is hit, and how long the lock is held.

use std::fs::File;

use carillon_executors::executor::Outcome;
use carillon_keeper::{KeeperHandle, boottime_ms};
use nix::sys::signal::Signal;

use crate::node::Node;
use crate::support::*;
use crate::tests;

tests![
    nothing_starts_without_a_lease,
    the_end_of_the_lease_kills_and_refuses_until_it_is_renewed,
    the_keeper_ignores_polite_signals,
    a_killed_keeper_loses_its_runs,
    the_lock_is_held_until_the_last_child_is_dead,
    closing_leaves_nothing,
];

fn nothing_starts_without_a_lease() {
    run(async {
        let keeper = KeeperHandle::start(options(true)).unwrap();
        let exit = finish(&keeper, argv(["true"])).await;
        assert_eq!(
            (exit.how, exit.reason.as_deref()),
            (Outcome::Lost, Some("the node did not renew its lease in time"))
        );
        keeper.extend_deadline(boottime_ms() - 1);
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Lost);
        keeper.extend_deadline(boottime_ms() + 60_000);
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
    });
}

fn the_end_of_the_lease_kills_and_refuses_until_it_is_renewed() {
    run(async {
        let keeper = KeeperHandle::start(options(true)).unwrap();
        let deadline_ms = boottime_ms() + 300;
        keeper.extend_deadline(deadline_ms);
        let mut children =
            [start(&keeper, script("trap '' TERM; sleep 1000")), start(&keeper, argv(["sleep", "1000"]))];
        for child in &mut children {
            let exit = child.exit().await;
            assert!(boottime_ms() >= deadline_ms);
            assert_eq!((exit.how, exit.signal), (Outcome::Lost, Some(libc::SIGKILL)));
            assert_eq!(exit.reason.as_deref(), Some("the node did not renew its lease in time"));
        }
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Lost);
        keeper.extend_deadline(u64::MAX);
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
    });
}

fn the_keeper_ignores_polite_signals() {
    run(async {
        let keeper = keeper(true);
        // Once something ran, the keeper is past its start.
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
        for name in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGPIPE]
        {
            signal(keeper.pid(), name);
        }
        let exit = finish(&keeper, script("ps -o sid= -p $PPID; ps -o tty= -p $PPID")).await;
        assert_eq!(text(&exit).split_whitespace().collect::<Vec<_>>(), [&keeper.pid().to_string(), "?"]);
    });
}

fn a_killed_keeper_loses_its_runs() {
    for cgroups in BOTH {
        let mut witness = Witness::new();
        let fifo = witness.path().display().to_string();
        // The main process and one in its group.
        let text = format!("exec 9>{fifo}; (trap '' HUP TERM; echo up >&9; sleep 1000) & sleep 1000");
        run(async {
            let keeper = keeper(cgroups);
            let mut child = start(&keeper, script(&text));
            assert_eq!(witness.line(), "up");
            let mut died = keeper.died();
            signal(keeper.pid(), Signal::SIGKILL);
            assert_eq!(child.exit().await.how, Outcome::Lost);
            let sentence = died.wait_for(Option::is_some).await.unwrap().clone().unwrap();
            assert!(sentence.contains("signal: 9"), "{sentence}");
            assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Lost);
            witness.wait_until_dead();
        });
    }
}

fn the_lock_is_held_until_the_last_child_is_dead() {
    let mut witness = Witness::new();
    let path = witness.directory().join("lease.lock");
    let mut node = Node::start(3_600_000, true, path.to_str().unwrap(), &[&escaping(&witness)]);
    assert_eq!(witness.line(), "up");
    let lock = File::open(&path).unwrap();
    assert!(lock.try_lock().is_err());
    // A stopped child makes no difference; a stopped keeper does: then nothing is released.
    signal(node.keeper, Signal::SIGSTOP);
    node.process.kill().unwrap();
    node.process.wait().unwrap();
    assert!(lock.try_lock().is_err(), "the keeper holds the lock without its node");
    assert!(!witness.is_dead());
    signal(node.keeper, Signal::SIGCONT);
    lock.lock().unwrap();
    assert!(witness.is_dead(), "the lock was released while a child lived");
}

fn closing_leaves_nothing() {
    let mut witness = Witness::new();
    let text = escaping(&witness);
    run(async {
        let keeper = keeper(true);
        let mut child = start(&keeper, script(&text));
        assert_eq!(witness.line(), "up");
        keeper.close().await;
        assert!(witness.is_dead());
        let exit = child.exit().await;
        assert_eq!((exit.how, exit.reason.as_deref()), (Outcome::Lost, Some("the node went away")));
        assert!(keeper.died().borrow().as_deref().unwrap().ends_with("exit status: 0"));
        let leftovers = std::process::Command::new("find")
            .args(["/sys/fs/cgroup", "-maxdepth", "3", "-name", &format!("carillon-keeper-{}", keeper.pid())])
            .output()
            .unwrap();
        assert_eq!(leftovers.stdout, b"", "its cgroups are removed");
    });
}
