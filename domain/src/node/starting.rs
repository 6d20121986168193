//! Prepared -> Executing, the node's side: only what the store acknowledged, or a settling write confirmed, is spawned.

use super::call::{Call, Failure};
use super::flight::{ENOUGH, Sent};
use super::gathering::patient_until;
use super::port::{RunRef, SettleAnswer, StartAnswer};
use super::{Effect, Node, Stage, StopReason};
use crate::firing::Held;
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::matrix::{Answer, Found, Reaction, Step, react, settled};
use crate::time::{BootTime, Timestamp};

/// Of what is due together, each start takes one of so many parts, but no less than is worth a call, nor where the database has
/// more to do than to start.
const PARTS: usize = 4;

impl Node {
    pub(super) fn collect_due(&mut self, now: BootTime) {
        let mut up = Vec::new();
        self.wheel.pop_until(self.utc(now), &mut up);
        self.due.extend(up);
    }

    pub(super) fn start_if_due(&mut self, now: BootTime) {
        self.wish.pace.until = None;
        while self.withheld.is_none()
            && self.wish.start_backoff.is_over()
            && self.may_send(self.flight.starts(), self.due.len())
            && !self.paces(now)
        {
            let mut batch = self.next_to_start();
            if batch.is_empty() {
                return;
            }
            // Ascending rows, so that two batches never wait for each other.
            batch.sort_by_cached_key(|run| self.runs.get(run).map(|of_run| of_run.at));
            let runs = self.refs(&batch);
            self.wish.pace.sent(batch.len(), now);
            let me = self.me();
            self.call(Sent::Start(batch), Call::Start { me, runs });
        }
    }

    /// A part of what is due, so that the first begin while the others are still being written; as much as goes into a call
    /// where claims or finishes keep the database busy besides.
    fn next_to_start(&mut self) -> Vec<RunId> {
        let nothing_else = !self.claims() && self.flight.finishes() == 0;
        let part = if nothing_else { self.due.len().div_ceil(PARTS).max(ENOUGH) } else { self.due.len() };
        let places = self.free_places().min(part).min(self.config.max_batch);
        let mut batch = Vec::new();
        while batch.len() < places
            && let Some(run) = self.due.pop_front()
        {
            // Given back or cancelled since it came up.
            if self.runs.get(&run).is_some_and(|of_run| of_run.stage == Stage::Prepared) {
                self.set_stage(run, Stage::Starting);
                batch.push(run);
            }
        }
        batch
    }

    /// How many more may start.
    pub(super) fn free_places(&self) -> usize {
        let kept = self.flight.claim().map_or(0, |sent| sent.places);
        self.config.max_executing.saturating_sub(self.executing + self.flight.starting_runs() + kept)
    }

    pub(super) fn started(&mut self, sent: Vec<RunId>, answer: Result<Vec<StartAnswer>, Failure>, now: BootTime) {
        match answer {
            Ok(answers) => {
                self.wish.start_backoff.succeeded();
                for (run, one) in sent.into_iter().zip(answers) {
                    self.start_answered(run, one, now);
                }
            }
            Err(failure) => {
                self.wish.start_backoff.failed(now);
                let reaction = react(Step::Start, Answer::from(failure));
                for run in sent {
                    self.start_failed(run, reaction);
                }
            }
        }
    }

    fn start_failed(&mut self, run: RunId, reaction: Reaction) {
        match reaction {
            Reaction::Settle if enabled(Guard::SettleUnknown) => self.set_stage(run, Stage::OutcomeUnknown),
            Reaction::GiveBack => self.set_stage(run, Stage::Releasing),
            Reaction::Forget | Reaction::Settle => self.forget(run),
            Reaction::AskAgain | Reaction::Adopt | Reaction::Spawn | Reaction::KeepPending | Reaction::Done => {
                self.set_stage(run, Stage::Prepared);
                self.due.push_back(run);
            }
        }
    }

    fn start_answered(&mut self, run: RunId, answer: StartAnswer, now: BootTime) {
        match answer {
            StartAnswer::Started { at, held, replace_at } => self.spawn(at, held, replace_at),
            StartAnswer::Early { start_at } => {
                self.set_stage(run, Stage::Prepared);
                // My clock runs ahead of the database's by less than this answer took; a millisecond later is not early.
                self.wheel.insert(start_at.max(self.utc(now) + std::time::Duration::from_millis(1)), run);
            }
            StartAnswer::Moved => self.set_stage(run, Stage::OutcomeUnknown),
            StartAnswer::Suspended => {
                self.set_stage(run, Stage::Releasing);
                // The heartbeat's answer tells why.
                self.beat.next_at = now;
            }
            StartAnswer::Gone => {
                // It went back to Idle, or somebody changed the job: what comes up next may be due already.
                self.forget(run);
                self.wish.claim = true;
            }
        }
    }

