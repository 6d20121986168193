//! The one place in which an answer of the store moves a run: the matrix names the reaction, and this carries it out.

use std::sync::Arc;
use std::time::Duration;

use crate::firing::Held;
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::job::Job;
use crate::matrix::{Event, Reaction, reaction_to};
use crate::measured::ClaimedAt;
use crate::node::call::CallFailure;
use crate::node::port::{Claimed, RunRef, SettleAnswer, StartAnswer};
use crate::node::{Effect, Node, Run, Stage, StopReason, lives};
use crate::time::{BootTime, Timestamp};

/// The parts of an answer that reactions use.
#[derive(Debug, Default)]
pub(in crate::node) struct Facts {
    /// The row that carries the run, at the version just written.
    pub at: Option<RunRef>,
    /// The firing that the row holds.
    pub held: Option<Held>,
    /// When a newer firing replaces it.
    pub replace_at: Option<Timestamp>,
    /// When it may start, or when its job may be claimed again.
    pub at_time: Option<Timestamp>,
    /// The job's next firing, claimed in the same commit.
    pub successor: Option<Box<Claimed>>,
}

impl Facts {
    fn of(at: RunRef, held: Held, replace_at: Option<Timestamp>) -> Self {
        Self { at: Some(at), held: Some(held), replace_at, ..Self::default() }
    }
}

/// The events of a failed call.
pub(in crate::node) struct Failed {
    pub rolled_back: Event,
    pub refused: Event,
    pub unknown: Event,
}

impl Failed {
    pub const fn event(&self, failure: CallFailure) -> Event {
        match failure {
            CallFailure::RolledBack => self.rolled_back,
            CallFailure::Refused => self.refused,
            CallFailure::Unknown => self.unknown,
        }
    }
}

/// The reaction to an event, as far as the guards are enabled.
fn guarded_reaction(event: Event) -> Reaction {
    let reaction = reaction_to(event);
    let removed = match reaction {
        Reaction::KeepPending => !enabled(Guard::PendingKept),
        Reaction::Settle => event == Event::StartUnknown && !enabled(Guard::SettleUnknown),
        Reaction::RecordAgain => !enabled(Guard::FinishRepeats),
        Reaction::Release => is_release(event) && !enabled(Guard::ResetRepeats),
        _ => false,
    };
    if removed { Reaction::Forget } else { reaction }
}

const fn is_release(event: Event) -> bool {
    matches!(event, Event::ReleaseRolledBack | Event::ReleaseRefused | Event::ReleaseUnknown)
}

impl Node {
    /// Moves a run by an answer.
    pub(in crate::node) fn react(&mut self, run: RunId, event: Event, facts: Facts, now: BootTime) {
        match guarded_reaction(event) {
            Reaction::Wait => {
                let start_at = facts.held.map(|held| held.firing.start_at);
                self.wait(run, start_at.unwrap_or(Timestamp::EPOCH), now);
            }
            Reaction::WaitUntil => {
                // This clock runs ahead of the database's by less than the answer took; a millisecond later is not early.
                let not_early = self.utc(now) + Duration::from_millis(1);
                self.wait(run, facts.at_time.map_or(not_early, |at| at.max(not_early)), now);
            }
            Reaction::Spawn => self.spawn(run, facts),
            Reaction::Settle => self.set_stage(run, Stage::OutcomeUnknown),
            Reaction::Release => self.release(run, &facts),
            Reaction::ReleaseAndBeat => {
                self.release(run, &facts);
                self.beat.next_at = now;
            }
            Reaction::RecordAgain => self.record_again(run),
            Reaction::KeepPending => {
                self.pending.insert(run, 0);
                self.agenda.next_recovery = now;
            }
            Reaction::Forget => self.forget_run(run),
            Reaction::ForgetAndClaim => {
                self.forget_run(run);
                self.agenda.claim = true;
            }
            Reaction::Recorded => self.recorded(run, facts, event != Event::FinishGone, now),
            Reaction::Refresh => self.refresh(run, &facts, now),
            Reaction::KeepRunning => _ = self.to_recheck.remove(&run),
            Reaction::Recheck => self.recheck(run),
            Reaction::WriteAgain => self.write_back.again(),
        }
    }

    fn forget_run(&mut self, run: RunId) {
        self.forget(run);
        self.successors.remove(&run);
    }

    /// Prepared until `start_at`.
    fn wait(&mut self, run: RunId, start_at: Timestamp, now: BootTime) {
        self.set_stage(run, Stage::Prepared);
        if start_at <= self.utc(now) {
            self.due.push_back(run);
        } else {
            self.wheel.insert(start_at, run);
        }
    }

    fn release(&mut self, run: RunId, facts: &Facts) {
        if let (Some(of_run), Some(at)) = (self.runs.get_mut(&run), facts.at) {
            of_run.at = at;
        }
        self.set_stage(run, Stage::Releasing);
    }

    fn record_again(&mut self, run: RunId) {
        if let Some(Stage::Finishing(ended)) = self.runs.get(&run).map(|of_run| of_run.stage.clone()) {
            self.set_stage(run, Stage::Ended(ended));
        }
    }

    fn recorded(&mut self, run: RunId, facts: Facts, is_recorded: bool, now: BootTime) {
        if let Some(Run { at, held: Some(held), stage: Stage::Finishing(ended), .. }) = self.runs.get(&run) {
            let end = (*at, *held, ended.ending.clone());
            self.write_back.remember(end, is_recorded, self.config.remembered_ends);
        }
        self.forget_run(run);
        self.emit(Effect::Recorded(run));
        let near = self.utc(now) + self.config.horizon;
        self.agenda.claim |= facts.at_time.is_some_and(|at| at <= near);
        if let Some(claimed) = facts.successor {
            self.adopt(*claimed, now);
        }
    }

