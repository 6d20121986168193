//! Idle -> Prepared, as the node asks for it: peeks, claims, and the ids of a claim of unknown outcome.

use std::collections::BTreeSet;

use super::call::{Call, ClaimRequest, Failure, PeekRequest};
use super::flow::flight::{Sent, SentClaim};
use super::flow::stealing::StealPlan;
use super::ledger::reactions::{Facts, Failed};
use super::port::{Claimed, Peek};
use super::{Config, Node, StopReason};
use crate::id::RunId;
use crate::matrix::Event;
use crate::mechanism::{Mechanism, enabled as uses};
use crate::time::{BootTime, Timestamp};

const FAILED_CLAIM: Failed =
    Failed { rolled_back: Event::ClaimRolledBack, refused: Event::ClaimRefused, unknown: Event::ClaimUnknown };

impl Node {
    /// Claims when a peek, a finish or a full claim says so.
    pub(super) fn claim_if_needed(&mut self, now: BootTime) {
        if !self.drain.begun
            && self.suspended_by.is_none()
            && self.flight.claim().is_none()
            && self.agenda.claim_backoff.is_over()
        {
            self.send_claim(now);
        }
        self.peek_if_due(now);
    }

    /// Whether a claim is in flight, or goes next.
    pub(super) fn claims(&self) -> bool {
        self.flight.claim().is_some() || self.agenda.claim && self.claim_limit() > 0
    }

    /// Peeks each `peek_every` and when asked to. A draining node claims no more, but people may still cancel its runs.
    fn peek_if_due(&mut self, now: BootTime) {
        if self.next_peek_at().is_some_and(|at| at <= now) {
            self.agenda.peek = false;
            self.agenda.next_peek = now + self.config.peek_every;
            let (partitions, until) = (self.partitions.clone(), self.claim_until(now));
            let request = PeekRequest { session: self.session, partitions, until, executors: self.executors.clone() };
            self.call(Sent::Peek { at: now }, Call::Peek(request));
        }
    }

    /// When to peek next. A peek in flight wakes the node by its answer. Before the first answer to a heartbeat the node does not know its
    /// partitions.
    pub(super) fn next_peek_at(&self) -> Option<BootTime> {
        let may = !self.drain.done && !self.flight.peeks() && !self.live.is_empty();
        may.then(|| if self.agenda.peek { BootTime::default() } else { self.agenda.next_peek })
    }

    pub(super) fn claim_until(&self, now: BootTime) -> Timestamp {
        self.utc(now) + self.config.horizon
    }

    /// This node's partitions first, then rows to steal. A need to claim stays until there is a place.
    fn send_claim(&mut self, now: BootTime) {
        let limit = self.claim_limit();
        if limit == 0 {
            return;
        }
        if self.agenda.claim && !self.partitions.is_empty() {
            self.agenda.claim = false;
            let (partitions, until) = (self.partitions.clone(), self.claim_until(now));
            self.send_claim_of(limit, partitions, until, None);
        } else if let Some(plan) = self.agenda.steal.take() {
            self.unclaimed.forget(&plan);
            self.send_claim_of(limit, plan.partitions.clone(), plan.until, Some(plan));
        }
    }

    fn send_claim_of(&mut self, limit: usize, partitions: Vec<u16>, until: Timestamp, plan: Option<StealPlan>) {
        let runs: Vec<RunId> = (0..limit).map(|_| self.draw()).collect();
        let executors = plan.as_ref().map_or_else(|| self.executors.clone(), |plan| vec![plan.executor.clone()]);
        let places = self.places_for_overdue(plan.as_ref()).min(runs.len());
        let sent = SentClaim { runs: runs.clone(), places, plan };
        let request = ClaimRequest { me: self.me(), partitions, until, runs, places, executors };
        self.call(Sent::Claim(sent), Call::Claim(request));
    }