    /// The one place from which anything is ever started.
    pub(super) fn spawn(&mut self, at: RunRef, held: Held, replace_at: Option<Timestamp>) {
        let run = at.run;
        let Some(of_run) = self.runs.get_mut(&run) else { return };
        of_run.at = at;
        of_run.patient_until = patient_until(held.firing.trigger, held.firing.start_at);
        let stop = of_run.stop;
        // Recovery found the row and nothing else is known of it, or there is no keeper to start it: it never ran here.
        let Some(job) = of_run.job.clone().filter(|_| !self.drain.keeper_died) else {
            return self.set_stage(run, Stage::Releasing);
        };
        self.set_stage(run, Stage::Executing);
        if let Some(at) = replace_at {
            self.replaces.insert((at, run));
        }
        self.emit(Effect::Spawn { held, job });
        if let Some(reason) = stop.or(self.drain.hurried.then_some(StopReason::ShutDown)) {
            self.emit(Effect::Stop { run, reason });
        }
    }

    /// A newer firing has come due, as far as this node knows. Whether it still takes the place of the run is for the store to
    /// say: the job may have been paused, deleted or changed.
    pub(super) fn replace_due(&mut self, now: BootTime) {
        let utc = self.utc(now);
        while let Some((at, run)) = self.replaces.first().copied().filter(|(at, _)| *at <= utc) {
            self.replaces.remove(&(at, run));
            self.look_at(run);
        }
    }

    /// The row of a run that executes here is to be looked at.
    pub(super) fn look_at(&mut self, run: RunId) {
        if self.runs.get(&run).is_some_and(|of_run| of_run.stage == Stage::Executing) {
            self.to_look_at.insert(run);
        }
    }

    /// What the store says of the row of a run that executes here. One that it does not carry any more is left to the
    /// heartbeat, which tells whether this session was ended.
    fn looked_at(&mut self, run: RunId, seen: SettleAnswer, now: BootTime) {
        self.to_look_at.remove(&run);
        let SettleAnswer::Executing { at, replace_at, .. } = seen else { return };
        if let Some(of_run) = self.runs.get_mut(&run) {
            of_run.at = at;
        }
        self.replaces.retain(|(_, of)| *of != run);
        match replace_at {
            Some(at) if at <= self.utc(now) => self.stop(run, StopReason::Replaced),
            Some(at) => {
                self.replaces.insert((at, run));
            }
            None => {}
        }
    }

    /// Asks a run to stop; one that has not started is left to the store, which has dropped it already.
    pub(super) fn stop(&mut self, run: RunId, reason: StopReason) {
        let Some(of_run) = self.runs.get_mut(&run).filter(|of_run| of_run.stop.is_none()) else { return };
        of_run.stop = Some(reason);
        if of_run.stage == Stage::Executing {
            self.emit(Effect::Stop { run, reason });
        }
    }

    pub(super) fn settle_if_needed(&mut self) {
        if self.flight.settles() || !self.wish.settle_backoff.is_over() {
            return;
        }
        let to_settle = self.batch_of(self.to_ask.outcome_unknown.iter().chain(&self.to_look_at));
        if !to_settle.is_empty() {
            let runs = self.refs(&to_settle);
            self.call(Sent::Settle(to_settle), Call::Settle { session: self.session, runs });
        }
    }

    pub(super) fn settled(&mut self, sent: Vec<RunId>, answer: Result<Vec<SettleAnswer>, Failure>, now: BootTime) {
        let Ok(seen) = answer else {
            // Only an acknowledged commit is believed.
            self.wish.settle_backoff.failed(now);
            return;
        };
        self.wish.settle_backoff.succeeded();
        for (run, one) in sent.into_iter().zip(seen) {
            match self.runs.get(&run).map(|of_run| &of_run.stage) {
                Some(Stage::OutcomeUnknown) => self.doubt_settled(run, one, now),
                Some(Stage::Executing) => self.looked_at(run, one, now),
                // It has ended meanwhile.
                Some(Stage::Prepared | Stage::Starting | Stage::Ended(_) | Stage::Finishing(_) | Stage::Releasing)
                | None => {}
            }
        }
    }

    fn doubt_settled(&mut self, run: RunId, seen: SettleAnswer, now: BootTime) {
        let found = match &seen {
            SettleAnswer::Prepared(_) => Found::Prepared,
            SettleAnswer::Executing { withdrawn, .. } if *withdrawn || self.withheld.is_some() => Found::Withdrawn,
            SettleAnswer::Executing { .. } => Found::Executing,
            SettleAnswer::Gone => Found::Gone,
        };
        match (settled(found), seen) {
            (Reaction::Adopt, SettleAnswer::Prepared(claimed)) => {
                self.forget(run);
                self.adopt(claimed, now);
            }
            (Reaction::Spawn, SettleAnswer::Executing { at, held, replace_at, .. }) => self.spawn(at, held, replace_at),
            (Reaction::GiveBack, SettleAnswer::Executing { at, .. }) => {
                if let Some(of_run) = self.runs.get_mut(&run) {
                    of_run.at = at;
                }
                self.set_stage(run, Stage::Releasing);
            }
            (_, _) => self.forget(run),
        }
    }
}
