//! Idle -> Prepared, the node's side: looking, claiming, and what a claim of unknown outcome leaves behind.

use super::port::{Claimed, Peek};
use super::{Effect, Node, Run, Stage, StopReason, StoreAnswer};
use crate::id::RunId;
use crate::matrix::{Answer, Reaction, Step, react};
use crate::time::BootTime;

impl Node {
    /// Looks each `peek_every` and when asked to; claims when a look, a finish or a full claim says so.
    pub(super) fn claim_if_wished(&mut self, now: BootTime) {
        if self.drain.begun {
            return;
        }
        if self.wish.claim
            && self.withheld.is_none()
            && self.flight.claim.is_none()
            && self.wish.claim_backoff.is_over()
        {
            self.send_claim(now);
        }
        let look = self.wish.peek || self.wish.next_peek <= now;
        if look && !self.flight.peek {
            self.wish.peek = false;
            self.wish.next_peek = now + self.config.peek_every;
            self.flight.peek = true;
            let partitions = self.partitions.clone();
            self.emit(Effect::Peek { partitions });
        }
    }

    fn send_claim(&mut self, now: BootTime) {
        // Pending ids count: each may turn out to be a row that is mine.
        let held = self.runs.len() + self.pending.len();
        let limit = self.config.max_in_flight.saturating_sub(held).min(self.config.max_batch);
        if limit == 0 || self.partitions.is_empty() {
            // The wish stays until there is a place.
            return;
        }
        self.wish.claim = false;
        let runs: Vec<RunId> = (0..limit).map(|_| self.draw()).collect();
        self.flight.claim = Some(runs.clone());
        let until = self.utc(now) + self.config.horizon;
        let partitions = self.partitions.clone();
        self.emit(Effect::Claim { partitions, until, runs });
    }

    pub(super) fn peeked(&mut self, answer: StoreAnswer<Peek>, now: BootTime) {
        self.flight.peek = false;
        let Ok(peek) = answer else { return };
        let until = self.utc(now) + self.config.horizon;
        if peek.earliest_claim_at.is_some_and(|at| at <= until) {
            self.wish.claim = true;
        }
        for run in peek.cancels {
            self.stop(run, StopReason::Cancelled);
        }
    }

    pub(super) fn claimed(&mut self, answer: StoreAnswer<Vec<Claimed>>, now: BootTime) {
        let Some(sent) = self.flight.claim.take() else { return };
        match answer {
            Ok(claimed) => {
                self.wish.claim_backoff.succeeded();
                // A full answer means that there is more.
                self.wish.claim |= claimed.len() == sent.len();
                self.take_back(&sent, &claimed);
                for one in claimed {
                    self.adopt(one, now);
                }
            }
            Err(failure) => {
                self.wish.claim_backoff.failed(now);
                self.wish.claim = true;
                if react(Step::Claim, Answer::from(failure)) == Reaction::KeepPending {
                    self.pending.extend(sent.into_iter().map(|run| (run, 0)));
                    self.wish.next_recovery = now;
                }
            }
        }
    }

    /// Ids that an acknowledged claim has not used were never written anywhere: the next claim uses them.
    fn take_back(&mut self, sent: &[RunId], claimed: &[Claimed]) {
        let unused = |run: &&RunId| !claimed.iter().rev().any(|one| one.at.run == **run);
        let surplus = sent.iter().rev().take_while(unused).count();
        self.next_run -= surplus as u64;
    }

    /// Puts an acknowledged row into *prepared* and the wheel.
    pub(super) fn adopt(&mut self, claimed: Claimed, now: BootTime) {
        let run = claimed.at.run;
        self.pending.remove(&run);
        let start_at = claimed.held.firing.start_at;
        self.enter(Run { at: claimed.at, job: Some(claimed.job), stage: Stage::Prepared, stop: None });
        if self.drain.begun || self.withheld.is_some() {
            self.set_stage(run, Stage::Uncertain);
        } else if start_at <= self.utc(now) {
            self.due.push_back(run);
        } else {
            self.wheel.insert(start_at, run);
        }
    }
}
