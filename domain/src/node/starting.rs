//! Prepared -> Executing, as the node asks for it: only an acknowledged or settled start is spawned.

use super::call::{Call, CallFailure, CallKind};
use super::flow::Decision;
use super::ledger::flight::Sent;
use super::ledger::reactions::{Facts, Failed};
use super::port::{RunRef, SettleAnswer, StartAnswer};
use super::timers::Timer;
use super::{Effect, Node, Stage, StopReason};
use crate::id::RunId;
use crate::matrix::Event;
use crate::time::BootTime;

const FAILED_START: Failed =
    Failed { rolled_back: Event::StartRolledBack, refused: Event::StartRefused, unknown: Event::StartUnknown };
const FAILED_SETTLE: Failed =
    Failed { rolled_back: Event::SettleRolledBack, refused: Event::SettleRefused, unknown: Event::SettleUnknown };

impl Node {
    pub(super) fn collect_due(&mut self, now: BootTime) {
        let mut up = Vec::new();
        self.wheel.pop_until(self.utc(now), &mut up);
        self.due.extend(up);
        self.timers.set(Timer::Due, self.wheel.next_at().and_then(|utc| self.clock.boot(utc)));
    }

    pub(super) fn start_if_due(&mut self, now: BootTime) {
        if self.suspended_by.is_some() || self.due.is_empty() {
            return;
        }
        if let Some(until) = self.agenda.backoffs.until(CallKind::Start, now) {
            return self.timers.set(Timer::Start, Some(until));
        }
        loop {
            let load = self.load(now);
            let batch = match self.flow.start(&load) {
                Decision::Send(runs) => self.take_due(runs),
                Decision::WaitUntil(until) => return self.timers.set(Timer::Start, Some(until)),
                Decision::Wait => return,
            };
            if !batch.is_empty() {
                let runs = self.refs(&batch);
                self.flow.start_sent(batch.len(), now);
                let me = self.me();
                self.call(Sent::Start(runs.clone()), Call::Start { me, runs });
            }
        }
    }

    /// Takes runs that are due, in ascending order of their rows, so that two batches never wait for each other.
    fn take_due(&mut self, most: usize) -> Vec<RunId> {
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(run) = self.due.pop_front()
        {
            // A run may have been released or cancelled since it fell due.
            if self.runs.get(&run).is_some_and(|of_run| of_run.stage == Stage::Prepared) {
                self.set_stage(run, Stage::Starting);
                batch.push(run);
            }
        }
        batch.sort_by_cached_key(|run| self.runs.get(run).map(|of_run| of_run.at));
        batch
    }

    /// How many more runs may start.
    pub(super) fn free_places(&self) -> usize {
        let kept = self.flight.claim().map_or(0, |sent| sent.places);
        self.config.max_executing.saturating_sub(self.executing + self.flight.starting_runs() + kept)
    }

    pub(super) fn started(&mut self, sent: Vec<RunRef>, answer: Result<Vec<StartAnswer>, CallFailure>, now: BootTime) {
        let current = |at: RunRef| (self.stage_of(at) == Some(&Stage::Starting)).then_some(at.run);
        let sent: Vec<Option<RunId>> = sent.into_iter().map(current).collect();
        match answer {
            Ok(answers) => {
                self.agenda.backoffs.succeeded(CallKind::Start);
                for (run, one) in sent.into_iter().zip(answers) {
                    if let Some(run) = run {
                        self.start_answered(run, one, now);
                    }
                }
            }
            Err(failure) => {
                self.agenda.backoffs.failed(CallKind::Start, now);
                for run in sent.into_iter().flatten() {
                    self.react(run, FAILED_START.event(failure), Facts::default(), now);
                }
            }
        }
    }

    /// A newer firing is due, as far as this node knows. The store decides whether it replaces the run: the job may have been paused,
    /// deleted or changed.
    pub(super) fn replace_due(&mut self, now: BootTime) {
        let utc = self.utc(now);
        while let Some((at, run)) = self.replaces.first().copied().filter(|(at, _)| *at <= utc) {
            self.replaces.remove(&(at, run));
            self.recheck(run);
        }
        self.timers.set(Timer::Replacement, self.replaces.first().and_then(|(at, _)| self.clock.boot(*at)));
    }

    /// The row of an executing run is rechecked.
    pub(super) fn recheck(&mut self, run: RunId) {
        if self.runs.get(&run).is_some_and(|of_run| of_run.stage == Stage::Executing) {
            self.to_recheck.insert(run);
        }
    }

    /// Asks a run to stop. A run that has not started is left to the store, which has dropped it already.
    pub(super) fn stop(&mut self, run: RunId, reason: StopReason) {
        let Some(of_run) = self.runs.get_mut(&run).filter(|of_run| of_run.stop.is_none()) else { return };
        of_run.stop = Some(reason);
        if of_run.stage == Stage::Executing {
            self.emit(Effect::Stop { run, reason });
        }
    }

    pub(super) fn settle_if_needed(&mut self, now: BootTime) {
        let nothing_to_ask = self.worklists.outcome_unknown.is_empty() && self.to_recheck.is_empty();
        if nothing_to_ask || self.flight.settles() || self.has_to_write_back() {
            return;
        }
        if let Some(until) = self.agenda.backoffs.until(CallKind::Settle, now) {
            return self.timers.set(Timer::Settle, Some(until));
        }
        let to_settle = self.batch_of(self.worklists.outcome_unknown.iter().chain(&self.to_recheck));
        if !to_settle.is_empty() {
            let runs = self.refs(&to_settle);
            self.call(Sent::Settle(runs.clone()), Call::Settle { session: self.session, runs });
        }
    }

    pub(super) fn settled(&mut self, sent: Vec<RunRef>, answer: Result<Vec<SettleAnswer>, CallFailure>, now: BootTime) {
        match answer {
            Ok(answers) => {
                self.agenda.backoffs.succeeded(CallKind::Settle);
                for (at, one) in sent.into_iter().zip(answers) {
                    match self.stage_of(at) {
                        Some(Stage::OutcomeUnknown) => self.outcome_settled(at.run, one, now),
                        Some(Stage::Executing) => self.rechecked(at.run, one, now),
                        // It ended while the call was in flight.
                        Some(Stage::Prepared | Stage::Starting | Stage::Ended(_) | Stage::Finishing(_))
                        | Some(Stage::Releasing)
                        | None => {}
                    }
                }
            }
            Err(failure) => {
                self.agenda.backoffs.failed(CallKind::Settle, now);
                for at in sent {
                    match self.stage_of(at) {
                        Some(Stage::OutcomeUnknown) => {
                            self.react(at.run, FAILED_SETTLE.event(failure), Facts::default(), now);
                        }
                        Some(Stage::Executing) => self.react(at.run, Event::RecheckFailed, Facts::default(), now),
                        Some(Stage::Prepared | Stage::Starting | Stage::Ended(_) | Stage::Finishing(_))
                        | Some(Stage::Releasing)
                        | None => {}
                    }
                }
            }
        }
    }

    /// The stage of a run that is still held at this version. Otherwise an answer about it belongs to an earlier claim and tells
    /// nothing. The row has moved on: that call matched nothing, or matched before the row was claimed again.
    pub(super) fn stage_of(&self, at: RunRef) -> Option<&Stage> {
        self.runs.get(&at.run).filter(|of_run| of_run.at == at).map(|of_run| &of_run.stage)
    }
}
