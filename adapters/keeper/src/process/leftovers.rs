//! Assigns orphans to runs, and kills the orphans that belong to no living run.

use std::collections::{HashMap, HashSet};
use std::io;

use carillon_domain::id::RunId;

use crate::process::child_run::{Phase, Run};
use crate::process::orphans::{Children, cgroup_of, kill_trees, run_in_environment, stat};

/// The keeper's runs, and two ways to find them.
#[derive(Default)]
pub(crate) struct Table {
    /// Runs by key; keys are never used twice.
    pub(crate) runs: HashMap<u64, Run>,
    pub(crate) by_id: HashMap<RunId, u64>,
    /// By main process; after its end the number still means its session and its group, until the run is over.
    pub(crate) by_pid: HashMap<i32, u64>,
}

impl Table {
    /// The run whose main process `pid` is and still lives (or waits to be reaped).
    pub(crate) fn main_process(&mut self, pid: i32) -> Option<(u64, &mut Run)> {
        let key = *self.by_pid.get(&pid)?;
        self.runs.get_mut(&key).filter(|run| run.phase != Phase::Ending).map(|run| (key, run))
    }

    fn is_alive(&self, key: u64) -> bool {
        self.runs.get(&key).is_some_and(|run| run.phase != Phase::Ending)
    }

    /// The run that a process belongs to, by what it cannot or did not care to change.
    fn owner_of(&self, pid: i32) -> Option<u64> {
        let stat = stat(pid)?;
        if let Some(key) = self.by_pid.get(&stat.session).or_else(|| self.by_pid.get(&stat.group)) {
            return Some(*key);
        }
        let cgroup = cgroup_of(pid).unwrap_or_default();
        let mut runs = self.runs.iter();
        let in_cgroup = runs.find(|(_, run)| run.cgroup.as_ref().is_some_and(|own| own.holds(&cgroup)));
        in_cgroup.map(|(key, _)| *key).or_else(|| self.by_id.get(&run_in_environment(pid)?).copied())
    }
}

struct Orphan {
    owner: Option<u64>,
    doomed: bool,
    /// Not a setuid program that has become somebody whom the keeper may not kill.
    killable: bool,
}

/// The orphans known so far.
pub(crate) struct Leftovers {
    children: Children,
    known: HashMap<i32, Orphan>,
}

impl Leftovers {
    pub(crate) fn new() -> Self {
        Self { children: Children::open(), known: HashMap::new() }
    }

    /// Kills the orphans of runs whose main process has ended, with all their descendants. Also those that bear no mark of a living
    /// run: a process that has shed every mark must not outlive a run unseen. Returns the runs of which something is left.
    pub(crate) fn sweep(&mut self, table: &mut Table) -> HashSet<u64> {
        let (mut doomed, mut held) = (Vec::new(), HashSet::new());
        for pid in self.children.list() {
            if table.main_process(pid).is_some() {
                continue;
            }
            let new = || Orphan { owner: table.owner_of(pid), doomed: false, killable: is_killable(pid) };
            let orphan = self.known.entry(pid).or_insert_with(new);
            if orphan.owner.is_some_and(|owner| table.is_alive(owner)) {
                continue;
            }
            held.extend(orphan.owner.filter(|_| orphan.killable));
            if !orphan.doomed {
                orphan.doomed = true;
                doomed.push(pid);
            }
        }
        if !doomed.is_empty() {
            kill_trees(&doomed);
        }
        held
    }

    /// An orphan was reaped; its number may come again.
    pub(crate) fn forget(&mut self, pid: i32) {
        self.known.remove(&pid);
    }

    /// Whether the keeper has no child at all, not even a zombie.
    pub(crate) fn no_child_is_left(&mut self) -> bool {
        self.children.list().is_empty()
    }
}

fn is_killable(pid: i32) -> bool {
    // SAFETY: signal 0 only asks; the pid is that of an unreaped child, so it was not reused.
    let asked = unsafe { libc::kill(pid, 0) };
    asked == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
}