    /// How many firings of a claim may start in its commit. Their places are kept until the answer: none where no row is overdue, none that
    /// due runs wait for, and a quarter is left for runs that fall due before the answer.
    fn places_for_overdue(&self, plan: Option<&StealPlan>) -> usize {
        let spare = self.free_places().saturating_sub(self.due.len());
        let overdue = self.agenda.overdue && plan.is_none() && uses(Mechanism::ClaimAndStart);
        if overdue { spare - spare.div_ceil(4) } else { 0 }
    }

    /// How many firings one claim may take now. Alone, a node takes all it can hold. Among others it leaves them the firings that it could not
    /// start soon. It takes fewer at once the more it holds, so that firings of one due time spread.
    pub(super) fn claim_limit(&self) -> usize {
        let Config { max_in_flight, max_batch, .. } = self.config;
        // Pending ids count: each may turn out to be a row of this node.
        let free = max_in_flight.saturating_sub(self.runs.len() + self.pending.len());
        if self.live.len() <= 1 {
            return free.min(max_batch);
        }
        let share = (max_batch * free).div_ceil(max_in_flight.max(1));
        share.min(free).min(self.room_to_start())
    }

    /// How many more may fall due before they queue for too long: a quarter of `max_executing` may wait. None until half of that quarter
    /// has gone, so a busy node claims in batches and not one by one.
    fn room_to_start(&self) -> usize {
        let queue = (self.config.max_executing / 4).max(1);
        let taken = self.executing + self.flight.starting_runs() + self.due.len();
        let room = (self.config.max_executing + queue).saturating_sub(taken);
        if room >= queue.div_ceil(2) { room } else { 0 }
    }

    pub(super) fn peeked(&mut self, sent: BootTime, answer: Result<Peek, Failure>, now: BootTime) {
        // The finding of the last peek is too old by now.
        self.agenda.steal = None;
        let Ok(peek) = answer else { return };
        self.share_with(peek.claimants);
        self.agenda.claim |= peek.earliest_claim_at.is_some_and(|at| at <= self.claim_until(now));
        self.agenda.overdue = peek.earliest_claim_at.is_some_and(|at| at <= self.utc(now));
        let mine = &self.partitions;
        self.unclaimed.note(peek.unclaimed.into_iter().filter(|row| !mine.contains(&row.partition)), now);
        let (steal_after, by_clock) = (self.config.steal_after, self.claim_until(now) - self.config.steal_after);
        // A row counts only if it was unclaimed when this peek was sent.
        self.agenda.steal = self.unclaimed.overdue(steal_after, by_clock, sent);
        for run in peek.cancels {
            self.stop(run, StopReason::Cancelled);
        }
    }

    pub(super) fn claimed(&mut self, sent: SentClaim, answer: Result<Vec<Claimed>, Failure>, now: BootTime) {
        let SentClaim { runs: sent, plan, .. } = sent;
        match answer {
            Ok(claimed) => {
                self.agenda.claim_backoff.succeeded();
                // A full answer means that there is more. Rows come in order.
                let full = claimed.len() == sent.len();
                match plan {
                    None => {
                        let last = claimed.last().filter(|_| full);
                        self.agenda.claim |= full;
                        self.agenda.overdue = last.is_some_and(|one| one.held.firing.start_at <= self.utc(now));
                    }
                    more if full => self.agenda.steal = more,
                    _ => {}
                }
                let used: BTreeSet<RunId> = claimed.iter().map(|one| one.at.run).collect();
                for run in sent.into_iter().filter(|run| !used.contains(run)) {
                    self.react(run, Event::ClaimUnused, Facts::default(), now);
                }
                for one in claimed {
                    self.adopt(one, now);
                }
            }
            Err(failure) => {
                self.agenda.claim_backoff.failed(now);
                for run in sent {
                    self.react(run, FAILED_CLAIM.event(failure), Facts::default(), now);
                }
                self.agenda.claim |= plan.is_none();
            }
        }
    }
}
