//! Idle -> Prepared, as the node asks for it: peeks, claims, and the ids of a claim of unknown outcome.

use std::collections::BTreeSet;

use super::call::{Call, CallFailure, CallKind, ClaimRequest, PeekRequest};
use super::ledger::flight::{Sent, SentClaim};
use super::ledger::reactions::{Facts, Failed};
use super::ledger::stealing::StealPlan;
use super::port::{Claimed, Peek};
use super::timers::Timer;
use super::{Node, StopReason};
use crate::id::RunId;
use crate::matrix::Event;
use crate::time::{BootTime, Timestamp};

const FAILED_CLAIM: Failed =
    Failed { rolled_back: Event::ClaimRolledBack, refused: Event::ClaimRefused, unknown: Event::ClaimUnknown };

impl Node {
    /// Claims when a peek, a finish or a full claim says so.
    pub(super) fn claim_if_needed(&mut self, now: BootTime) {
        if self.drain.begun || self.suspended_by.is_some() || self.flight.claim().is_some() {
            return;
        }
        match self.agenda.backoffs.until(CallKind::Claim, now) {
            Some(until) => self.timers.set(Timer::Claim, Some(until)),
            None => self.send_claim(now),
        }
    }

    /// Peeks each `peek_every`, less often at rest, and when asked to. A draining node claims no more, but people may still cancel its
    /// runs. Before the first answer to a heartbeat the node does not know its partitions.
    pub(super) fn peek_if_due(&mut self, now: BootTime) {
        if self.flight.peeks() || self.live.is_empty() {
            return;
        }
        if !self.agenda.peek && now < self.agenda.next_peek {
            return self.timers.set(Timer::Peek, Some(self.agenda.next_peek));
        }
        self.agenda.peek = false;
        // A run that ends while the peek is under way may free its row after the peek has read it. So the moment of sending counts.
        let rest = if self.runs.is_empty() { self.config.peek_every_at_rest } else { self.config.peek_every };
        self.agenda.next_peek = now + rest;
        let (partitions, until) = (self.partitions.clone(), self.claim_until(now));
        let request = PeekRequest { session: self.session, partitions, until, executors: self.executors.clone() };
        self.call(Sent::Peek { at: now }, Call::Peek(request));
    }

    pub(super) fn claim_until(&self, now: BootTime) -> Timestamp {
        self.utc(now) + self.config.horizon
    }

    /// This node's partitions first, then rows to steal. A need to claim stays until there is a place.
    fn send_claim(&mut self, now: BootTime) {
        let load = self.load(now);
        let limit = self.flow.claim(&load);
        if limit == 0 {
            return;
        }
        if self.agenda.claim && !self.partitions.is_empty() {
            self.agenda.claim = false;
            let (partitions, until) = (self.partitions.clone(), self.claim_until(now));
            self.send_claim_of(limit, self.flow.places_of_claim(&load), partitions, until, None);
        } else if let Some(plan) = self.agenda.steal.take() {
            self.unclaimed.forget(&plan);
            self.send_claim_of(limit, 0, plan.partitions.clone(), plan.until, Some(plan));
        }
    }

    /// Up to `limit` firings, of which as many as there are `places` may start in the same commit.
    fn send_claim_of(
        &mut self,
        limit: usize,
        places: usize,
        partitions: Vec<u16>,
        until: Timestamp,
        plan: Option<StealPlan>,
    ) {
        let runs: Vec<RunId> = (0..limit).map(|_| self.draw()).collect();
        let executors = plan.as_ref().map_or_else(|| self.executors.clone(), |plan| vec![plan.executor.clone()]);
        let places = places.min(runs.len());
        let sent = SentClaim { runs: runs.clone(), places, plan };
        let request = ClaimRequest { me: self.me(), partitions, until, runs, places, executors };
        self.call(Sent::Claim(sent), Call::Claim(request));
    }

    pub(super) fn peeked(&mut self, sent: BootTime, answer: Result<Peek, CallFailure>, now: BootTime) {
        // The finding of the last peek is too old by now.
        self.agenda.steal = None;
        let finds_nothing =
            answer.as_ref().is_ok_and(|peek| peek.earliest_claim_at.is_none() && peek.unclaimed.is_empty());
        if !finds_nothing {
            self.agenda.next_peek = sent + self.config.peek_every;
        }
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

    pub(super) fn claimed(&mut self, sent: SentClaim, answer: Result<Vec<Claimed>, CallFailure>, now: BootTime) {
        let SentClaim { runs: sent, plan, .. } = sent;
        match answer {
            Ok(claimed) => {
                self.agenda.backoffs.succeeded(CallKind::Claim);
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
                self.agenda.backoffs.failed(CallKind::Claim, now);
                for run in sent {
                    self.react(run, FAILED_CLAIM.event(failure), Facts::default(), now);
                }
                self.agenda.claim |= plan.is_none();
            }
        }
    }
}
