//! The recovery loop, from go-crontab: for ever it compares the rows that the store lists for this session with memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::matrix::Event;
use crate::measured::ClaimedAt;
use crate::node::call::{Call, CallFailure, CallKind};
use crate::node::ledger::flight::Sent;
use crate::node::ledger::reactions::{Facts, Failed};
use crate::node::port::RunRef;
use crate::node::timers::Timer;
use crate::node::types::LastLook;
use crate::node::{Ended, Node, Run, Stage};
use crate::time::BootTime;

/// How many recoveries a run id of a claim of unknown outcome stays pending. A row that appears later is released instead of adopted,
/// which is as safe.
const PENDING_RECOVERIES: u8 = 3;

const FAILED_RELEASE: Failed =
    Failed { rolled_back: Event::ReleaseRolledBack, refused: Event::ReleaseRefused, unknown: Event::ReleaseUnknown };

impl Node {
    pub(in crate::node) fn recover_if_due(&mut self, now: BootTime) {
        if self.flight.lists_held() {
            return;
        }
        if now < self.agenda.next_recovery {
            return self.timers.set(Timer::Recovery, Some(self.agenda.next_recovery));
        }
        let load = self.load(now);
        if let Some(until) = self.flow.recover(&load) {
            self.agenda.next_recovery = until;
            return self.timers.set(Timer::Recovery, Some(until));
        }
        self.agenda.next_recovery = now + self.config.recover_every;
        self.write_back.asks_for_list();
        self.call(Sent::ListHeld, Call::ListHeld { session: self.session });
    }

    pub(in crate::node) fn held(&mut self, answer: Result<Vec<RunRef>, CallFailure>, now: BootTime) {
        let looked = std::mem::take(&mut self.drain.last_look) == LastLook::OnItsWay;
        let Ok(rows) = answer else {
            self.agenda.next_recovery = self.agenda.backoffs.failed(CallKind::ListHeld, now);
            return;
        };
        self.agenda.backoffs.succeeded(CallKind::ListHeld);
        if looked && rows.is_empty() {
            self.drain.last_look = LastLook::Clean;
        }
        let claiming = self.flight.claim().into_iter().flat_map(|sent| &sent.runs);
        let in_flight: BTreeSet<RunId> = claiming.chain(self.successors.values()).copied().collect();
        let ended_since = self.write_back.ended_since_list();
        for row in rows {
            if ended_since.get(&row.run).is_some_and(|version| row.version <= *version) {
                continue;
            }
            if let Some(known) = self.runs.get(&row.run) {
                // A row from before this node's own write tells nothing.
                if row.version > known.at.version {
                    // Somebody wrote to it: a job that was changed or resumed may be replaced from now on.
                    self.recheck(row.run);
                }
                continue;
            }
            if in_flight.contains(&row.run) && enabled(Guard::ClaimInFlight) || !enabled(Guard::Recovery) {
                continue;
            }
            let (stage, held) = match self.write_back.take_end(row) {
                // The record is lost. A release would take the run for one that never started.
                Some((held, ending)) => (Stage::Ended(Ended { ending, output: Arc::default() }), Some(held)),
                None if self.pending.remove(&row.run).is_some() => (Stage::OutcomeUnknown, None),
                None => (Stage::Releasing, None),
            };
            let claimed_at = ClaimedAt::default();
            self.enter(Run { at: row, job: None, stage, stop: None, held, claimed_at });
        }
        self.pending.retain(|_, recoveries| {
            *recoveries += 1;
            *recoveries < PENDING_RECOVERIES
        });
    }

    pub(in crate::node) fn release_if_needed(&mut self, now: BootTime) {
        if self.flight.releases() || self.worklists.releasing.is_empty() {
            return;
        }
        let backoff = self.agenda.backoffs.until(CallKind::Release, now);
        self.timers.set(Timer::Release, backoff);
        if backoff.is_none() {
            let releasing = self.batch_of(&self.worklists.releasing);
            let runs = self.refs(&releasing);
            self.call(Sent::Release(runs.clone()), Call::Release { session: self.session, runs });
        }
    }

    pub(in crate::node) fn released(&mut self, sent: Vec<RunRef>, answer: Result<(), CallFailure>, now: BootTime) {
        // A manual run keeps its id, so a claim may have taken it again while the call was in flight.
        let releasing = |at: RunRef| (self.stage_of(at) == Some(&Stage::Releasing)).then_some(at.run);
        let releasing: Vec<RunId> = sent.into_iter().filter_map(releasing).collect();
        let event = match answer {
            Ok(()) => {
                self.agenda.backoffs.succeeded(CallKind::Release);
                Event::ReleaseDone
            }
            Err(failure) => {
                self.agenda.backoffs.failed(CallKind::Release, now);
                FAILED_RELEASE.event(failure)
            }
        };
        for run in releasing {
            self.react(run, event, Facts::default(), now);
        }
    }
}
