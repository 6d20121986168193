//! Expectations: how soon a due time of a job should have started and succeeded.
//!
//! They are measured from the due time and not from the start, so a due time that never ran breaks them too. Each due time is judged
//! once for each kind, at its limit. [`judge`] moves two cursors over the due times of a job, as scheduling does.

mod judge;
mod time_of_day;

pub use judge::{DueFacts, Judged, Judgement, LiveRun, Paused, SETTLE, judge, needed};
pub use time_of_day::{BadTimeOfDay, TimeOfDay};

use std::time::Duration;

use crate::id::RunId;
use crate::run::{DueRange, Reason, Status};
use crate::time::Timestamp;

use super::when::When;

/// The expectations of a job; at least one is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Expect {
    /// A run of the due time has started within this time after it.
    pub start_within: Option<Duration>,
    /// A run of the due time has succeeded within this time after it.
    pub finish_within: Option<Duration>,
    /// A run of the due time has succeeded by the first such time of day after it, in the job's zone.
    pub finish_by: Option<TimeOfDay>,
}

/// The judgement on one due time, or on several in a row that came out alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An expectation is broken.
    Broken(Broken),
    /// It is kept.
    Kept {
        /// `LateStart` or `LateFinish`.
        when: When,
        /// The last of the due times.
        due_at: Timestamp,
    },
}

/// A broken expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// `LateStart` or `LateFinish`.
    pub when: When,
    /// The due times; several if many passed in a row, such as while the cluster was down.
    pub due: DueRange,
    /// By when the last of them should have started or succeeded.
    pub limit: Timestamp,
    /// The reason for the last of them.
    pub because: Because,
    /// Its run, if it has one.
    pub run: Option<RunId>,
}

/// Why an expectation was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// No node started it, and there is no record of it.
    NotStarted,
    /// The job is paused.
    Paused(Paused),
    /// A record tells why it did not run, or not surely.
    NotRun(Reason),
    /// It started after the limit.
    StartedLate(Timestamp),
    /// It runs since then.
    StillRuns(Timestamp),
    /// It succeeded after the limit.
    SucceededLate(Timestamp),
    /// It ended then, but did not succeed.
    Ended(Status, Timestamp),
}

impl Expect {
    /// The shortest expectation.
    pub const LEAST: Duration = Duration::from_secs(1);
    /// The longest one: history must still hold the runs at the limit.
    pub const MOST: Duration = Duration::from_secs(7 * 86_400);

    /// Whether it can be stored.
    ///
    /// # Errors
    /// The faulty field, empty for the whole, and a sentence about it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, given) in [("start_within", self.start_within), ("finish_within", self.finish_within)] {
            if given.is_some_and(|given| !(Self::LEAST..=Self::MOST).contains(&given)) {
                return Err((field, "it is out of bounds: allowed are 1s to 7d".into()));
            }
        }
        match (self.start_within, self.finish_within) {
            (None, None) if self.finish_by.is_none() => {
                Err(("", "it expects nothing: give start_within, finish_within or finish_by".into()))
            }
            (Some(start), Some(finish)) if finish < start => {
                Err(("finish_within", "it is shorter than start_within".into()))
            }
            _ => Ok(()),
        }
    }

    /// By when a due time must have started; `None` if that is not expected.
    pub fn start_limit(&self, due_at: Timestamp) -> Option<Timestamp> {
        self.start_within.map(|within| due_at + within)
    }

    /// By when a due time must have succeeded, with the job's zone: the earlier of both limits.
    pub fn finish_limit(&self, zone: &str, due_at: Timestamp) -> Option<Timestamp> {
        let within = self.finish_within.map(|within| due_at + within);
        let by = self.finish_by.map(|by| by.first_after(zone, due_at));
        within.into_iter().chain(by).min()
    }
}
