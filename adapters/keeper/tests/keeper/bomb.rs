//! A fork bomb dies, and the keeper serves others meanwhile. The bomb runs under RLIMIT_NPROC as a user of its own, so that
//! the machine survives a failure.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use carillon_executors::executor::Outcome;
use carillon_keeper::UserIds;

use crate::support::*;
use crate::tests;

tests![a_fork_bomb_in_one_group_dies, a_fork_bomb_of_sessions_dies];

/// Users that exist nowhere else, one for each bomb.
fn bomb(uid: u32, cgroups: bool, body: &str) {
    if !is_root() {
        return skip("a fork bomb under a limit of its own needs root");
    }
    let mut witness = Witness::new();
    let path = witness.directory().join("bomb");
    let fifo = witness.path().display().to_string();
    std::fs::write(&path, format!("#!/bin/bash\ntrap '' TERM HUP\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spawn = script(&format!("ulimit -u 150; exec 9>{fifo}; echo up >&9; exec {}", path.display()));
    spawn.user = Some(UserIds { uid, gid: uid, groups: vec![uid] });
    (spawn.timeout, spawn.kill_grace) = (Some(Duration::from_millis(1500)), Duration::from_millis(50));
    run(async {
        let keeper = keeper(cgroups);
        let mut child = start(&keeper, spawn);
        for _ in 0..20 {
            assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
        }
        assert_eq!(child.exit().await.how, Outcome::TimedOut);
        assert!(witness.is_dead());
        assert_eq!(finish(&keeper, argv(["true"])).await.how, Outcome::Succeeded);
    });
}

fn a_fork_bomb_in_one_group_dies() {
    bomb(61_001, true, "b() { b | b & sleep 0.05; }; b; wait; sleep 1000");
    bomb(61_002, false, "b() { b | b & sleep 0.05; }; b; wait; sleep 1000");
}

fn a_fork_bomb_of_sessions_dies() {
    let sessions = "while :; do (setsid \"$0\" &) 2>/dev/null; sleep 0.05; done";
    bomb(61_003, true, sessions);
    bomb(61_004, false, sessions);
}
