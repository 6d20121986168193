//! The moments at which the world may act: where something has changed that its action can meet.
//!
//! A stray or a person meets rows and sessions, a crash or a late answer meets one process. Between two changes of those it
//! makes no difference when they come, nor in which order with what meets something else. So time passes until something
//! changes, and each is tried once at every such moment. Only different lengths of the same wait are given up by that.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use carillon_domain::id::SessionId;
use carillon_domain::node::call;

use super::calls::{Call, Request};
use super::state::{Process, State};

/// The changes since time passed, whose actors may meet.
#[derive(Clone, Default, Hash)]
pub(super) struct Moment {
    /// The content of the store.
    pub store: bool,
    /// The runs of these processes, and whether others let them live.
    pub processes: BTreeSet<SessionId>,
    /// The choices that were made since its process changed, and are not made again.
    decided: BTreeSet<(SessionId, Routine)>,
}

impl Moment {
    /// Whether nothing has changed: nobody acts.
    pub fn is_old(&self) -> bool {
        !self.store && self.processes.is_empty()
    }

    /// Time passes.
    pub fn grows_old(&mut self) {
        self.store = false;
        self.processes.clear();
    }
}

/// The difference between moments, as numbers: everything but the time, and values that only count it.
#[derive(PartialEq, Eq)]
pub(super) struct Circumstances {
    store: u64,
    processes: Vec<(SessionId, u64)>,
}

/// A call that is made again and again while nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Routine {
    Heartbeat,
    ListHeld,
}

fn routine(call: &Call) -> Option<(SessionId, Routine)> {
    match call.call {
        call::Call::Heartbeat { .. } => Some((call.session, Routine::Heartbeat)),
        call::Call::ListHeld { .. } => Some((call.session, Routine::ListHeld)),
        _ => None,
    }
}

impl State {
    /// Whether the same call was decided of since its process changed.
    pub(super) fn is_decided(&self, call: &Call) -> bool {
        routine(call).is_some_and(|one| self.moment.decided.contains(&one))
    }

    /// This call was decided of.
    pub(super) fn decided(&mut self, call: &Call) {
        self.moment.decided.extend(routine(call));
    }

    /// Everything that has changed may be met now.
    pub(super) fn look_for_changes(&mut self, before: &Circumstances) {
        let now = self.circumstances();
        self.moment.store |= now.store != before.store;
        for (session, _) in now.processes.iter().filter(|one| !before.processes.contains(one)) {
            self.moment.processes.insert(*session);
            self.moment.decided.retain(|(of, _)| of != session);
        }
    }

    pub(super) fn circumstances(&self) -> Circumstances {
        let of = |process: &Process| (process.session, number(|state| self.hash_process(process, state)));
        Circumstances {
            store: number(|state| self.hash_store(state)),
            processes: self.world.processes.iter().map(of).collect(),
        }
    }

    fn hash_store(&self, state: &mut DefaultHasher) {
        self.store.jobs().for_each(|row| row.hash(state));
        self.store.concurrent().for_each(|row| row.hash(state));
        self.store.sessions().for_each(|beat| (beat.id, beat.state).hash(state));
        (self.store.records().count(), self.store.withholds(), self.may_accept()).hash(state);
        self.requests.iter().filter(|request| self.is_overtaken(request)).count().hash(state);
        self.saved.as_ref().map(|saved| self.would_all_tell(saved)).hash(state);
    }

    fn hash_process(&self, process: &Process, state: &mut DefaultHasher) {
        let lease_is_over = process.keeper_until < process.clock.at(self.world.now_us);
        let in_store = self.store.sessions().find(|beat| beat.id == process.session).map(|beat| beat.state);
        (process.alive, self.is_frozen(process), process.own.cut, lease_is_over).hash(state);
        (process.dead_at_us.is_some(), in_store, process.own.unheard.len()).hash(state);
        process.children.iter().for_each(|(run, child)| (run, child.asked_to_stop).hash(state));
        let Some(node) = &process.node else { return };
        node.known_runs().for_each(|run| run.hash(state));
        (node.counts(), node.partitions()).hash(state);
    }

    /// Whether a heartbeat came after the one that a late request carries or speaks of.
    fn is_overtaken(&self, request: &Request) -> bool {
        let (of, seq) = match request.call.call {
            call::Call::Heartbeat { me, seq, .. } => (me.session, seq),
            call::Call::Expire { session, seq, .. } => (session, seq),
            _ => return false,
        };
        self.store.sessions().any(|beat| beat.id == of && beat.seq > seq)
    }
}

fn number(hash: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(&mut hasher);
    hasher.finish()
}
