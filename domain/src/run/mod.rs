//! History: the records of runs that ended and of due times that did not run.

mod reason;
pub mod trace;

use std::time::Duration;

use crate::id::{JobId, RunId, SessionId};
use crate::measured::{ClaimedAt, Usage};
use crate::time::Timestamp;

pub use reason::Reason;

/// Why a firing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// Its due time has come, and it starts within the grace.
    Schedule,
    /// A person asked for a run now.
    Manual,
    /// Its due time was missed, and the misfire policy runs it.
    Misfire,
}

impl Trigger {
    /// Every value.
    pub const ALL: [Trigger; 3] = [Trigger::Schedule, Trigger::Manual, Trigger::Misfire];

    /// The name that users read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Trigger::Schedule => "schedule",
            Trigger::Manual => "manual",
            Trigger::Misfire => "misfire",
        }
    }
}

/// The state of a run, or its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It is executing.
    Running,
    /// It ended with success.
    Succeeded,
    /// It ended with an error, or could not be started.
    Failed,
    /// It was ended because its timeout passed.
    TimedOut,
    /// A person or a newer firing ended it.
    Cancelled,
    /// Its node died, was fenced or lost it, so its outcome is unknown.
    Lost,
    /// The due time did not run.
    Skipped,
}

impl Status {
    /// Every value.
    pub const ALL: [Status; 7] = [
        Status::Running,
        Status::Succeeded,
        Status::Failed,
        Status::TimedOut,
        Status::Cancelled,
        Status::Lost,
        Status::Skipped,
    ];

    /// The name that users read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::TimedOut => "timed_out",
            Status::Cancelled => "cancelled",
            Status::Lost => "lost",
            Status::Skipped => "skipped",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It ended with exit code 0, or its executor reported success.
    Succeeded,
    /// It ended with an error, or could not be started.
    Failed,
    /// It was ended because its timeout passed.
    TimedOut,
    /// A person or a newer firing ended it.
    Cancelled,
    /// It was fenced: the node did not answer the keeper in time, or the keeper died.
    Lost,
}

impl Outcome {
    /// Every value.
    pub const ALL: [Outcome; 5] =
        [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Lost];
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Status::Succeeded,
            Outcome::Failed => Status::Failed,
            Outcome::TimedOut => Status::TimedOut,
            Outcome::Cancelled => Status::Cancelled,
            Outcome::Lost => Status::Lost,
        }
    }
}

/// How a run ended, as the executor reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ending {
    /// Any status except `Running` and `Skipped`.
    pub status: Status,
    /// The exit code of the process, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended the process, if one did.
    pub signal: Option<i32>,
    /// The reason, if the status alone does not explain the ending.
    pub reason: Option<Reason>,
    /// When it ended. Due times up to here overlapped with it.
    pub ended_at: Timestamp,
    /// When its node claimed it; the node sets it.
    pub claimed_at: ClaimedAt,
    /// The machine that it used.
    pub usage: Usage,
}

impl Ending {
    /// An ending of which no more is known.
    pub fn new(status: Status, ended_at: Timestamp) -> Self {
        let (claimed_at, usage) = (ClaimedAt::default(), Usage::default());
        Self { status, exit_code: None, signal: None, reason: None, ended_at, claimed_at, usage }
    }

    /// The same, not after `now`. The clock of the node that saw it may be ahead.
    #[must_use]
    pub fn by(&self, now: Timestamp) -> Self {
        Self { ended_at: self.ended_at.min(now), ..self.clone() }
    }

    /// The ending of a run whose session has ended.
    pub fn lost(ended_at: Timestamp) -> Self {
        Self { reason: Some(Reason::SessionEnded), ..Self::new(Status::Lost, ended_at) }
    }
}

/// The output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Output {
    /// stdout and stderr in order.
    pub bytes: Vec<u8>,
    /// Whether something in the middle was left out.
    pub truncated: bool,
}

/// One row of history: a run that ended, or a range of due times that did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The id of the run, or one that is derived from the job and the due time.
    pub id: RunId,
    /// The job.
    pub job: JobId,
    /// The due time; the last one of a range.
    pub due_at: Timestamp,
    /// Why the firing started.
    pub trigger: Trigger,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The outcome; never `Running`.
    pub status: Status,
    /// The reason, if the status alone does not explain the outcome.
    pub reason: Option<Reason>,
    /// The exit code of the process, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended the process, if one did.
    pub signal: Option<i32>,
    /// When it started; `None` if it did not.
    pub started_at: Option<Timestamp>,
    /// When it ended, or when it was recorded as not run.
    pub finished_at: Timestamp,
    /// How late it started, in milliseconds: `started_at` minus the time at which it should have started.
    pub lag_ms: Option<i64>,
    /// How long it was prepared before it started, in milliseconds: its node had claimed it so long before.
    pub prepared_ms: Option<u64>,
    /// The machine that it used.
    pub usage: Usage,
    /// The session that ran it.
    pub session: Option<SessionId>,
    /// The fencing token of the run.
    pub fencing_token: Option<u64>,
    /// The number of due times that this record stands for.
    pub count: u64,
    /// The first of them.
    pub first_due_at: Timestamp,
}

