//! Stories of a real keeper with real children.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use carillon_domain::guard::{self, Guard, enabled};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::time::BootTime;
use carillon_executors::executor::{Live, Outcome, Stop};
use carillon_keeper::{KeeperHandle, KeeperOptions, RunningChild, Spawn, boottime_ms};
use carillon_store::sqlite::Lease;

use super::fixtures::run;

/// A child does this. It outlives each deadline here by more than a busy machine stands still.
const LONG: &str = "sleep 5";

/// The keeper's part of the process that runs the stories: the guards that are removed, then the keeper's own arguments.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let names = arguments.next().and_then(|names| names.into_string().ok()).unwrap_or_default();
    let guards: Vec<Guard> = names.split(',').filter_map(Guard::from_name).collect();
    match guards[..] {
        [] => {}
        [one] => _ = guard::remove(one),
        [one, other, ..] => _ = guard::remove_both([one, other]),
    }
    carillon_keeper::main(arguments)
}

fn start(lock: Option<&Lease>) -> KeeperHandle {
    let removed: Vec<&str> = Guard::ALL.into_iter().filter(|guard| !enabled(*guard)).map(Guard::name).collect();
    let lock = lock.map(|lease| std::os::fd::AsFd::as_fd(lease).try_clone_to_owned().expect("a descriptor"));
    let program = std::env::current_exe().expect("this program");
    let arguments = vec!["keeper".into(), removed.join(",").into()];
    KeeperHandle::start(KeeperOptions { program, arguments, lock, cgroups: false, kill_node_after: None })
        .expect("a keeper")
}

fn session() -> SessionId {
    SessionId::from_random(1)
}

fn child(keeper: &KeeperHandle, number: u64, script: &str) -> RunningChild {
    let run = RunId::drawn(session(), number);
    let spawn = Spawn {
        run,
        argv: ["bash", "-c", script].map(|word| CString::new(word).expect("no zero")).to_vec(),
        env: vec![c"PATH=/usr/bin:/bin".into(), CString::new(format!("CARILLON_RUN_ID={run}")).expect("no zero")],
        dir: c"/".into(),
        dir_or_root: false,
        stdin: None,
        user: None,
        timeout: None,
        kill_grace: Duration::from_secs(1),
    };
    keeper.spawn(spawn, Live::unheard())
}

fn lives(number: u64) -> Verdict {
    must::dead_before_sweep(session(), [(session(), RunId::drawn(session(), number))])
}

/// The node is frozen: nobody renews the lease. The child would take longer.
pub fn the_deadline_passes() -> Verdict {
    run(async {
        let keeper = start(None);
        keeper.extend_deadline(boottime_ms() + 300);
        let exit = child(&keeper, 1, LONG).exit().await;
        if exit.how == Outcome::Succeeded { lives(1) } else { Ok(()) }
    })
}

/// The node is killed. The child says so if it comes to its end by itself.
pub fn the_node_goes_before_its_deadline() -> Verdict {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let (begun, ended) = (directory.path().join("begun"), directory.path().join("ended"));
        let keeper = start(None);
        keeper.extend_deadline(boottime_ms() + 1_000);
        let _child = child(&keeper, 1, &format!("touch {}; {LONG}; touch {}", begun.display(), ended.display()));
        wait_for(&begun).await;
        keeper.close().await;
        if ended.exists() { lives(1) } else { Ok(()) }
    })
}

async fn wait_for(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The node was frozen between the answer of the store and its order, and the keeper has killed what lived.
pub fn an_order_comes_after_the_deadline() -> Verdict {
    run(async {
        let keeper = start(None);
        let deadline_ms = boottime_ms() + 50;
        keeper.extend_deadline(deadline_ms);
        child(&keeper, 1, "sleep 1000").exit().await;
        let exit = child(&keeper, 2, "exit 0").exit().await;
        match exit.how {
            Outcome::Succeeded => {
                must::starts_within_lease(BootTime::from_ms(deadline_ms), BootTime::from_ms(boottime_ms()))
            }
            _ => Ok(()),
        }
    })
}

/// The server is killed, and its keeper has not come to killing its children yet.
pub fn the_server_goes_before_its_child() -> Verdict {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("carillon.db");
        File::create(&path).expect("a file");
        let lease = Lease::acquire(&path, Duration::ZERO).expect("the lease");
        let keeper = start(Some(&lease));
        keeper.extend_deadline(u64::MAX);
        assert_eq!(child(&keeper, 1, "exit 0").exit().await.how, Outcome::Succeeded);
        let mut long = child(&keeper, 2, "sleep 1000");
        drop(lease);
        let verdict = if Lease::acquire(&path, Duration::ZERO).is_ok() { lives(2) } else { Ok(()) };
        long.stop(Stop::Now);
        long.exit().await;
        verdict
    })
}
