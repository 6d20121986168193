//! Finishes linger: they wait for others, so that one commit records many runs. A late start is seen by people, a late record is not. So a busy
//! node saves the database work here, and an idle one waits for nothing.

use std::time::Duration;

use crate::firing::Firing;
use crate::node::flow::Load;
use crate::run::Trigger;
use crate::time::{BootTime, Timestamp};

/// How long after a finish the next one waits for more, where nobody needs its record.
const LINGER: Duration = Duration::from_millis(250);
/// The same where somebody may need it: a person, the next firing of the job, or a run without a place.
const HURRY: Duration = Duration::from_millis(25);
/// No schedule is closer than a second. Half a second after a due time the next one has not come.
const NOT_YET_DUE_AGAIN: Duration = Duration::from_millis(500);
/// If more runs than this execute, others will end soon after the first.
const FEW: usize = 10;

/// The finishes sent lately, and how long ended runs may wait since then.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Linger {
    /// When the last finish was sent, if that is no longer ago than [`LINGER`].
    sent: Option<BootTime>,
    /// When the most urgent of the ended runs is to be recorded.
    record_by: Option<BootTime>,
}

impl Linger {
    pub fn sent(&mut self, now: BootTime) {
        *self = Self { sent: Some(now), record_by: None };
    }

    /// A run ended. A person may wait for the record of a manual run, and the next firing for that of a run which took long.
    pub fn ended(&mut self, firing: Option<Firing>, utc: Timestamp, now: BootTime) {
        let scheduled = firing.filter(|firing| firing.trigger != Trigger::Manual);
        let may_wait = scheduled.map_or(Duration::ZERO, |firing| (firing.start_at + NOT_YET_DUE_AGAIN).since(utc));
        self.record_by(now + may_wait.clamp(HURRY, LINGER));
    }

    /// An ended run is to be recorded by then.
    pub fn record_by(&mut self, at: BootTime) {
        self.record_by = Some(self.record_by.map_or(at, |by| by.min(at)));
    }

    /// Until when ended runs wait for more. After a pause the first one goes at once if few runs execute.
    pub fn wait(&mut self, load: &Load) -> Option<BootTime> {
        self.sent = self.sent.filter(|sent| *sent + LINGER > load.now);
        let until = match self.sent {
            None => self.record_by.filter(|_| load.executing > FEW),
            Some(sent) => {
                // Each run keeps its place until it is recorded, and due runs have none.
                let is_full = load.executing >= load.max_executing && load.due > 0;
                let until = if is_full { sent + HURRY } else { sent + LINGER };
                Some(self.record_by.map_or(until, |by| by.min(until)))
            }
        };
        until.filter(|until| *until > load.now)
    }
}
