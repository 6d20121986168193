//! All runs of the keeper: starts, stops, timeouts, reaping and reports.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::rc::Rc;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::RunId;
use carillon_domain::measured::Usage;
use carillon_domain::run::Outcome;
use nix::sys::epoll::Epoll;

use crate::exit::{Exit, LEASE_OVER, Stop};
use crate::output::Output;
use crate::process::cgroup::{Cgroup, Cgroups};
use crate::process::child_run::{Phase, Pipe, Run};
use crate::process::launch::child::{self, LaunchContext};
use crate::process::launch::failure::{LaunchFailure, Names};
use crate::process::leftovers::{Leftovers, Table};
use crate::process::node_socket::Link;
use crate::process::signals::{kill_group, peek_zombie, reap, terminate_group, whole_ms};
use crate::protocol::frames::Report;
use crate::spawn_request::Spawn;

/// Children reaped in one round.
const REAPS_PER_ROUND: usize = 256;
/// Output read from one run in one round.
const READ_BYTES: usize = 64 << 10;
/// How soon and how late the keeper looks again at what an ended run left behind; doubled each time.
const RECHECK_MS: (u64, u64) = (1, 64);

pub(crate) struct Runs {
    epoll: Rc<Epoll>,
    place: LaunchContext,
    failures: File,
    cgroups: Option<Cgroups>,
    table: Table,
    leftovers: Leftovers,
    next_key: u64,
    deadline_ms: u64,
    /// The deadline has passed and was acted upon.
    fenced: bool,
    /// The node is gone for good.
    abandoned: bool,
    /// `(when, key)` of every run that has a `wake_at_ms`.
    wakes: BTreeSet<(u64, u64)>,
    /// Runs whose main process has ended, oldest first.
    ending: Vec<u64>,
    recheck_at_ms: Option<u64>,
    recheck_delay_ms: u64,
    may_reap: bool,
    buffer: Vec<u8>,
}

impl Runs {
    /// Without a lease: everything is refused until the deadline is extended for the first time.
    pub(crate) fn new(epoll: Rc<Epoll>, place: LaunchContext, failures: File, cgroups: Option<Cgroups>) -> Self {
        Self {
            epoll,
            place,
            failures,
            cgroups,
            table: Table::default(),
            leftovers: Leftovers::new(),
            next_key: 0,
            deadline_ms: 0,
            fenced: true,
            abandoned: false,
            wakes: BTreeSet::new(),
            ending: Vec::new(),
            recheck_at_ms: None,
            recheck_delay_ms: RECHECK_MS.0,
            may_reap: false,
            buffer: vec![0; READ_BYTES],
        }
    }

    /// Starts a child, or reports at once that it could not.
    pub(crate) fn spawn(&mut self, spawn: Box<Spawn>, now_ms: u64, link: &mut Link) {
        let run = spawn.run;
        if self.table.by_id.contains_key(&run) {
            return link.report(&Report::Note(format!("run {run} is there already and was not started again")));
        }
        if now_ms >= self.deadline_ms && enabled(Guard::KeeperSpawn) {
            return link.report(&Report::Ended { run, exit: Exit::without_process(Outcome::Lost, LEASE_OVER) });
        }
        let cgroup = self.take_cgroup(link);
        let (timeout, kill_grace, names) = (spawn.timeout, spawn.kill_grace, Names::of(&spawn));
        let directory = cgroup.as_ref().map(Cgroup::directory);
        let started = child::start(spawn, self.deadline_ms, &mut self.place, directory);
        let born = match started {
            Ok(born) => born,
            Err(sentence) => {
                self.give_back(cgroup);
                return link.report(&Report::Ended { run, exit: Exit::without_process(Outcome::Failed, sentence) });
            }
        };
        link.report(&Report::Started { run, pid: born.pid });
        let key = self.next_key;
        self.next_key += 1;
        let (pipe, watched) = Pipe::watch(born.output, key, &self.epoll);
        if let Err(error) = watched {
            link.report(&Report::Note(format!("cannot follow the output of run {run}: {error}")));
        }
        let run = Run {
            id: run,
            pid: born.pid,
            cgroup,
            phase: Phase::Running,
            stopped: None,
            timeout,
            kill_grace,
            wake_at_ms: None,
            pipe: Some(pipe),
            output: Output::default(),
            end: (None, None),
            usage: Usage::default(),
            failure: None,
            names,
        };
        self.table.by_id.insert(run.id, key);
        self.table.by_pid.insert(run.pid, key);
        let timeout_at_ms = run.timeout.map(|timeout| after(now_ms, timeout));
        self.table.runs.insert(key, run);
        self.wake(key, timeout_at_ms);
    }

