//! Two calls of a kind on their way to the store at the same time.
//!
//! While one is on its way the next gathers what comes up, so that a busy node sends few large batches. Many waiting is another
//! matter: then a second call goes beside the first, and the database works while the node takes in an answer. But not where
//! calls of all kinds keep it busy already. No run is in two of them, and each answer names its lane.

use super::Node;
use crate::id::RunId;

/// So many are worth a call of their own while another is on its way.
pub(super) const ENOUGH: usize = 250;
/// Claims, starts and finishes at a time. More than these only get into each other's way.
const BUSY: usize = 3;

/// Which of the calls of a kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lane(u8);

/// The runs of the calls of a kind that are on their way.
#[derive(Debug, Default, Clone, Hash)]
pub(super) struct Lanes([Option<Vec<RunId>>; 2]);

impl Lanes {
    /// The one to use next, where one is free.
    pub fn free(&self) -> Option<Lane> {
        self.0.iter().position(Option::is_none).map(|at| Lane(at as u8))
    }

    /// Whether nothing is on its way.
    pub fn are_empty(&self) -> bool {
        self.calls() == 0
    }

    /// How many calls are on their way.
    fn calls(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// How many runs are.
    pub fn runs(&self) -> usize {
        self.0.iter().flatten().map(Vec::len).sum()
    }

    pub fn send(&mut self, lane: Lane, runs: Vec<RunId>) {
        if let Some(place) = self.0.get_mut(usize::from(lane.0)) {
            *place = Some(runs);
        }
    }

    /// What was sent in this lane, which is free from now on.
    pub fn take(&mut self, lane: Lane) -> Option<Vec<RunId>> {
        self.0.get_mut(usize::from(lane.0)).and_then(Option::take)
    }
}

impl Node {
    /// Whether `waiting` runs are worth a call beside those of the kind that are on their way.
    pub(super) fn may_send_beside(&self, on_their_way: &Lanes, waiting: usize) -> bool {
        let calls = usize::from(self.claims()) + self.flight.start.calls() + self.flight.finish.calls();
        on_their_way.are_empty() || waiting >= ENOUGH.min(self.config.max_batch) && calls < BUSY
    }
}
