//! What is recorded of a run, and of due times that did not run (SPEC section 3, S6).

use std::fmt;

use crate::id::{JobId, RunId, SessionId};
use crate::time::Timestamp;

/// What made a firing come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// Its due time, started within the grace.
    Schedule,
    /// Somebody asked for a run now.
    Manual,
    /// Its due time, made good by the misfire policy.
    Misfire,
}

impl Trigger {
    /// Every value.
    pub const ALL: [Trigger; 3] = [Trigger::Schedule, Trigger::Manual, Trigger::Misfire];

    /// The name in SPEC section 3.
    pub const fn as_str(self) -> &'static str {
        match self {
            Trigger::Schedule => "schedule",
            Trigger::Manual => "manual",
            Trigger::Misfire => "misfire",
        }
    }
}

/// How a run stands or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It lives.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly or could not be started.
    Failed,
    /// It was ended because its timeout passed.
    TimedOut,
    /// Somebody, or a newer firing, ended it.
    Cancelled,
    /// Its node died, was fenced or lost it.
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

    /// The name in SPEC section 3.
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

/// Why a due time did not run, or why a run ended as it did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The previous run still lived.
    Overlap,
    /// Nobody could start it in time.
    Misfire,
    /// The job was paused.
    Paused,
    /// A new definition came before the start.
    Updated,
    /// The job was deleted before the start.
    Deleted,
    /// A newer firing took its place (`overlap = replace`).
    Replaced,
    /// Somebody cancelled it.
    Cancelled,
    /// The session that ran it ended without a word.
    SessionEnded,
    /// It may have started in commits that the database lost.
    CommitsLost,
    /// What the executor said.
    Said(String),
}

impl Reason {
    /// Reads back what `Display` wrote.
    pub fn from_text(text: &str) -> Self {
        let fixed = [
            Reason::Overlap,
            Reason::Misfire,
            Reason::Paused,
            Reason::Updated,
            Reason::Deleted,
            Reason::Replaced,
            Reason::Cancelled,
            Reason::SessionEnded,
            Reason::CommitsLost,
        ];
        fixed.into_iter().find(|reason| reason.to_string() == text).unwrap_or_else(|| Reason::Said(text.to_owned()))
    }

    /// Tells apart derived records of one due time.
    const fn kind(&self) -> u8 {
        match self {
            Reason::Overlap => 1,
            Reason::Misfire => 2,
            Reason::Paused => 3,
            Reason::Updated => 4,
            Reason::Deleted => 5,
            Reason::Replaced => 6,
            Reason::Cancelled => 7,
            Reason::SessionEnded => 8,
            Reason::Said(_) => 9,
            Reason::CommitsLost => 10,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Overlap => "overlap",
            Reason::Misfire => "misfire",
            Reason::Paused => "paused",
            Reason::Updated => "updated",
            Reason::Deleted => "deleted",
            Reason::Replaced => "replaced",
            Reason::Cancelled => "cancelled",
            Reason::SessionEnded => "the node's session ended while it ran",
            Reason::CommitsLost => "the database went back in time: nobody knows whether it started",
            Reason::Said(text) => text,
        })
    }
}

/// How a run ended, as the executor tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ending {
    /// Anything but `Running` and `Skipped`.
    pub status: Status,
    /// Exit code of the process, where there was one.
    pub exit_code: Option<i32>,
    /// Signal that ended the process, where one did.
    pub signal: Option<i32>,
    /// Where the status alone does not tell all.
    pub reason: Option<Reason>,
    /// When it ended. Due times up to here came up while it lived.
    pub ended_at: Timestamp,
}

impl Ending {
    /// A run whose node is gone.
    pub fn lost(ended_at: Timestamp) -> Self {
        Self { status: Status::Lost, exit_code: None, signal: None, reason: Some(Reason::SessionEnded), ended_at }
    }
}

/// What a run printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Output {
    /// stdout and stderr in order.
    pub bytes: Vec<u8>,
    /// Whether something in the middle was left out.
    pub truncated: bool,
}

/// One row of history: a run that ended, or a stretch of due times that did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Identifies the record everywhere.
    pub id: RunId,
    /// Whose it is.
    pub job: JobId,
    /// The due time; of a range the last.
    pub due_at: Timestamp,
    /// What made it come up.
    pub trigger: Trigger,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// How it ended; never `Running`.
    pub status: Status,
    /// Why, where the status alone does not tell.
    pub reason: Option<Reason>,
    /// Exit code of the process, where there was one.
    pub exit_code: Option<i32>,
    /// Signal that ended the process, where one did.
    pub signal: Option<i32>,
    /// When it was started, if it was.
    pub started_at: Option<Timestamp>,
    /// When it ended, or when it was recorded as not run.
    pub finished_at: Timestamp,
    /// `started_at` minus the time at which it should have started, in milliseconds.
    pub lag_ms: Option<i64>,
    /// Which session ran it.
    pub session: Option<SessionId>,
    /// The token that it carried.
    pub fencing_token: Option<u64>,
    /// How many due times this record stands for.
    pub count: u64,
    /// The first of them.
    pub first_due_at: Timestamp,
}

/// Beyond every [`Reason::kind`].
const UNCERTAIN_MANUAL: u8 = 11;

/// Due times, one after the other, that share a fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRange {
    /// How many there are; at least 1.
    pub count: u64,
    /// The first.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
}

impl DueRange {
    /// Two stretches that share a fate, the earlier one first.
    #[must_use]
    pub fn join(self, later: DueRange) -> DueRange {
        DueRange { count: self.count + later.count, first: self.first, last: later.last }
    }
}

impl RunRecord {
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
            session: None,
            fencing_token: None,
            count: due_range.count,
            first_due_at: due_range.first,
        }
    }

    /// The record of a firing that may have started in commits that were lost. `run` is its id, if somebody was told one.
    pub fn commits_lost(
        job: JobId,
        run: Option<RunId>,
        (due_at, trigger, attempt): (Timestamp, Trigger, u32),
        now: Timestamp,
    ) -> Self {
        let due_range = DueRange { count: 1, first: due_at, last: due_at };
        // A manual run may bear the due time of another firing of the job.
        let derived = match trigger {
            Trigger::Manual => RunId::derived(job, due_at.as_ms(), UNCERTAIN_MANUAL),
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
    fn a_reason_survives_text() {
        for reason in
            [Reason::Overlap, Reason::SessionEnded, Reason::CommitsLost, Reason::Said("no such program: foo".into())]
        {
            assert_eq!(Reason::from_text(&reason.to_string()), reason);
        }
    }

    #[test]
    fn recording_a_skipped_due_time_twice_is_the_same_fact() {
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
    fn records_of_one_due_time_differ_by_their_reason_and_a_manual_one_from_all() {
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
        let doubtful = |run, trigger| RunRecord::commits_lost(job, run, (at, trigger, 1), at).id;
        assert_eq!(doubtful(None, Trigger::Schedule), ids[8]);
        ids.push(doubtful(None, Trigger::Manual));
        let told = RunId::drawn(SessionId::from_random(1), 1);
        assert_eq!(doubtful(Some(told), Trigger::Manual), told, "somebody was told that id");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 11);
    }

    #[test]
    fn stretches_that_share_a_fate_are_told_as_one() {
        let ms = Timestamp::from_ms;
        let due_range = |count, first, last| DueRange { count, first: ms(first), last: ms(last) };
        assert_eq!(due_range(2, 1, 2).join(due_range(3, 3, 5)), due_range(5, 1, 5));
    }
}
