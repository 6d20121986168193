//! Sessions of others that are over: their rows go back to Idle, one session after another.

use super::Node;
use super::call::{Call, Peer};
use super::ledger::flight::Sent;
use crate::id::SessionId;
use crate::time::BootTime;

/// How many rows of an ended session go back in one call.
const ROWS_PER_SWEEP: usize = 1_000;

/// A session that is over.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct ToSweep {
    session: SessionId,
    /// For a silent session that was not ended yet: the heartbeat sequence that was read last.
    silent_at: Option<u64>,
}

impl Node {
    /// Notes the sessions of a heartbeat's answer that were ended, and those without a heartbeat for too long.
    /// Only with sequences that were just read: a node that was cut off itself must blame nobody. The next heartbeat shows the rest.
    pub(super) fn note_what_is_over(&mut self, peers: &[Peer], now: BootTime) {
        let of_others = peers.iter().filter(|peer| peer.ended && peer.session != self.session);
        let ended = of_others.map(|peer| ToSweep { session: peer.session, silent_at: None });
        let silent = self.detector.expired(self.session, self.config.timing.expire_after, now);
        let silent = silent.into_iter().map(|(session, seq)| ToSweep { session, silent_at: Some(seq) });
        let in_flight = self.flight.sweeps();
        self.to_sweep = ended.chain(silent).filter(|one| in_flight != Some(one.session)).collect();
        self.sweep_next();
    }

    /// A session that is ended is swept batch after batch.
    pub(super) fn sweep(&mut self, session: SessionId) {
        let limit = ROWS_PER_SWEEP;
        self.call(Sent::Sweep { session, limit }, Call::Sweep { session, limit });
    }

    pub(super) fn sweep_next(&mut self) {
        if self.flight.sweeps().is_some() {
            return;
        }
        match self.to_sweep.pop_front() {
            None => {}
            Some(ToSweep { session, silent_at: None }) => self.sweep(session),
            Some(ToSweep { session, silent_at: Some(seq) }) => {
                let by = self.me();
                self.call(Sent::Expire(session), Call::Expire { by, session, seq });
            }
        }
    }
}
