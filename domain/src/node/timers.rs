//! When the node is to be woken: one timer for each wait, set where the wait is decided. The earliest of them is
//! [`super::Node::next_wake`].

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::node::call::CallKind;
use crate::time::BootTime;

/// The waits of a node. A call in flight needs none: its answer wakes the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::node) enum Timer {
    /// The lease ends.
    Lease,
    /// The next heartbeat.
    Heartbeat,
    /// A prepared run falls due.
    Due,
    /// A newer firing replaces a run.
    Replacement,
    /// Due runs wait for others, or for a backoff.
    Start,
    /// Ended runs wait for others, or for a backoff.
    Finish,
    /// Unknown outcomes wait for a backoff.
    Settle,
    /// Runs to release wait for a backoff.
    Release,
    /// Runs to write back wait for a backoff.
    WriteBack,
    /// A claim waits for a backoff.
    Claim,
    /// The next peek.
    Peek,
    /// The next recovery.
    Recovery,
    /// A drain cancels its runs.
    Drain,
}

/// All timers. Each step of the node sets them from its state, so they are no state of their own. They do not count when two nodes are
/// compared.
#[derive(Debug, Default, Clone)]
pub(in crate::node) struct Timers(BTreeMap<Timer, BootTime>);

impl Timers {
    /// A node that is to be woken at once.
    pub fn at(now: BootTime) -> Self {
        Self(BTreeMap::from([(Timer::Heartbeat, now)]))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets a timer, or clears it.
    pub fn set(&mut self, timer: Timer, at: Option<BootTime>) {
        match at {
            Some(at) => _ = self.0.insert(timer, at),
            None => _ = self.0.remove(&timer),
        }
    }

    /// The earliest; a time that never comes if there is none.
    pub fn earliest(&self) -> BootTime {
        self.0.values().min().copied().unwrap_or(BootTime::from_ms(u64::MAX))
    }
}

impl Hash for Timers {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Calls that failed are repeated later and later: after 50 ms, doubling up to 5 s.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Backoffs(BTreeMap<CallKind, Backoff>);

#[derive(Debug, Default, Clone, Copy, Hash)]
struct Backoff {
    until: BootTime,
    failures: u32,
}

impl Backoffs {
    const FIRST_MS: u64 = 50;
    const LONGEST_MS: u64 = 5_000;

    /// A call of the kind failed; answers until when none is sent.
    pub fn failed(&mut self, kind: CallKind, now: BootTime) -> BootTime {
        let backoff = self.0.entry(kind).or_default();
        let wait_ms = (Self::FIRST_MS << backoff.failures.min(10)).min(Self::LONGEST_MS);
        *backoff = Backoff { until: now + Duration::from_millis(wait_ms), failures: backoff.failures + 1 };
        backoff.until
    }

    pub fn succeeded(&mut self, kind: CallKind) {
        self.0.remove(&kind);
    }

    /// Until when no call of the kind is sent, if that is later than now.
    pub fn until(&self, kind: CallKind, now: BootTime) -> Option<BootTime> {
        self.0.get(&kind).map(|backoff| backoff.until).filter(|until| *until > now)
    }
}
