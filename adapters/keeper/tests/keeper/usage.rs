//! The CPU time and the memory that a run used.

use std::time::Instant;

use carillon_domain::measured::Usage;
use carillon_keeper::KeeperHandle;

use crate::support::*;
use crate::tests;

tests![
    cpu_time_is_that_of_all_processes_and_not_of_the_clock,
    a_cgroup_also_counts_who_was_not_waited_for,
    memory_is_that_of_the_largest_process,
    a_killed_run_was_measured_too,
    what_never_ran_used_nothing,
];

/// Busy for some tenths of a second, in a process that is waited for.
const BUSY: &str = "bash -c 'for ((n = 0; n < 200000; n++)); do :; done'";
/// Far less than [`BUSY`] takes, and more than a bash that does nothing.
const IDLE_MS: u64 = 40;

fn used(keeper: &KeeperHandle, command: &str) -> impl Future<Output = Usage> {
    let mut child = start(keeper, script(command));
    async move {
        let exit = child.exit().await;
        assert_eq!(exit.exit_code, Some(0), "{}", text(&exit));
        exit.usage
    }
}

fn cpu_time_is_that_of_all_processes_and_not_of_the_clock() {
    for cgroups in BOTH {
        run(async {
            let keeper = keeper(cgroups);
            let busy = used(&keeper, BUSY).await.cpu_ms.expect("it was measured");
            assert!(busy > IDLE_MS, "{busy} ms with cgroups: {cgroups}");
            // The next one has the cgroup of the first.
            let began = Instant::now();
            let idle = used(&keeper, "sleep 0.2").await.cpu_ms.expect("it was measured");
            assert!(began.elapsed().as_millis() >= 200);
            assert!(idle < IDLE_MS, "{idle} ms with cgroups: {cgroups}, after {busy} ms of another run");
        });
    }
}

fn a_cgroup_also_counts_who_was_not_waited_for() {
    let witness = Witness::new();
    let done = witness.directory().join("done");
    nix::unistd::mkfifo(&done, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let text = format!(
        "(setsid bash -c '{}; echo > {done}' &); read -r < {done}",
        BUSY.replace('\'', "\""),
        done = done.display()
    );
    run(async {
        if hierarchy().is_none() {
            return skip("no cgroup can be made here");
        }
        let counted = used(&keeper(true), &text).await.cpu_ms.unwrap();
        let missed = used(&keeper(false), &text).await.cpu_ms.unwrap();
        assert!(counted > IDLE_MS && missed < IDLE_MS, "{counted} and {missed} ms");
    });
}

/// A hierarchy of cgroup v2.
fn hierarchy() -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find(|line| line.contains(" cgroup2 ") && is_root()).map(str::to_owned)
}

fn memory_is_that_of_the_largest_process() {
    let large = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); [ ${#x} = 40000000 ]";
    for cgroups in BOTH {
        run(async {
            let keeper = keeper(cgroups);
            let large = used(&keeper, &format!("bash -c '{}'", large.replace('\'', "\""))).await;
            let large = large.peak_memory_kib.expect("it was measured");
            assert!(large > 40_000_000 / 1_024, "{large} KiB");
            let small = used(&keeper, "true").await.peak_memory_kib.expect("it was measured");
            assert!((500..30_000).contains(&small), "{small} KiB after a run of {large} KiB");
        });
    }
}

fn a_killed_run_was_measured_too() {
    for cgroups in BOTH {
        run(async {
            let mut spawn = script(&format!("trap '' TERM; {BUSY}; while :; do sleep 1000; done"));
            spawn.timeout = Some(std::time::Duration::from_secs(2));
            spawn.kill_grace = std::time::Duration::from_millis(1);
            let exit = finish(&keeper(cgroups), spawn).await;
            assert_eq!(exit.signal, Some(libc::SIGKILL));
            assert!(exit.usage.cpu_ms > Some(IDLE_MS), "{:?}", exit.usage);
        });
    }
}

fn what_never_ran_used_nothing() {
    let exit = run(async { finish(&keeper(true), argv(["/no/such/program"])).await });
    assert_eq!(exit.usage, Usage::default(), "{:?}", exit.reason);
}
