//! The recovery loop: what the store says is mine, compared with what memory holds, for ever (go-crontab).

use super::port::RunRef;
use super::types::LastLook;
use super::{Effect, Node, Run, Stage, StoreAnswer};
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::time::{BootTime, Timestamp};

/// How many recoveries a run id of a claim of unknown outcome stays in *pending*. A row that turns up later still is given
/// back instead of adopted, which is as safe.
const PENDING_RECOVERIES: u8 = 3;

impl Node {
    pub(super) fn recover_if_due(&mut self, now: BootTime) {
        if self.flight.held || now < self.wish.next_recovery {
            return;
        }
        // Of many rows the list is long, and what comes due now is in a hurry.
        if self.is_in_a_rush(now) {
            self.wish.next_recovery = self.wish.rush.until().unwrap_or(now);
            return;
        }
        self.wish.next_recovery = now + self.config.recover_every;
        self.flight.held = true;
        self.emit(Effect::ListHeld);
    }

    pub(super) fn held(&mut self, answer: StoreAnswer<Vec<RunRef>>, now: BootTime) {
        self.flight.held = false;
        let looked = std::mem::take(&mut self.drain.last_look) == LastLook::OnItsWay;
        let Ok(rows) = answer else {
            self.wish.recovery_backoff.failed(now);
            self.wish.next_recovery = self.wish.recovery_backoff.until().unwrap_or(now);
            return;
        };
        self.wish.recovery_backoff.succeeded();
        if looked && rows.is_empty() {
            self.drain.last_look = LastLook::Clean;
        }
        let mut on_their_way = self.onward_ids();
        on_their_way.extend(self.flight.claim.iter().flat_map(|sent| &sent.runs));
        for row in rows {
            if let Some(known) = self.runs.get(&row.run) {
                // One from before what this node has written itself tells nothing.
                if row.version > known.at.version {
                    // Somebody wrote to it: a job that was changed or resumed may be replaced from now on.
                    self.look_at(row.run);
                }
                continue;
            }
            if on_their_way.contains(&row.run) && enabled(Guard::ClaimInFlight) || !enabled(Guard::Recovery) {
                continue;
            }
            let stage = if self.pending.remove(&row.run).is_some() { Stage::InDoubt } else { Stage::Uncertain };
            self.enter(Run { at: row, job: None, stage, stop: None, patient_until: Timestamp::EPOCH });
        }
        self.pending.retain(|_, recoveries| {
            *recoveries += 1;
            *recoveries < PENDING_RECOVERIES
        });
    }

    pub(super) fn reset_if_needed(&mut self) {
        if self.flight.reset.is_some() || !self.wish.reset_backoff.is_over() {
            return;
        }
        let uncertain = self.batch_of(&self.to_ask.uncertain);
        if !uncertain.is_empty() {
            let refs = self.refs(&uncertain);
            self.flight.reset = Some(uncertain);
            self.emit(Effect::Reset(refs));
        }
    }

    pub(super) fn reset_done(&mut self, answer: StoreAnswer<()>, now: BootTime) {
        let Some(sent) = self.flight.reset.take() else { return };
        match answer {
            Ok(()) => {
                self.wish.reset_backoff.succeeded();
                // A manual run keeps its id: one that was claimed again meanwhile is another matter.
                let given_back = |run: &RunId| self.runs.get(run).is_some_and(|one| one.stage == Stage::Uncertain);
                let given_back: Vec<RunId> = sent.into_iter().filter(given_back).collect();
                given_back.into_iter().for_each(|run| self.forget(run));
                self.wish.claim = true;
            }
            Err(_) => {
                self.wish.reset_backoff.failed(now);
                if !enabled(Guard::ResetRepeats) {
                    sent.into_iter().for_each(|run| self.forget(run));
                }
            }
        }
    }
}
