//! Between nodes and store: calls that arrive in time, late, never, or whose answers are lost.

use carillon_domain::id::SessionId;
use carillon_domain::invariants as must;
use carillon_domain::node::{Effect, Failure, Input};
use carillon_domain::time::BootTime;

use super::{Happening, World};
use crate::dice::executors_of;
use crate::store::Me;
use crate::store::claiming::Claimant;

impl World {
    /// On its way to the store: in time, late, lost, or with its answer lost.
    pub(super) fn send(&mut self, me: Me, mut call: Effect) {
        let session = me.0;
        let sent = self.now;
        let there = 1 + self.dice.below(30);
        if self.stuck == Some(session) && matches!(call, Effect::Claim { .. }) {
            let input = call.failed(Failure::RolledBack, BootTime::from_ms(sent)).unwrap_or(Input::Tick);
            return self.later(there, Happening::Answer { session, input });
        }
        if let (true, Effect::Finish { runs, .. }) = (self.stuck == Some(session), &mut call) {
            runs.iter_mut().for_each(|request| request.next = None);
        }
        let fate = if self.faults { self.dice.below(20) } else { 19 };
        let failure = match fate {
            0 => Some((self.dice.pick(&[Failure::RolledBack, Failure::Refused]), None)),
            1 => Some((Failure::Unknown, None)),
            2 => Some((Failure::Unknown, Some(there))),
            3 => Some((Failure::Unknown, Some(300 + self.dice.below(3_000)))),
            _ => None,
        };
        let Some((failure, applied_after)) = failure else {
            return self.later(there, Happening::Arrives { me, call, sent, answered: true });
        };
        let input = call.failed(failure, BootTime::from_ms(sent)).unwrap_or(Input::Tick);
        if let Some(after) = applied_after {
            self.later(after, Happening::Arrives { me, call, sent, answered: false });
        }
        let timeout = 50 + self.dice.below(250);
        self.later(timeout, Happening::Answer { session, input });
    }

    pub(super) fn perform(&mut self, me: Me, call: &Effect, sent: u64) -> Option<Input> {
        let session = me.0;
        let who = Claimant { session, acked: me.1, executors: executors_of(session) };
        let store = &mut self.store;
        Some(match call {
            Effect::Heartbeat { seq, draining } => {
                let answer = Ok(store.beat(me, *seq, *draining));
                Input::Beat { sent: BootTime::from_ms(sent), answer }
            }
            Effect::Peek { partitions, until } => Input::Peeked(Ok(store.peek(who, partitions, *until))),
            Effect::Claim { partitions, until, runs, places, only } => {
                Input::Claimed(Ok(store.claim(who, partitions, *until, (runs, *places), only.as_deref())))
            }
            Effect::Start { lane, runs } => Input::Started { lane: *lane, answer: Ok(store.start(me, runs)) },
            Effect::Settle(refs) => Input::Settled(Ok(store.settle(session, refs))),
            Effect::Finish { lane, runs } => Input::Finished { lane: *lane, answer: Ok(store.finish(who, runs)) },
            Effect::Reset(refs) => {
                store.reset(session, refs);
                Input::Reset(Ok(()))
            }
            Effect::ListHeld => Input::Held(Ok(store.held(session))),
            Effect::Expire { session: silent, seq } => {
                let withholds = store.withholds(me);
                if let Some(row) = store.sessions.get_mut(silent).filter(|row| row.seq == *seq && !withholds) {
                    row.ended = true;
                    self.sweep(*silent);
                }
                Input::Swept
            }
            Effect::Sweep { session: ended } => {
                self.sweep(*ended);
                Input::Swept
            }
            _ => return None,
        })
    }

    fn sweep(&mut self, session: SessionId) {
        let live = self.processes.iter().flat_map(|one| one.children.keys().map(|run| (one.session, *run)));
        must::dead_before_sweep(session, live).unwrap();
        self.store.sweep(session);
    }
}
