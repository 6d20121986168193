//! Processes under the model checker: calls wait for their fate, runs are as long as any, and the end of each is noted.

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::invariants as must;
use carillon_domain::node::call::{self, Answer as StoreAnswer, CallId};
use carillon_domain::node::{Input, SelfKillReason};

use super::bounds::LONGEST_RUN_US;
use super::calls::{Answer, Call};
use super::coverage::Situation;
use super::narration;
use super::state::{Link, State};
use crate::world::{End, Scheduler, World, job_of};

/// How long a run goes on at the most once it was asked to end.
const LONGEST_STOP_US: u64 = 500_000;

impl Scheduler for State {
    type Own = Link;

    fn world(&mut self) -> &mut World<Link> {
        &mut self.world
    }

    fn tell(&mut self, n: usize, input: Input) {
        self.deliver(Answer::of(self.world.processes[n].session, input));
    }

    fn send(&mut self, n: usize, id: CallId, call: call::Call) {
        self.outbox.push_back(Call { session: self.world.processes[n].session, id, call });
    }

    /// With one job there is no doubt which it is, whatever the store has forgotten.
    fn row_of(&self, held: &Held) -> (Option<JobId>, Option<Phase>) {
        let carries = |phase: &Phase| phase.held().is_some_and(|known| known.run == held.run);
        let row = self.store.rows().find(|(_, phase, _)| carries(phase));
        let known = || self.world.history.job_of(held).or((self.bounds.jobs == 1).then_some(JobId(1)));
        (row.as_ref().map(|(key, ..)| job_of(key)).or_else(known), row.map(|(_, phase, _)| *phase))
    }

    fn started(&mut self, n: usize, held: &Held) -> u64 {
        let settled =
            |cause: &Answer| matches!(cause.input, Input::Answered { answer: Ok(StoreAnswer::Settle(_)), .. });
        self.coverage.count(Situation::Started);
        if self.cause.as_ref().is_some_and(settled) {
            self.coverage.count(Situation::StartedBySettling);
        }
        if self.cause.as_ref().is_some_and(|cause| cause.withdrawn.contains(&held.run)) {
            let sentence = format!("run {} was settled and started after its job was paused or deleted", held.run);
            self.world.must(Err(must::Violation { invariant: must::Invariant::S5, sentence }));
        }
        let session = self.world.processes[n].session;
        self.note(|| format!("{} STARTS {}", narration::session(session), narration::held(held)));
        if held.firing.attempt > 1 {
            self.coverage.count(Situation::FurtherAttempt);
        }
        self.world.now_us + LONGEST_RUN_US
    }

    fn stopping(&mut self, _: usize, _: RunId) -> u64 {
        self.world.now_us + LONGEST_STOP_US
    }

    fn over(&mut self, n: usize, end: End) {
        if end == End::SelfKill(SelfKillReason::LeaseOver) {
            self.coverage.count(Situation::LeaseOver);
        }
        let session = self.world.processes[n].session;
        self.note(|| format!("{} ends: {end:?}", narration::session(session)));
        self.die(n);
    }
}

impl State {
    /// A process is told something; one that is frozen will hear it later, one that is gone never.
    pub(super) fn deliver(&mut self, answer: Answer) {
        let Some(n) = self.alive(answer.session) else { return };
        if self.is_frozen(&self.world.processes[n]) {
            self.world.processes[n].own.unheard.push_back(answer);
        } else {
            self.hear(n, answer);
        }
    }

    /// It acts on it, and what lives then has its rows.
    pub(super) fn hear(&mut self, n: usize, answer: Answer) {
        let input = answer.input.clone();
        self.cause = Some(answer);
        self.feed(n, input);
        self.cause = None;
        self.watch_children();
    }

    pub(super) fn watch_children(&mut self) {
        let verdict = self.world.children_have_rows(&self.store);
        self.world.must(verdict);
    }

    /// The node is gone. Its keeper sees that and kills the children, who are dead at the end of the grace.
    pub(super) fn die(&mut self, n: usize) {
        let process = &mut self.world.processes[n];
        process.die(self.world.now_us + self.world.timing.fence_grace.as_micros() as u64);
        process.own.unheard.clear();
        let session = process.session;
        self.outbox.retain(|call| call.session != session);
        self.answers.retain(|answer| answer.session != session);
    }
}
