//! The sessions of others that are over: what they held goes back, one session after another.

use super::types::Peer;
use super::{Effect, Node};
use crate::id::SessionId;
use crate::time::BootTime;

impl Node {
    /// What the answer to a heartbeat shows: sessions that were ended, and those that have shown no heartbeat for too long.
    /// Only with sequences that were just read: a node that was cut off itself has nobody to blame. The next heartbeat shows
    /// what is left to do.
    pub(super) fn note_what_is_over(&mut self, peers: &[Peer], now: BootTime) {
        let of_others = peers.iter().filter(|peer| peer.ended && peer.session != self.session);
        let ended = of_others.map(|peer| (peer.session, Effect::Sweep { session: peer.session }));
        let silent = self.detector.expired(self.session, self.config.timing.expire_after, now);
        let silent = silent.into_iter().map(|(session, seq)| (session, Effect::Expire { session, seq }));
        let on_its_way = |session: &SessionId| self.flight.sweep.as_ref() == Some(session);
        self.to_sweep = ended.chain(silent).filter(|(session, _)| !on_its_way(session)).collect();
        self.sweep_next();
    }

    /// One has come back, however.
    pub(super) fn swept(&mut self) {
        self.flight.sweep = None;
        self.sweep_next();
    }

    fn sweep_next(&mut self) {
        if self.flight.sweep.is_none()
            && let Some((session, effect)) = self.to_sweep.pop_front()
        {
            self.flight.sweep = Some(session);
            self.emit(effect);
        }
    }
}
