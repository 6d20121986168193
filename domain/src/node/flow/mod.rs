//! Flow control: when calls go out and how many runs one carries. It makes a node fast and keeps nothing correct.
//!
//! A flow sees numbers and times ([`Load`]), nothing of the runs, and answers a [`Decision`]. So [`Flow::Eager`], which waits for nothing, is
//! as safe as the tuned one. The model checker runs with it.

mod eager;
mod linger;
mod start_priority;
mod start_rate;
#[cfg(test)]
mod tests;
mod tuned;

use crate::firing::Firing;
use crate::time::{BootTime, Timestamp};
use tuned::Tuned;

/// The choice of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// Calls wait for others, so that one commit serves many runs.
    Tuned,
    /// Every call goes at once.
    Eager,
}

/// The load of a node at one moment.
#[derive(Debug, Clone, Copy)]
pub(in crate::node) struct Load {
    pub now: BootTime,
    /// Runs that are due.
    pub due: usize,
    /// Runs that have ended and are not recorded.
    pub ended: usize,
    /// Runs that have a place, until they are recorded.
    pub executing: usize,
    /// Runs of starts in flight.
    pub starting: usize,
    /// Runs that the node holds, and ids that may turn out to be of its rows.
    pub held: usize,
    /// Places that are free for starts.
    pub free_places: usize,
    /// Starts, finishes and claims in flight; a claim that goes next counts.
    pub starts: usize,
    pub finishes: usize,
    pub claims: usize,
    /// Some of the rows to claim are due already.
    pub overdue: bool,
    /// No other session claims.
    pub is_alone: bool,
    pub drains: bool,
    pub max_in_flight: usize,
    pub max_executing: usize,
    pub max_batch: usize,
}

/// The answer of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) enum Decision {
    /// A call with at most so many runs goes now.
    Send(usize),
    /// No call before this time, unless something happens.
    WaitUntil(BootTime),
    /// No call until something happens.
    Wait,
}

/// A flow with its memory of the calls sent lately.
#[derive(Debug, Clone, Hash)]
pub(in crate::node) enum Flow {
    Tuned(Tuned),
    Eager,
}

impl From<FlowKind> for Flow {
    fn from(kind: FlowKind) -> Self {
        match kind {
            FlowKind::Tuned => Flow::Tuned(Tuned::default()),
            FlowKind::Eager => Flow::Eager,
        }
    }
}

impl Flow {
    /// Whether due runs are started now.
    pub fn start(&mut self, load: &Load) -> Decision {
        match self {
            Flow::Tuned(tuned) => tuned.start(load),
            Flow::Eager => eager::start(load),
        }
    }

    /// Whether ended runs are recorded now.
    pub fn finish(&mut self, load: &Load) -> Decision {
        match self {
            Flow::Tuned(tuned) => tuned.finish(load),
            Flow::Eager => eager::finish(load),
        }
    }

    /// Until when recovery waits, if it does: a list of many rows takes long, and due runs are in a hurry.
    pub fn recover(&mut self, load: &Load) -> Option<BootTime> {
        match self {
            Flow::Tuned(tuned) => tuned.starts_go_first(load),
            Flow::Eager => None,
        }
    }

    /// How many firings the next claim takes; 0 if none goes.
    pub fn claim(&self, load: &Load) -> usize {
        match self {
            Flow::Tuned(_) => tuned::claim(load),
            Flow::Eager => eager::claim(load),
        }
    }

    /// How many firings of the next claim may start in its commit. Their places are kept until the answer.
    pub fn places_of_claim(&self, load: &Load) -> usize {
        match self {
            Flow::Tuned(_) => tuned::places_of_claim(load),
            Flow::Eager => eager::places_of_claim(load),
        }
    }

    /// Whether a finish claims the next firings of its jobs.
    pub fn claims_successors(&self, load: &Load) -> bool {
        match self {
            Flow::Tuned(_) => tuned::claims_successors(load),
            Flow::Eager => eager::claim(load) > 0,
        }
    }

    /// Whether these may start in the same commit, in the place of the run that ended.
    pub fn starts_successors(&self, load: &Load) -> bool {
        match self {
            Flow::Tuned(_) => tuned::starts_successors(load),
            Flow::Eager => load.free_places >= load.due,
        }
    }

    /// A start of so many runs goes.
    pub fn start_sent(&mut self, runs: usize, now: BootTime) {
        if let Flow::Tuned(tuned) = self {
            tuned.rate.sent(runs, now);
        }
    }

    /// A finish goes.
    pub fn finish_sent(&mut self, now: BootTime) {
        if let Flow::Tuned(tuned) = self {
            tuned.linger.sent(now);
        }
    }

    /// A run ended at `utc`. `None` if its firing is not known.
    pub fn ended(&mut self, firing: Option<Firing>, utc: Timestamp, now: BootTime) {
        if let Flow::Tuned(tuned) = self {
            tuned.linger.ended(firing, utc, now);
        }
    }

    /// A finish failed: its runs are to be recorded at once.
    pub fn finish_failed(&mut self, now: BootTime) {
        if let Flow::Tuned(tuned) = self {
            tuned.linger.record_by(now);
        }
    }
}
