//! The end of every path: faults stop, time passes, and then everything must be Idle, forgotten and accounted for.

use carillon_domain::id::JobId;
use carillon_domain::invariants::{Invariant, Verdict, Violation};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use super::actions::{Action, Runs};
use super::bounds::Budget;
use super::state::{State, UTC0_MS};
use crate::world::{Accounts, Child, Scheduler};

/// Long after the last session that may have died was swept.
const LONGEST_REST_US: u64 = 30_000_000;

impl State {
    /// Faults end, and time passes until nothing is to come. Then L1, L2 and the whole of S6.
    pub(super) fn rest(&mut self, runs: Runs) {
        self.budget = Budget::default();
        self.network_recovers();
        let until = self.world.now_us + LONGEST_REST_US;
        while self.world.broken.is_none() && self.world.now_us < until && !self.is_quiet() {
            self.boot_if_none_is_left();
            self.accept_what_was_lost();
            if !self.runs_end(runs) {
                self.pass();
            }
            self.answer_what_goes_well();
            self.watch_witnesses();
        }
        if self.world.broken.is_none() {
            let verdict = self.all_at_rest().and_then(|()| self.all_accounted_for());
            self.world.must(verdict);
        }
        self.rested = true;
    }

    /// Whether runs have ended that do not go on for as long as they could.
    fn runs_end(&mut self, runs: Runs) -> bool {
        let status = |child: &Child| match runs {
            _ if child.asked_to_stop => Status::Cancelled,
            Runs::Failing => Status::Failed,
            Runs::Long | Runs::Short => Status::Succeeded,
        };
        let mut ends = Vec::new();
        for (n, process) in self.world.processes.iter().enumerate().filter(|_| runs != Runs::Long) {
            let awake = process.is_awake(self.world.now_us);
            ends.extend(process.children.iter().filter(|_| awake).map(|(run, child)| (n, *run, status(child))));
        }
        ends.iter().for_each(|(n, run, status)| self.child_ends(*n, *run, *status));
        !ends.is_empty()
    }

    /// Awaited requests arrive. Requests that nobody waits for any more are lost: their arrival was tried before.
    fn network_recovers(&mut self) {
        for process in &mut self.world.processes {
            process.own.cut = false;
        }
        for n in 0..self.world.processes.len() {
            if self.is_frozen(&self.world.processes[n]) {
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
        if self.may_accept() {
            self.person(Action::Accept);
        }
    }

    fn boot_if_none_is_left(&mut self) {
        if self.world.processes.iter().all(|process| !process.alive) {
            self.boot();
        }
    }

    fn all_at_rest(&self) -> Verdict {
        self.world.at_rest(self.store.rows().map(|(_, phase, _)| phase))?;
        let waits = self.store.jobs().find(|row| !row.is_completed());
        match (waits, self.world.live().next()) {
            (None, None) => Ok(()),
            (waits, lives) => {
                let sentence = format!("nothing more is to come, and yet waits {waits:?}, lives {lives:?}");
                Err(Violation { invariant: Invariant::L1, sentence })
            }
        }
    }

    /// S6: each due time has run, was skipped for a reason, or is lost; once.
    fn all_accounted_for(&self) -> Verdict {
        let mut accounts = Accounts::default();
        for (id, job) in (1..).map(JobId).zip(self.bounds.definitions()) {
            let anchor = Timestamp::from_ms(UTC0_MS);
            accounts.define(id, &job.timeline(anchor).expect("a schedule"), anchor);
            if let Some(at) = self.deleted.get(&id) {
                accounts.end(id, *at);
            }
        }
        self.store.records().for_each(|record| accounts.record(record));
        accounts.check().map(|_| ())
    }
}
