//! A server that is process 1 of a container.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use carillon_tests::fixture::directory;
use carillon_tests::server::{Server, binary};
use carillon_tests::{processes, skipped};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A program that starts `carillon` as process 1 of a new namespace.
fn as_process_one(directory: &Path) -> Option<PathBuf> {
    let unshare = "unshare --pid --fork --kill-child --mount-proc";
    let possible = Command::new("sh").args(["-c", &format!("{unshare} true")]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skipped::tell("carillon as process 1: this machine does not let the test make a pid namespace");
        return None;
    }
    let program = directory.join("carillon-as-process-one");
    let script = format!("#!/bin/sh\nexec {unshare} {} \"$@\"\n", binary().display());
    std::fs::write(&program, script).expect("the script can be written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it can be made executable");
    Some(program)
}

#[test]
fn process_one_hands_on_signals_and_reaps_orphans() {
    let dir = directory();
    let Some(program) = as_process_one(dir.path()) else { return };
    let server = Server::start_of(&program, dir.path());
    let [init] = processes::children(server.pid())[..] else { panic!("unshare has one child") };
    let [node] = processes::children(init)[..] else { panic!("process 1 has one child, the node") };
    // The child of process 1 is the node: nobody else has a keeper.
    processes::keeper_of(node);

    // As `podman exec` does it: the parent comes from outside, and what it leaves behind falls to process 1.
    let from_outside = |script: &str| {
        let target = init.to_string();
        let status =
            Command::new("nsenter").args(["--target", &target, "--pid", "--mount", "sh", "-c", script]).status();
        assert!(status.expect("nsenter can be started").success(), "{script}");
    };
    from_outside("setsid sleep 4217 >/dev/null 2>&1 &");
    server.wait_until("the orphan falls to process 1", || processes::children(init).len() == 2);
    let orphan = processes::children(init).into_iter().find(|pid| *pid != node).expect("an orphan");
    kill(Pid::from_raw(orphan), Signal::SIGKILL).expect("the orphan can be killed");
    server.wait_until("it is no zombie", || processes::state(orphan).is_none());

    kill(Pid::from_raw(init), Signal::SIGTERM).expect("process 1 can be told to stop");
    assert!(server.wait().success(), "the node drains, and its exit code is that of process 1");
}

#[test]
fn process_one_ends_with_a_node_that_is_killed() {
    let dir = directory();
    let Some(program) = as_process_one(dir.path()) else { return };
    let server = Server::start_of(&program, dir.path());
    let [init] = processes::children(server.pid())[..] else { panic!("unshare has one child") };
    let [node] = processes::children(init)[..] else { panic!("process 1 has one child, the node") };
    kill(Pid::from_raw(node), Signal::SIGKILL).expect("the node can be killed");
    assert_eq!(server.wait().code(), Some(128 + 9));
}