    /// Ends a run because the node asks for it.
    pub(crate) fn stop(&mut self, run: RunId, how: Stop, now_ms: u64) {
        let Some(key) = self.table.by_id.get(&run).copied() else { return };
        match how {
            Stop::Politely => self.terminate(key, Outcome::Cancelled, "cancelled".to_owned(), now_ms),
            Stop::Now => self.kill(key, Outcome::Cancelled, "cancelled and killed at once".to_owned()),
        }
    }

    /// Until when the lease holds.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// The lease holds until `deadline_ms`; it never gets shorter.
    pub(crate) fn extend_deadline(&mut self, deadline_ms: u64) {
        if deadline_ms > self.deadline_ms {
            self.deadline_ms = deadline_ms;
            self.fenced = false;
        }
    }

    /// Applies the clock: first the lease deadline, then timeouts and the ends of grace periods.
    pub(crate) fn keep_time(&mut self, now_ms: u64) {
        if !self.fenced && now_ms >= self.deadline_ms {
            self.fenced = true;
            if enabled(Guard::KeeperDeadline) {
                self.kill_all(LEASE_OVER);
            }
        }
        while let Some((_, key)) = self.wakes.first().copied().filter(|(at_ms, _)| *at_ms <= now_ms) {
            self.wake(key, None);
            let Some(run) = self.table.runs.get_mut(&key) else { continue };
            match (run.phase, &mut run.stopped) {
                (Phase::Running, _) => {
                    let reason = format!("still running after its timeout of {:?}", run.timeout.unwrap_or_default());
                    self.terminate(key, Outcome::TimedOut, reason, now_ms);
                }
                (Phase::Terminating, Some((how, reason))) => {
                    let more = format!("; SIGTERM did not end it within {:?}, so it was killed", run.kill_grace);
                    let (how, reason) = (*how, reason.clone() + &more);
                    run.stopped = None;
                    self.kill(key, how, reason);
                }
                _ => {}
            }
        }
    }

