//! The end of every path: faults stop, time passes, and then everything must be Idle, forgotten and accounted for.

use carillon_domain::id::{JobId, RunId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;

use super::actions::{Action, Runs};
use super::bounds::Budget;
use super::world::{Child, Life, Process, World};

/// Long after the last session that may have died was swept.
const LONGEST_REST_MS: u64 = 30_000;

impl World {
    /// Faults end, and time passes until nothing is to come. Then L1, L2 and the whole of S6.
    pub(super) fn rest(&mut self, runs: Runs) {
        self.budget = Budget::default();
        self.network_recovers();
        let until = self.now + LONGEST_REST_MS;
        while self.violation.is_none() && self.now < until && !self.is_quiet() {
            self.boot_if_none_is_left();
            self.accept_what_was_lost();
            if !self.runs_end(runs) {
                self.pass();
            }
            self.answer_what_goes_well();
            self.watch_witnesses();
        }
        if self.violation.is_none() {
            let verdict = self.all_at_rest().and_then(|()| self.all_accounted_for());
            self.must(verdict);
        }
        self.rested = true;
    }

    /// Whether runs have ended that do not go on for as long as they could.
    fn runs_end(&mut self, runs: Runs) -> bool {
        let alive = self.processes.iter().filter(|process| process.life == Life::Alive);
        let of = |process: &Process| {
            let status = |child: &Child| match runs {
                _ if child.asked_to_stop => Status::Cancelled,
                Runs::Failing => Status::Failed,
                Runs::Long | Runs::Short => Status::Succeeded,
            };
            let end = |(run, child): (&RunId, &Child)| (process.session, *run, status(child));
            process.children.iter().map(end).collect::<Vec<_>>()
        };
        let ends: Vec<_> = alive.flat_map(of).filter(|_| runs != Runs::Long).collect();
        ends.iter().for_each(|(session, run, status)| self.child_ends(*session, *run, *status));
        !ends.is_empty()
    }

    /// Awaited requests arrive. Requests that nobody waits for any more are lost: their arrival was tried before.
    fn network_recovers(&mut self) {
        for process in &mut self.processes {
            process.cut = false;
        }
        for n in 0..self.processes.len() {
            if self.processes[n].life == Life::Frozen {
                self.resume(n);
            }
        }
        self.requests.retain(|request| request.awaited);
        while !self.requests.is_empty() || !self.answers.is_empty() {
            let next = if self.requests.is_empty() { Action::Hear(0) } else { Action::Arrive(0) };
            self.act(next);
        }
        self.answer_what_goes_well();
        self.boot_if_none_is_left();
        let paused: Vec<JobId> = self.store.jobs().filter(|row| row.pause.is_some()).map(|row| row.id).collect();
        paused.into_iter().for_each(|job| self.person(Action::Unpause(job)));
    }

    fn accept_what_was_lost(&mut self) {
        if self.store.withholds() {
            self.person(Action::Accept);
        }
    }

    fn boot_if_none_is_left(&mut self) {
        if self.processes.iter().all(|process| process.life == Life::Gone) {
            self.boot();
        }
    }

    fn all_at_rest(&self) -> Verdict {
        must::all_idle(self.store.rows().map(|(_, phase, _)| phase))?;
        for process in self.processes.iter().filter(|process| process.life != Life::Gone) {
            must::nothing_wedged(&process.node)?;
        }
        let waits = self.store.jobs().find(|row| !row.is_completed());
        match (waits, self.live().next()) {
            (None, None) => Ok(()),
            (waits, lives) => {
                let sentence = format!("nothing more is to come, and yet waits {waits:?}, lives {lives:?}");
                Err(Violation { invariant: Invariant::L1, sentence })
            }
        }
    }

    /// S6: each due time has run, was skipped for a reason, or is lost; once.
    fn all_accounted_for(&self) -> Verdict {
        for job in (1..=self.bounds.jobs).map(JobId) {
            let until = self.history.deleted.get(&job).copied().unwrap_or(Timestamp::MAX);
            for due in self.bounds.due_times().filter(|due| *due <= until) {
                let covers = |record: &&RunRecord| {
                    record.job == job
                        && record.trigger != Trigger::Manual
                        && record.attempt == 1
                        && (record.first_due_at..=record.due_at).contains(&due)
                };
                let found = self.store.records().filter(covers).count();
                if found != 1 {
                    let sentence = format!("the due time {due} of job {job} is accounted for {found} times");
                    return Err(Violation { invariant: Invariant::S6, sentence });
                }
            }
        }
        Ok(())
    }
}
