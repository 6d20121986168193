//! Processes: they hear, they act, they start children, they end.

use std::sync::Arc;

use carillon_domain::firing::Held;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::node::call::Answer as StoreAnswer;
use carillon_domain::node::{Effect, Input, SelfKillReason};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};

use super::bounds::LONGEST_RUN_MS;
use super::calls::{Answer, Call};
use super::coverage::Situation;
use super::narration;
use super::world::{Child, Life, World};

/// How long a run goes on at the most once it was asked to end.
const LONGEST_STOP_MS: u64 = 500;

pub(super) fn ending(status: Status) -> Ending {
    Ending { status, exit_code: None, signal: None, reason: None, ended_at: Timestamp::EPOCH }
}

impl World {
    /// A process is told something; one that is frozen will hear it later, one that is gone never.
    pub(super) fn tell(&mut self, answer: Answer) {
        let Some(n) = self.process_of(answer.session) else { return };
        if self.processes[n].life == Life::Frozen {
            self.processes[n].unheard.push_back(answer);
        } else {
            self.feed(n, &answer);
        }
    }

    pub(super) fn feed(&mut self, n: usize, answer: &Answer) {
        let now = self.boot_time();
        Arc::make_mut(&mut self.processes[n].node).handle(answer.input.clone(), now);
        while let Some(effect) = Arc::make_mut(&mut self.processes[n].node).poll() {
            self.carry_out(n, effect, answer);
        }
        self.watch_state();
    }

    fn carry_out(&mut self, n: usize, effect: Effect, cause: &Answer) {
        let session = self.processes[n].session;
        match effect {
            Effect::RenewKeeper { until } => self.processes[n].keeper_until = until.as_ms(),
            Effect::Spawn { held, .. } => self.spawn(n, &held, cause),
            Effect::Stop { run, .. } => {
                let latest = self.now + LONGEST_STOP_MS;
                if let Some(child) = self.processes[n].children.get_mut(&run) {
                    (child.asked_to_stop, child.ends_at) = (true, child.ends_at.min(latest));
                }
            }
            Effect::Recorded(_) => {}
            Effect::Drained => {
                self.processes[n].life = Life::Gone;
                self.note(|| format!("{} has drained", narration::session(session)));
            }
            Effect::SelfKill(reason) => {
                if reason == SelfKillReason::LeaseOver {
                    self.coverage.count(Situation::LeaseOver);
                }
                self.note(|| format!("{} ends itself: {reason:?}", narration::session(session)));
                self.die(n);
            }
            Effect::Call { id, call } => self.outbox.push_back(Call { session, id, call }),
        }
    }

    /// The one place in which anything is really started.
    fn spawn(&mut self, n: usize, held: &Held, cause: &Answer) {
        let (session, run) = (self.processes[n].session, held.run);
        let keeper = BootTime::from_ms(self.processes[n].keeper_until);
        self.must(must::starts_within_lease(keeper, self.boot_time()));
        if self.history.back.is_none() {
            self.must(must::not_live_yet(run, self.processes[n].children.contains_key(&run)));
        }
        if cause.withdrawn.contains(&run) {
            self.must(Err(must::Violation {
                invariant: must::Invariant::S5,
                sentence: format!("run {run} was settled and started after its job was paused or deleted"),
            }));
        }
        let Some(job) = self.job_of(run, held) else { return };
        self.coverage.count(Situation::Started);
        if matches!(cause.input, Input::Answered { answer: Ok(StoreAnswer::Settle(_)), .. }) {
            self.coverage.count(Situation::StartedBySettling);
        }
        self.note(|| format!("{} STARTS {}", narration::session(session), narration::held(held)));
        self.history.starts.push((Self::firing(job, held), held.firing.attempt));
        self.processes[n].children.insert(run, Child { job, asked_to_stop: false, ends_at: self.now + LONGEST_RUN_MS });
        self.watch_starts();
    }

    /// Whose run it is. With one job there is no doubt, whatever the store has forgotten.
    fn job_of(&self, run: RunId, held: &Held) -> Option<JobId> {
        use carillon_domain::node::port::RowKey;
        let carries = |phase: &carillon_domain::firing::Phase| phase.held().is_some_and(|known| known.run == run);
        let row = self.store.rows().find(|(_, phase, _)| carries(phase)).map(|(key, ..)| match key {
            RowKey::Job(id) => id,
            RowKey::Concurrent(key) => key.job,
        });
        let known =
            || self.history.starts.iter().find(|(key, _)| key.due_at == held.firing.due_at).map(|(key, _)| key.job);
        row.or_else(known).or((self.bounds.jobs == 1).then_some(JobId(1)))
    }

    /// The node is gone. Its keeper sees that and kills the children, who are dead at the end of the grace.
    pub(super) fn die(&mut self, n: usize) {
        let grace = self.bounds.config().timing.fence_grace.as_millis() as u64;
        let dead_at = self.now + grace;
        let process = &mut self.processes[n];
        process.life = Life::Gone;
        process.unheard.clear();
        process.dead_at = Some(process.dead_at.map_or(dead_at, |earlier| earlier.min(dead_at)));
        let session = process.session;
        self.outbox.retain(|call| call.session != session);
        self.answers.retain(|answer| answer.session != session);
    }

    /// A child ends by itself; its node hears of it if it can.
    pub(super) fn child_ends(&mut self, session: SessionId, run: RunId, status: Status) {
        let Some(process) = self.processes.iter_mut().find(|process| process.session == session) else { return };
        if process.children.remove(&run).is_some() {
            self.note(|| format!("{} ends ({})", narration::run(run), status.as_str()));
            self.tell(Answer::of(session, Input::Exited { run, ending: ending(status), output: Arc::default() }));
        }
    }

    /// The keeper has killed all children of a process.
    pub(super) fn children_die(&mut self, n: usize) {
        let session = self.processes[n].session;
        self.processes[n].dead_at = None;
        for run in self.processes[n].children.keys().copied().collect::<Vec<_>>() {
            self.child_ends(session, run, Status::Failed);
        }
    }
}
