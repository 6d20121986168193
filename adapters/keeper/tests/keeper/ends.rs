//! How runs end: by themselves, by their timeout, because somebody asked.

use std::io::Write;
use std::time::Duration;

use carillon_executors::executor::{Outcome, Stop};
use carillon_keeper::Spawn;

use crate::support::*;
use crate::tests;

tests![
    a_timeout_asks_politely_first,
    a_timeout_kills_what_does_not_listen,
    a_stopped_process_hears_sigterm,
    cancelling_asks_politely_then_kills,
    a_dropped_child_is_killed,
    a_run_ends_with_its_main_process,
    five_hundred_at_once,
];

fn with_timeout(mut spawn: Spawn, timeout_ms: u64, grace_ms: u64) -> Spawn {
    spawn.timeout = Some(Duration::from_millis(timeout_ms));
    spawn.kill_grace = Duration::from_millis(grace_ms);
    spawn
}

fn a_timeout_asks_politely_first() {
    let spawn = script("trap 'echo bye; exit 5' TERM; echo hi; while :; do sleep 1000 & wait; done");
    let exit = run(async { finish(&keeper(true), with_timeout(spawn, 300, 20_000)).await });
    assert_eq!((exit.how, exit.exit_code, text(&exit)), (Outcome::TimedOut, Some(5), "hi\nbye\n"));
    assert_eq!(exit.reason.unwrap(), "still running after its timeout of 300ms");
}

fn a_timeout_kills_what_does_not_listen() {
    let spawn = script("trap '' TERM; echo deaf; while :; do sleep 1000; done");
    let exit = run(async { finish(&keeper(true), with_timeout(spawn, 300, 100)).await });
    assert_eq!((exit.how, exit.signal, text(&exit)), (Outcome::TimedOut, Some(libc::SIGKILL), "deaf\n"));
    assert!(exit.reason.unwrap().ends_with("SIGTERM did not end it within 100ms, so it was killed"));
}

fn a_stopped_process_hears_sigterm() {
    let exit = run(async { finish(&keeper(true), with_timeout(script("kill -STOP $$"), 200, 20_000)).await });
    assert_eq!((exit.how, exit.signal), (Outcome::TimedOut, Some(libc::SIGTERM)));
}

fn cancelling_asks_politely_then_kills() {
    let mut witness = Witness::new();
    let text = format!(
        "trap 'echo bye >&9' TERM; exec 9>{}; echo up >&9; while :; do sleep 0.01; done",
        witness.path().display()
    );
    run(async {
        let keeper = keeper(true);
        let mut spawn = script(&text);
        spawn.kill_grace = Duration::from_secs(3600);
        let mut child = start(&keeper, spawn);
        assert_eq!(witness.line(), "up");
        child.stop(Stop::Politely);
        assert_eq!(witness.line(), "bye");
        child.stop(Stop::Now);
        let exit = child.exit().await;
        assert_eq!((exit.how, exit.signal), (Outcome::Cancelled, Some(libc::SIGKILL)));
    });
    assert!(witness.is_dead());
}

fn a_dropped_child_is_killed() {
    let mut witness = Witness::new();
    run(async {
        let keeper = keeper(true);
        let child = start(&keeper, script(&escaping(&witness)));
        assert_eq!(witness.line(), "up");
        drop(child);
        witness.wait_until_dead();
    });
}

fn a_run_ends_with_its_main_process() {
    for cgroups in BOTH {
        let mut witness = Witness::new();
        let fifo = witness.path().display().to_string();
        let keeps_the_pipe = format!("(exec 9>{fifo}; echo up >&9; trap '' TERM HUP; while :; do sleep 1000; done) &");
        let leaves = format!(
            "{keeps_the_pipe} (setsid bash -c 'exec 9>{fifo}; echo up >&9; sleep 1000' &) ; cat {fifo}.go; echo done; exit 4"
        );
        nix::unistd::mkfifo(&witness.directory().join("fifo.go"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        run(async {
            let keeper = keeper(cgroups);
            let mut child = start(&keeper, script(&leaves));
            let go = witness.directory().join("fifo.go");
            assert_eq!((witness.line(), witness.line()), ("up".to_owned(), "up".to_owned()));
            std::fs::write(go, "").unwrap();
            let exit = child.exit().await;
            assert_eq!((exit.how, exit.exit_code, text(&exit)), (Outcome::Failed, Some(4), "done\n"));
            assert!(witness.is_dead(), "an exit is reported when nothing is left of the run");
        });
    }
}

fn five_hundred_at_once() {
    let mut witness = Witness::new();
    let gate = witness.directory().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let text = format!("exec 9>{} <{}; echo up >&9; read -r; exit 7", witness.path().display(), gate.display());
    let mut gate = std::fs::OpenOptions::new().read(true).write(true).open(gate).unwrap();
    run(async {
        let keeper = keeper(true);
        let mut children: Vec<_> = (0..500).map(|_| start(&keeper, script(&text))).collect();
        (0..500).for_each(|_| assert_eq!(witness.line(), "up"));
        gate.write_all(&[b'\n'; 500]).unwrap();
        for child in &mut children {
            assert_eq!(child.exit().await.exit_code, Some(7));
        }
    });
    assert!(witness.is_dead());
}