    /// The one place from which a child is ever started.
    fn spawn(&mut self, run: RunId, facts: Facts) {
        let Facts { at: Some(at), held: Some(held), replace_at, .. } = facts else { return };
        let Some(of_run) = self.runs.get_mut(&run) else { return };
        let Some(job) = of_run.job.clone() else { return };
        of_run.at = at;
        of_run.held = Some(held);
        let stop = of_run.stop;
        self.set_stage(run, Stage::Executing);
        if let Some(at) = replace_at {
            self.replaces.insert((at, run));
        }
        self.emit(Effect::Spawn { held, job });
        if let Some(reason) = stop.or(self.drain.hurried.then_some(StopReason::ShutDown)) {
            self.emit(Effect::Stop { run, reason });
        }
    }

    /// The row of a run that executes here was written to.
    fn refresh(&mut self, run: RunId, facts: &Facts, now: BootTime) {
        self.to_recheck.remove(&run);
        if let (Some(of_run), Some(at)) = (self.runs.get_mut(&run), facts.at) {
            of_run.at = at;
        }
        self.replaces.retain(|(_, of)| *of != run);
        match facts.replace_at {
            Some(at) if at <= self.utc(now) => self.stop(run, StopReason::Replaced),
            Some(at) => _ = self.replaces.insert((at, run)),
            None => {}
        }
    }

    /// Whether nothing may be prepared now.
    fn is_closed(&self) -> bool {
        self.drain.begun || self.suspended_by.is_some()
    }

    /// Takes in a row that a claim, or the finish before it, has taken.
    pub(in crate::node) fn adopt(&mut self, claimed: Claimed, now: BootTime) {
        let Claimed { at, held, replace_at, job, .. } = claimed;
        self.pending.remove(&at.run);
        let lives_here = self.runs.get(&at.run).is_some_and(|of_run| lives(&of_run.stage));
        let event = match () {
            // After lost commits the row of a manual run may wait again while the run lives here. Recovery releases it later.
            () if lives_here => Event::ClaimLivesHere,
            () if self.is_closed() => Event::ClaimClosed,
            () if held.started_at.is_some() => Event::ClaimStarted,
            () => Event::ClaimPrepared,
        };
        if !lives_here {
            self.enter_claimed(at, job, ClaimedAt(Some(self.utc(now))));
        }
        self.react(at.run, event, Facts::of(at, held, replace_at), now);
    }

    fn enter_claimed(&mut self, at: RunRef, job: Arc<Job>, claimed_at: ClaimedAt) {
        self.enter(Run { at, job: Some(job), stage: Stage::Prepared, stop: None, held: None, claimed_at });
    }

    pub(in crate::node) fn start_answered(&mut self, run: RunId, answer: StartAnswer, now: BootTime) {
        let (event, facts) = match answer {
            StartAnswer::Started { at, held, replace_at } => {
                let event = if self.drain.keeper_died { Event::StartUnrunnable } else { Event::StartStarted };
                (event, Facts::of(at, held, replace_at))
            }
            StartAnswer::Early { start_at } => {
                (Event::StartEarly, Facts { at_time: Some(start_at), ..Facts::default() })
            }
            StartAnswer::Moved => (Event::StartMoved, Facts::default()),
            StartAnswer::Suspended => (Event::StartSuspended, Facts::default()),
            StartAnswer::Gone => (Event::StartGone, Facts::default()),
        };
        self.react(run, event, facts, now);
    }

    /// The row of an unknown outcome was written to.
    pub(in crate::node) fn outcome_settled(&mut self, run: RunId, answer: SettleAnswer, now: BootTime) {
        match answer {
            SettleAnswer::Prepared(Claimed { at, held, replace_at, job, .. }) => {
                let event = if self.is_closed() { Event::SettleClosed } else { Event::SettlePrepared };
                self.pending.remove(&run);
                // A start that was not applied leaves the claim as it was. Recovery finds a claim whose answer was never heard.
                let known = self.runs.get(&run).and_then(|of_run| of_run.claimed_at.0);
                self.enter_claimed(at, job, ClaimedAt(known.or(Some(self.utc(now)))));
                self.react(run, event, Facts::of(at, held, replace_at), now);
            }
            SettleAnswer::Executing { at, held, replace_at, withdrawn } => {
                let known = self.runs.get(&run).is_some_and(|of_run| of_run.job.is_some());
                let event = match () {
                    () if withdrawn || self.suspended_by.is_some() => Event::SettleWithdrawn,
                    () if !known || self.drain.keeper_died => Event::SettleUnrunnable,
                    () => Event::SettleExecuting,
                };
                self.react(run, event, Facts::of(at, held, replace_at), now);
            }
            SettleAnswer::Gone => self.react(run, Event::SettleGone, Facts::default(), now),
        }
    }

    /// The row of a run that executes here was written to.
    pub(in crate::node) fn rechecked(&mut self, run: RunId, answer: SettleAnswer, now: BootTime) {
        match answer {
            SettleAnswer::Executing { at, held, replace_at, .. } => {
                self.react(run, Event::RecheckExecuting, Facts::of(at, held, replace_at), now);
            }
            SettleAnswer::Prepared(_) | SettleAnswer::Gone => {
                self.react(run, Event::RecheckGone, Facts::default(), now);
            }
        }
    }
}
