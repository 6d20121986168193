//! The test world: node processes with their keepers, children and clocks, and the checks of all that they do.
//!
//! A scheduler owns a [`World`] and decides when things happen: the model checker in every order, the simulator by a seed, the
//! stories of the guards by a script. The things themselves are the same for all three and stand here. The nodes are
//! [`carillon_domain::node::Node`]s, their calls reach a store's own operations, and the checks are those of
//! [`carillon_domain::invariants`].

mod accounts;
mod clocks;
mod commits;
mod history;
mod in_memory;
mod process;
mod scheduler;

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict, Violation};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::Effect;
use carillon_store::NewSession;

pub use accounts::Accounts;
pub use clocks::{BootClock, DatabaseClock};
pub use commits::{Writer, phases};
pub use history::History;
pub use in_memory::job_of;
pub use process::{Child, Process};
pub use scheduler::{Due, End, Scheduler};

/// Promises that are not asked for, as the database has lost commits. `docs/lost-commits.md` states these limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Excused {
    /// Children may live of which the database knows nothing.
    pub children: bool,
    /// A firing may have started twice.
    pub starts: bool,
    /// Fencing tokens may come again.
    pub tokens: bool,
}

/// The processes, their time and their past.
#[derive(Clone)]
pub struct World<Own> {
    /// True time since the beginning, in microseconds.
    pub now_us: u64,
    /// The timing of every node.
    pub timing: Timing,
    /// The processes that were ever started.
    pub processes: Vec<Process<Own>>,
    /// Past events.
    pub history: History,
    /// Promises that are not asked for any more.
    pub excused: Excused,
    /// The first violation.
    pub broken: Option<Violation>,
}

impl<Own> World<Own> {
    /// A world without processes.
    pub fn new(timing: Timing) -> Self {
        let (history, excused) = (History::default(), Excused::default());
        Self { now_us: 0, timing, processes: Vec::new(), history, excused, broken: None }
    }

    /// Keeps the first violation.
    pub fn must(&mut self, verdict: Verdict) {
        if let Err(violation) = verdict {
            self.broken.get_or_insert(violation);
        }
    }

    /// The process of a session.
    pub fn process_of(&self, session: SessionId) -> Option<usize> {
        self.processes.iter().rposition(|process| process.session == session)
    }

    /// All children that live anywhere: the session whose keeper runs it, the run, its job.
    pub fn live(&self) -> impl Iterator<Item = (SessionId, RunId, JobId)> + '_ {
        self.processes
            .iter()
            .flat_map(|process| process.children.iter().map(|(run, child)| (process.session, *run, child.job)))
    }

    /// Whether this child of the session lives.
    pub fn lives(&self, session: SessionId, run: RunId) -> bool {
        self.process_of(session).is_some_and(|n| self.processes[n].children.contains_key(&run))
    }

    /// S8 for the survivors: a session is ended, or its rows are swept.
    fn none_lives(&self, session: SessionId) -> Verdict {
        must::dead_before_sweep(session, self.live().map(|(of, run, _)| (of, run)))
    }

    /// The keeper is about to start a child: S1, S2, S3 and S8. Whether it is known of which job, so that it is started.
    fn start(&mut self, n: usize, (held, job): (&Held, &Job), (id, row): (Option<JobId>, Option<&Phase>)) -> bool {
        let (run, process) = (held.run, &self.processes[n]);
        let mut verdict = must::starts_within_lease(process.keeper_until, process.clock.at(self.now_us));
        if !self.excused.children {
            verdict = verdict
                .and_then(|()| must::not_live_yet(run, self.live().any(|(_, other, _)| other == run)))
                .and_then(|()| must::child_has_its_row(process.session, run, row));
        }
        self.must(verdict);
        let Some(id) = id else { return false };
        self.history.defined(id, job);
        let child = Child { job: id, ends_at_us: u64::MAX, asked_to_stop: false };
        self.processes[n].children.insert(run, child);
        let once = self.history.started(id, job, held);
        self.must(once.or_else(|violation| if self.excused.starts { Ok(()) } else { Err(violation) }));
        let alone = self.one_live_run(id);
        self.must(alone);
        true
    }

    /// S1 of one job.
    fn one_live_run(&self, id: JobId) -> Verdict {
        if self.excused.children {
            return Ok(());
        }
        let live = self.live().filter(|(_, _, job)| *job == id).map(|(_, run, job)| (job, run));
        must::one_live_run(live, |job| self.history.may_overlap(job))
    }

    /// The next effect that the node of a live process wants.
    fn next_effect(&mut self, n: usize) -> Option<Effect> {
        let process = self.processes.get_mut(n).filter(|process| process.alive)?;
        std::sync::Arc::make_mut(process.node.as_mut()?).poll()
    }

    /// L2 and L1 once nothing more is to come: nobody remembers anything, and nothing is held.
    pub fn at_rest<'a>(&self, phases: impl IntoIterator<Item = &'a Phase>) -> Verdict {
        let alive = self.processes.iter().filter(|process| process.alive);
        alive.filter_map(|process| process.node.as_deref()).try_for_each(must::nothing_wedged)?;
        must::all_idle(phases)
    }

    /// The first thing that is due, and when.
    pub fn next_due(&self) -> Option<(u64, usize, Due)> {
        let mut due: Vec<(u64, usize, Due)> = Vec::new();
        for (n, process) in self.processes.iter().enumerate() {
            let dead = process.dead_at_us.filter(|_| !process.children.is_empty()).map(|at| (at, n, Due::Dead));
            due.extend(dead.or_else(|| process.deadline_us().map(|at| (at, n, Due::Deadline))));
            if process.alive {
                due.extend(process.children.iter().map(|(run, child)| (child.ends_at_us, n, Due::End(*run))));
            }
            if process.is_awake(self.now_us) {
                due.extend(process.wake_us().map(|at| (at, n, Due::Wake)));
            }
        }
        due.into_iter().min_by_key(|(at, n, due)| ((*at).max(self.now_us), due.order(), *n))
    }
}

/// The registration of a node.
pub fn registration(session: SessionId, node: String) -> NewSession {
    NewSession { id: session, node, address: String::new(), version: String::new() }
}