/// In derived ids: a manual run in lost commits. Larger than every [`Reason::kind`].
const LOST_MANUAL: u8 = 11;

/// Successive due times that share one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRange {
    /// How many; at least 1.
    pub count: u64,
    /// The first.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
}

impl DueRange {
    /// Both ranges as one; `later` comes second.
    #[must_use]
    pub fn join(self, later: DueRange) -> DueRange {
        DueRange { count: self.count + later.count, first: self.first, last: later.last }
    }
}

impl RunRecord {
    /// When its node claimed it, if it started and that is known.
    pub fn claimed_at(&self) -> Option<Timestamp> {
        let (started_at, prepared_ms) = self.started_at.zip(self.prepared_ms)?;
        Some(started_at - Duration::from_millis(prepared_ms))
    }

    /// The record of due times of the schedule that did not run.
    pub fn skipped(job: JobId, due_range: DueRange, reason: Reason, now: Timestamp) -> Self {
        Self {
            id: RunId::derived(job, due_range.last.as_ms(), reason.kind()),
            job,
            due_at: due_range.last,
            trigger: Trigger::Schedule,
            attempt: 1,
            status: Status::Skipped,
            reason: Some(reason),
            exit_code: None,
            signal: None,
            started_at: None,
            finished_at: now,
            lag_ms: None,
            prepared_ms: None,
            usage: Usage::default(),
            session: None,
            fencing_token: None,
            count: due_range.count,
            first_due_at: due_range.first,
        }
    }

    /// The record of a firing that may have started in lost commits. `run` is its id, if a caller was told one.
    pub fn commits_lost(
        job: JobId,
        run: Option<RunId>,
        (due_at, trigger, attempt): (Timestamp, Trigger, u32),
        now: Timestamp,
    ) -> Self {
        let due_range = DueRange { count: 1, first: due_at, last: due_at };
        // A manual run may have the same due time as another firing of the job, so its id must differ.
        let derived = match trigger {
            Trigger::Manual => RunId::derived(job, due_at.as_ms(), LOST_MANUAL),
            Trigger::Schedule | Trigger::Misfire => RunId::derived(job, due_at.as_ms(), Reason::CommitsLost.kind()),
        };
        let record = Self::skipped(job, due_range, Reason::CommitsLost, now);
        Self { id: run.unwrap_or(derived), trigger, attempt, status: Status::Lost, ..record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_records_of_one_skipped_due_time_have_the_same_id() {
        let due_range = DueRange { count: 1, first: Timestamp::from_ms(5), last: Timestamp::from_ms(5) };
        let record = |now| RunRecord::skipped(JobId(1), due_range, Reason::Overlap, Timestamp::from_ms(now));
        assert_eq!(record(6).id, record(7).id);
    }

    #[test]
    fn values_have_the_names_that_users_read() {
        assert_eq!(Trigger::ALL.map(Trigger::as_str), ["schedule", "manual", "misfire"]);
        let status = ["running", "succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"];
        assert_eq!(Status::ALL.map(Status::as_str), status);
    }

    #[test]
    fn records_of_one_due_time_have_an_id_for_each_reason_and_one_for_a_manual_run() {
        let reasons = [
            Reason::Overlap,
            Reason::Misfire,
            Reason::Paused,
            Reason::Updated,
            Reason::Deleted,
            Reason::Replaced,
            Reason::Cancelled,
            Reason::SessionEnded,
            Reason::CommitsLost,
            Reason::Said("no".into()),
        ];
        let (at, job) = (Timestamp::from_ms(5), JobId(1));
        let due_range = DueRange { count: 1, first: at, last: at };
        let mut ids: Vec<_> = reasons.map(|reason| RunRecord::skipped(job, due_range, reason, at).id).to_vec();
        let lost = |run, trigger| RunRecord::commits_lost(job, run, (at, trigger, 1), at).id;
        assert_eq!(lost(None, Trigger::Schedule), ids[8]);
        ids.push(lost(None, Trigger::Manual));
        let told = RunId::drawn(SessionId::from_random(1), 1);
        assert_eq!(lost(Some(told), Trigger::Manual), told, "a caller was told that id");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 11);
    }

    #[test]
    fn two_ranges_join_into_one() {
        let ms = Timestamp::from_ms;
        let due_range = |count, first, last| DueRange { count, first: ms(first), last: ms(last) };
        assert_eq!(due_range(2, 1, 2).join(due_range(3, 3, 5)), due_range(5, 1, 5));
    }
}
