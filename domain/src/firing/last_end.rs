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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firing::Firing;
    use crate::id::JobId;
    use crate::run::{DueRange, Reason};

    /// A record of a status that ended at second `at`; a run unless it is `skipped`.
    fn record(status: Status, at: i64, started: bool) -> RunRecord {
        let firing = Firing::regular(Timestamp::from_secs(at));
        let due = DueRange { count: 1, first: firing.due_at, last: firing.due_at };
        let started_at = started.then_some(firing.due_at);
        RunRecord { status, started_at, ..RunRecord::skipped(JobId(1), due, Reason::Misfire, firing.due_at) }
    }

    #[test]
    fn trouble_lasts_from_the_first_bad_end_until_a_success() {
        let mut end = None;
        for (record, status, troubled_since) in [
            (record(Status::Skipped, 1, false), None, None),
            (record(Status::Cancelled, 2, false), None, None),
            (record(Status::Succeeded, 3, true), Some(Status::Succeeded), None),
            (record(Status::Cancelled, 4, true), Some(Status::Cancelled), None),
            (record(Status::Lost, 5, false), Some(Status::Lost), Some(5)),
            (record(Status::Failed, 6, true), Some(Status::Failed), Some(5)),
            (record(Status::Cancelled, 7, true), Some(Status::Cancelled), Some(5)),
            (record(Status::Cancelled, 8, false), Some(Status::Cancelled), Some(5)),
            (record(Status::TimedOut, 9, true), Some(Status::TimedOut), Some(5)),
            (record(Status::Succeeded, 10, true), Some(Status::Succeeded), None),
            (record(Status::TimedOut, 11, true), Some(Status::TimedOut), Some(11)),
        ] {
            end = LastEnd::after(end, &record);
            let expected =
                status.map(|status| LastEnd { status, troubled_since: troubled_since.map(Timestamp::from_secs) });
            assert_eq!(end, expected, "{record:?}");
        }
    }
}
