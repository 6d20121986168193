//! How the last run of a job ended, and since when the job is in trouble.
//!
//! A job's row keeps only this much of its history, so that the jobs which need a person are found without reading records. It does
//! not change while runs go on to end in the same way, so the row of a healthy job costs no further write.

use crate::run::{RunRecord, Status};
use crate::time::Timestamp;

/// How the last run of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LastEnd {
    /// The outcome of the last run; no due time that did not run counts.
    pub status: Status,
    /// When the first run ended badly since the last one that succeeded: it failed, timed out or was lost. A cancelled run neither
    /// begins trouble nor ends it.
    pub troubled_since: Option<Timestamp>,
}

impl LastEnd {
    /// The last end once `record` is history, after the one `before`. A record without a run changes nothing.
    pub fn after(before: Option<Self>, record: &RunRecord) -> Option<Self> {
        let troubled_since = before.and_then(|before| before.troubled_since);
        let troubled_since = match record.status {
            Status::Succeeded => None,
            Status::Failed | Status::TimedOut | Status::Lost => troubled_since.or(Some(record.finished_at)),
            Status::Cancelled if record.started_at.is_some() => troubled_since,
            Status::Cancelled | Status::Skipped | Status::Running => return before,
        };
        Some(Self { status: record.status, troubled_since })
    }
}
