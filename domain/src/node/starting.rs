//! Prepared -> Executing, as the node asks for it: only an acknowledged or settled start is spawned.

use super::call::{Call, Failure};
use super::flow::flight::{ENOUGH, Sent};
use super::ledger::reactions::{Facts, Failed};
use super::port::{SettleAnswer, StartAnswer};
use super::{Effect, Node, Stage, StopReason};
use crate::id::RunId;
use crate::matrix::Event;
use crate::time::BootTime;

/// A start takes one of so many parts of the due runs, at least as many as are worth a call. If the database has other work, it takes
/// all that fit.
const PARTS: usize = 4;

const FAILED_START: Failed =
    Failed { rolled_back: Event::StartRolledBack, refused: Event::StartRefused, unknown: Event::StartUnknown };
const FAILED_SETTLE: Failed =
    Failed { rolled_back: Event::SettleRolledBack, refused: Event::SettleRefused, unknown: Event::SettleUnknown };

impl Node {
    pub(super) fn collect_due(&mut self, now: BootTime) {
        let mut up = Vec::new();
        self.wheel.pop_until(self.utc(now), &mut up);
        self.due.extend(up);
    }

    pub(super) fn start_if_due(&mut self, now: BootTime) {
        self.agenda.start_rate.until = None;
        while self.suspended_by.is_none()
            && self.agenda.start_backoff.is_over()
            && self.may_send(self.flight.starts(), self.due.len())
            && !self.waits_for_more(now)
        {
            let mut batch = self.next_to_start();
            if batch.is_empty() {
                return;
            }
            // Ascending rows, so that two batches never wait for each other.
            batch.sort_by_cached_key(|run| self.runs.get(run).map(|of_run| of_run.at));
            let runs = self.refs(&batch);
            self.agenda.start_rate.sent(batch.len(), now);
            let me = self.me();
            self.call(Sent::Start(batch), Call::Start { me, runs });
        }
    }

    /// A part of the due runs, so that the first begin while the others are being written. If claims or finishes keep the database busy,
    /// as many as go into a call.
    fn next_to_start(&mut self) -> Vec<RunId> {
        let nothing_else = !self.claims() && self.flight.finishes() == 0;
        let part = if nothing_else { self.due.len().div_ceil(PARTS).max(ENOUGH) } else { self.due.len() };
        let places = self.free_places().min(part).min(self.config.max_batch);
        let mut batch = Vec::new();
        while batch.len() < places
            && let Some(run) = self.due.pop_front()
        {
            // A run may have been released or cancelled since it fell due.
            if self.runs.get(&run).is_some_and(|of_run| of_run.stage == Stage::Prepared) {
                self.set_stage(run, Stage::Starting);
                batch.push(run);
            }
        }
        batch
    }

    /// How many more runs may start.
    pub(super) fn free_places(&self) -> usize {
        let kept = self.flight.claim().map_or(0, |sent| sent.places);
        self.config.max_executing.saturating_sub(self.executing + self.flight.starting_runs() + kept)
    }

    pub(super) fn started(&mut self, sent: Vec<RunId>, answer: Result<Vec<StartAnswer>, Failure>, now: BootTime) {
        match answer {
            Ok(answers) => {
                self.agenda.start_backoff.succeeded();
                for (run, one) in sent.into_iter().zip(answers) {
                    self.start_answered(run, one, now);
                }
            }
            Err(failure) => {
                self.agenda.start_backoff.failed(now);
                for run in sent {
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

    pub(super) fn settle_if_needed(&mut self) {
        if self.flight.settles() || !self.agenda.settle_backoff.is_over() {
            return;
        }
        let to_settle = self.batch_of(self.worklists.outcome_unknown.iter().chain(&self.to_recheck));
        if !to_settle.is_empty() {
            let runs = self.refs(&to_settle);
            self.call(Sent::Settle(to_settle), Call::Settle { session: self.session, runs });
        }
    }

    pub(super) fn settled(&mut self, sent: Vec<RunId>, answer: Result<Vec<SettleAnswer>, Failure>, now: BootTime) {
        match answer {
            Ok(answers) => {
                self.agenda.settle_backoff.succeeded();
                for (run, one) in sent.into_iter().zip(answers) {
                    match self.stage(run) {
                        Some(Stage::OutcomeUnknown) => self.outcome_settled(run, one, now),
                        Some(Stage::Executing) => self.rechecked(run, one, now),
                        // It ended while the call was in flight.
                        Some(Stage::Prepared | Stage::Starting | Stage::Ended(_) | Stage::Finishing(_))
                        | Some(Stage::Releasing)
                        | None => {}
                    }
                }
            }
            Err(failure) => {
                self.agenda.settle_backoff.failed(now);
                for run in sent {
                    match self.stage(run) {
                        Some(Stage::OutcomeUnknown) => {
                            self.react(run, FAILED_SETTLE.event(failure), Facts::default(), now);
                        }
                        Some(Stage::Executing) => self.react(run, Event::RecheckFailed, Facts::default(), now),
                        Some(Stage::Prepared | Stage::Starting | Stage::Ended(_) | Stage::Finishing(_))
                        | Some(Stage::Releasing)
                        | None => {}
                    }
                }
            }
        }
    }

    fn stage(&self, run: RunId) -> Option<&Stage> {
        self.runs.get(&run).map(|of_run| &of_run.stage)
    }
}
