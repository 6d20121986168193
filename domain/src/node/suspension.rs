//! While nobody has accepted that the database lost commits ([`crate::lost_commits`]): nothing is claimed, nothing is started,
//! what is prepared is given back, and nobody is ended for its silence: a sequence that came back says nothing of when its
//! session was last there. What runs goes on, and its record is kept.

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
    /// The highest heartbeat sequence that the database acknowledged; 0 before the first. Whatever claims, starts or beats
    /// carries it, as the database may have gone back behind it.
    pub fn acked(&self) -> u64 {
        self.beat.acked
    }

    /// Why nothing is claimed or started, as the newest heartbeat's answer tells it.
    pub fn suspended_by(&self) -> Option<LossWindow> {
        self.suspended_by
    }

    pub(super) fn suspend(&mut self, window: Option<LossWindow>) {
        // A look tells what came up meanwhile.
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
