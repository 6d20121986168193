//! The work that waits, and until when.

use crate::node::flow::linger::{Linger, StartPriority};
use crate::node::flow::start_rate::StartRate;
use crate::node::flow::stealing::StealPlan;
use crate::node::types::Backoff;
use crate::time::BootTime;

/// The work that waits until the store is free for it.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Agenda {
    pub(in crate::node) peek: bool,
    pub(in crate::node) claim: bool,
    /// Some of the rows to claim were due already when this node heard of them.
    pub(in crate::node) overdue: bool,
    /// The plan of the last peek.
    pub(in crate::node) steal: Option<StealPlan>,
    pub(in crate::node) linger: Linger,
    pub(in crate::node) start_rate: StartRate,
    pub(in crate::node) start_priority: StartPriority,
    pub(in crate::node) next_peek: BootTime,
    pub(in crate::node) next_recovery: BootTime,
    pub(in crate::node) claim_backoff: Backoff,
    pub(in crate::node) start_backoff: Backoff,
    pub(in crate::node) finish_backoff: Backoff,
    pub(in crate::node) settle_backoff: Backoff,
    pub(in crate::node) release_backoff: Backoff,
    pub(in crate::node) recovery_backoff: Backoff,
}

impl Agenda {
    pub(in crate::node) const fn backoffs(&self) -> [Backoff; 6] {
        [
            self.claim_backoff,
            self.start_backoff,
            self.finish_backoff,
            self.settle_backoff,
            self.release_backoff,
            self.recovery_backoff,
        ]
    }

    pub(in crate::node) fn forget_waits_that_are_over(&mut self, now: BootTime) {
        self.linger.forget_if_over(now);
        for backoff in [
            &mut self.claim_backoff,
            &mut self.start_backoff,
            &mut self.finish_backoff,
            &mut self.settle_backoff,
            &mut self.release_backoff,
            &mut self.recovery_backoff,
        ] {
            backoff.forget_if_over(now);
        }
    }
}