    /// The next moment at which the clock requires an action.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        let deadline = Some(self.deadline_ms).filter(|at_ms| !self.fenced && *at_ms != u64::MAX);
        let wake = self.wakes.first().map(|(at_ms, _)| *at_ms);
        [deadline, wake, self.recheck_at_ms].into_iter().flatten().min()
    }

    /// The node is gone for good. Kills everything, once.
    pub(crate) fn abandon(&mut self) {
        if !self.abandoned {
            self.abandoned = true;
            if enabled(Guard::KeeperAbandons) {
                self.kill_all("the node went away");
            }
            // From now on, children without a known run count too.
            self.recheck_at_ms = Some(0);
        }
    }

    fn kill_all(&mut self, reason: &str) {
        let keys: Vec<u64> = self.table.runs.keys().copied().collect();
        for key in keys {
            self.kill(key, Outcome::Lost, reason.to_owned());
        }
    }

    /// SIGTERM to the group; SIGKILL after the grace period.
    fn terminate(&mut self, key: u64, how: Outcome, reason: String, now_ms: u64) {
        let Some(run) = self.table.runs.get_mut(&key).filter(|run| run.phase == Phase::Running) else { return };
        run.stop_because(how, reason);
        run.phase = Phase::Terminating;
        terminate_group(run.pid);
        let kill_at_ms = after(now_ms, run.kill_grace);
        self.wake(key, Some(kill_at_ms));
    }

    /// SIGKILL to all of the run that can be named; the rest becomes orphans and is swept up.
    fn kill(&mut self, key: u64, how: Outcome, reason: String) {
        let Some(run) = self.table.runs.get_mut(&key).filter(|run| run.phase != Phase::Ending) else { return };
        run.stop_because(how, reason);
        run.phase = Phase::Killed;
        kill_group(run.pid);
        if let Some(cgroup) = &run.cgroup {
            cgroup.kill();
        }
        self.wake(key, None);
    }

    /// Sets the one timer that a run has.
    fn wake(&mut self, key: u64, at_ms: Option<u64>) {
        let Some(run) = self.table.runs.get_mut(&key) else { return };
        if let Some(old_ms) = std::mem::replace(&mut run.wake_at_ms, at_ms) {
            self.wakes.remove(&(old_ms, key));
        }
        self.wakes.extend(at_ms.map(|at_ms| (at_ms, key)));
    }

    /// Takes in some of a run's output. `key` may be of a run that is over by now.
    pub(crate) fn read_output(&mut self, key: u64, link: &mut Link) {
        let Some(run) = self.table.runs.get_mut(&key) else { return };
        let id = run.id;
        let bytes = run.read_output(&mut self.buffer);
        if !bytes.is_empty() {
            link.report_live(id, bytes);
        }
    }

    /// Notes that a child changed its state.
    pub(crate) fn children_changed(&mut self) {
        self.may_reap = true;
    }

    /// Whether the last [`Runs::reap`] left some for the next round.
    pub(crate) fn more_to_reap(&self) -> bool {
        self.may_reap
    }

    /// Reaps children that have ended. A main process takes its group with it, while its number is still its own.
    pub(crate) fn reap(&mut self) -> bool {
        let mut any = false;
        for _ in 0..if self.may_reap { REAPS_PER_ROUND } else { 0 } {
            let Some(zombie) = peek_zombie() else {
                self.may_reap = false;
                break;
            };
            any = true;
            let Some((key, run)) = self.table.main_process(zombie.pid) else {
                self.leftovers.forget(zombie.pid);
                reap(zombie.pid);
                continue;
            };
            run.phase = Phase::Ending;
            run.end = (zombie.exit_code, zombie.signal);
            kill_group(zombie.pid);
            run.usage = reap(zombie.pid);
            self.wake(key, None);
            self.ending.push(key);
            self.recheck_delay_ms = RECHECK_MS.0;
            if zombie.exit_code == Some(LaunchFailure::EXIT_CODE) {
                self.read_failures();
            }
        }
        if any {
            self.place.cradles.tidy();
        }
        any
    }

    /// A failure was written before its child ended, so it is here when the child is reaped.
    fn read_failures(&mut self) {
        let mut bytes = [0; LaunchFailure::BYTES];
        while matches!(self.failures.read(&mut bytes), Ok(LaunchFailure::BYTES)) {
            let Some(failure) = LaunchFailure::from_bytes(bytes) else { continue };
            let key = self.table.by_pid.get(&failure.pid);
            if let Some(run) = key.and_then(|key| self.table.runs.get_mut(key)) {
                run.failure = Some(failure);
            }
        }
    }

    /// Reports the ended runs of which nothing is left, and kills what is left of the others.
    pub(crate) fn finish_ended(&mut self, now_ms: u64, reaped: bool, link: &mut Link) {
        let due = self.recheck_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        if !(due || reaped && (self.abandoned || !self.ending.is_empty())) {
            return;
        }
        let held = self.leftovers.sweep(&mut self.table);
        for key in std::mem::take(&mut self.ending) {
            let Some(run) = self.table.runs.get(&key) else { continue };
            match &run.cgroup {
                Some(cgroup) if cgroup.is_populated() => cgroup.kill(),
                _ if held.contains(&key) => {}
                _ => {
                    self.finish(key, link);
                    continue;
                }
            }
            self.ending.push(key);
        }
        let more = !self.ending.is_empty() || self.abandoned;
        self.recheck_at_ms = more.then(|| now_ms + self.recheck_delay_ms);
        self.recheck_delay_ms = (2 * self.recheck_delay_ms).min(RECHECK_MS.1);
    }

    fn finish(&mut self, key: u64, link: &mut Link) {
        let Some(mut run) = self.table.runs.remove(&key) else { return };
        let id = run.id;
        run.drain_output(&mut self.buffer, |bytes| link.report_live(id, bytes));
        self.table.by_id.remove(&id);
        if self.table.by_pid.get(&run.pid) == Some(&key) {
            self.table.by_pid.remove(&run.pid);
        }
        if let Some(cpu_us) = run.cgroup.as_mut().and_then(Cgroup::take_cpu_us) {
            run.usage.cpu_ms = Some(whole_ms(cpu_us));
        }
        self.give_back(run.cgroup.take());
        link.report(&Report::Ended { run: id, exit: run.finish() });
    }

    /// Whether the keeper has neither run nor child.
    pub(crate) fn nothing_is_left(&mut self) -> bool {
        self.table.runs.is_empty() && self.leftovers.no_child_is_left()
    }

    fn take_cgroup(&mut self, link: &mut Link) -> Option<Cgroup> {
        match self.cgroups.as_mut()?.take() {
            Ok(cgroup) => Some(cgroup),
            Err(error) => {
                link.report(&Report::Note(format!("a run has no cgroup of its own: {error}")));
                None
            }
        }
    }

    fn give_back(&mut self, cgroup: Option<Cgroup>) {
        if let (Some(cgroups), Some(cgroup)) = (&mut self.cgroups, cgroup) {
            cgroups.give_back(cgroup);
        }
    }
}

fn after(now_ms: u64, duration: std::time::Duration) -> u64 {
    now_ms.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
