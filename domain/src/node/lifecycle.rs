//! Heartbeats, the lease, and the end: in good order (drain) or at once (self-kill).

use std::sync::Arc;

use super::call::{BeatAnswer, Call, CallFailure, CallKind};
use super::ledger::flight::Sent;
use super::timers::Timer;
use super::types::LastLook;
use super::{Effect, Ended, Node, SelfKillReason, Stage, StopReason};
use crate::guard::{Guard, enabled};
use crate::id::SessionId;
use crate::partition::share_of;
use crate::run::{Ending, Reason, Status};
use crate::time::BootTime;

impl Node {
    pub(super) fn end_if_lease_is_over(&mut self, now: BootTime) {
        if self.beat.ends_at().is_some_and(|at| now >= at) {
            self.self_kill(SelfKillReason::LeaseOver);
        }
    }

    pub(super) fn heartbeat_if_due(&mut self, now: BootTime) {
        self.timers.set(Timer::Lease, self.beat.ends_at());
        if self.flight.beats() {
            return;
        }
        if now < self.beat.next_at {
            return self.timers.set(Timer::Heartbeat, Some(self.beat.next_at));
        }
        self.beat.seq += 1;
        self.beat.next_at = now + self.config.timing.heartbeat;
        if !self.beat.self_kill {
            // The lease is the lock on the file. The keeper only needs to know that the node is awake.
            self.emit(Effect::RenewKeeper { until: now + self.config.timing.self_kill_after });
        }
        let (me, seq, draining) = (self.me(), self.beat.seq, self.drain.begun);
        self.call(Sent::Heartbeat { at: now }, Call::Heartbeat { me, seq, draining });
    }

    pub(super) fn beaten(&mut self, sent: BootTime, answer: Result<BeatAnswer, CallFailure>, now: BootTime) {
        match answer {
            // The next heartbeat follows at its time, well within the lease.
            Err(_) => {}
            // The node fenced itself: its session is being closed.
            Ok(BeatAnswer::Fenced) if self.drain.done => {}
            Ok(BeatAnswer::Fenced) => self.self_kill(SelfKillReason::Fenced),
            Ok(BeatAnswer::WentBack) => self.self_kill(SelfKillReason::WentBack),
            Ok(BeatAnswer::Alive { utc, peers, window }) => {
                self.beat.acknowledged();
                self.suspend(window);
                let from = if enabled(Guard::LeaseFromSending) { sent } else { now };
                self.beat.lease_until = from + self.config.timing.self_kill_after;
                if self.beat.self_kill {
                    self.emit(Effect::RenewKeeper { until: self.beat.lease_until });
                }
                if self.drain.done {
                    return;
                }
                self.clock.heard(utc, sent, now);
                let live: Vec<SessionId> = peers.iter().filter(|peer| peer.claims).map(|peer| peer.session).collect();
                self.share_with(live);
                self.detector
                    .observe(peers.iter().filter(|peer| !peer.ended).map(|peer| (peer.session, peer.seq)), now);
                self.note_what_is_over(&peers, now);
            }
        }
    }

    /// The sessions that claim have changed, so this node peeks at its new partitions at once. Prepared firings stay. An empty list says
    /// nothing: the asking session is there itself, unless it drains.
    pub(super) fn share_with(&mut self, mut live: Vec<SessionId>) {
        live.sort_unstable();
        if live != self.live && !live.is_empty() {
            let share = share_of(self.session, &live, self.config.partitions);
            self.agenda.peek |= share != self.partitions;
            (self.partitions, self.live) = (share, live);
        }
    }

    fn self_kill(&mut self, reason: SelfKillReason) {
        if !self.beat.ended {
            self.beat.ended = true;
            self.timers.clear();
            self.emit(Effect::SelfKill(reason));
        }
    }

    pub(super) fn begin_drain(&mut self, now: BootTime) {
        if self.drain.begun {
            return;
        }
        self.drain.begun = true;
        self.drain.deadline = Some(now + self.config.drain_timeout);
        // The others learn at once that this node claims no more.
        self.beat.next_at = now;
        for run in self.in_stage(&Stage::Prepared) {
            self.set_stage(run, Stage::Releasing);
        }
    }

    pub(super) fn hurry_drain(&mut self, now: BootTime) {
        self.begin_drain(now);
        self.drain.hurried = true;
        self.drain.deadline = None;
        for run in self.in_stage(&Stage::Executing) {
            self.stop(run, StopReason::ShutDown);
        }
    }

    pub(super) fn drain_on(&mut self, now: BootTime) {
        if !self.drain.begun {
            return;
        }
        if self.drain.deadline.is_some_and(|deadline| deadline <= now) {
            self.hurry_drain(now);
        }
        self.timers.set(Timer::Drain, self.drain.deadline);
        // A start that failed during the drain came back to Prepared.
        for run in self.in_stage(&Stage::Prepared) {
            self.set_stage(run, Stage::Releasing);
        }
        self.release_if_needed(now);
        if !self.runs.is_empty()
            || self.flight.claim().is_some()
            || !self.pending.is_empty()
            || self.has_to_write_back()
        {
            self.drain.last_look = LastLook::ToCome;
        } else if self.drain.keeper_died {
            self.drain.done = true;
            self.self_kill(SelfKillReason::KeeperDied);
        } else {
            self.leave_if_nothing_is_held(now);
        }
    }

    /// Somebody may have written to a row between the last list and its release; then it is still held here. Nobody sweeps a session that
    /// has left, so the store has the last word.
    fn leave_if_nothing_is_held(&mut self, now: BootTime) {
        match self.drain.last_look {
            _ if !enabled(Guard::DrainListsHeld) => {
                self.close();
            }
            LastLook::ToCome
                if !self.flight.lists_held() && self.agenda.backoffs.until(CallKind::ListHeld, now).is_none() =>
            {
                self.agenda.next_recovery = now;
                self.recover_if_due(now);
                self.drain.last_look = LastLook::OnItsWay;
            }
            LastLook::ToCome | LastLook::OnItsWay => {}
            LastLook::Clean => {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.drain.done = true;
        self.call(Sent::Close, Call::Close { session: self.session });
    }

    /// Every child died with the keeper, so their runs are lost. The node records them as long as it can, then it ends.
    pub(super) fn keeper_died(&mut self, now: BootTime) {
        for run in self.in_stage(&Stage::Executing) {
            let reason = Some(Reason::Said("the keeper died, and with it every run of the node".into()));
            let ending = Ending { reason, ..Ending::new(Status::Lost, self.utc(now)) };
            self.exited(run, Ended { ending, output: Arc::default() }, now);
        }
        self.begin_drain(now);
        self.drain.keeper_died = true;
    }
}
