//! Suspension: while a loss of commits is not accepted ([`crate::lost_commits`]), nothing is claimed or started and prepared runs are
//! released. No session is ended for its silence: a sequence that came back does not tell when its session was last there. Executing runs
//! go on, and their records are kept.

use super::types::Heartbeat;
use super::{Node, Stage};
use crate::guard::{Guard, enabled};
use crate::lost_commits::LossWindow;

impl Heartbeat {
    /// The database lives and knows the newest heartbeat.
    pub(super) fn acknowledged(&mut self) {
        self.acked = self.seq;
    }
}

impl Node {
    /// The highest heartbeat sequence that the database acknowledged; 0 before the first. Claims, starts and heartbeats carry it, as the
    /// database may have lost it.
    pub fn acked(&self) -> u64 {
        self.beat.acked
    }

    /// The reason why nothing is claimed or started, from the newest heartbeat.
    pub fn suspended_by(&self) -> Option<LossWindow> {
        self.suspended_by
    }

    pub(super) fn suspend(&mut self, window: Option<LossWindow>) {
        // A peek finds the rows that fell due during the suspension.
        self.agenda.peek |= self.suspended_by.is_some() && window.is_none();
        self.suspended_by = window;
        if window.is_some() {
            if enabled(Guard::LossRestartsExpiry) {
                self.detector.restart();
            }
            for run in self.in_stage(&Stage::Prepared) {
                self.set_stage(run, Stage::Releasing);
            }
        }
    }
}
