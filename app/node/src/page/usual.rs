//! How long a job usually takes: the median of its last 20 runs that succeeded.

use std::time::Duration;

use carillon_domain::run::{RunRecord, Status};

/// How many runs count.
const COUNTED: usize = 20;

/// How long a run took, if it started.
pub(crate) fn duration(record: &RunRecord) -> Option<Duration> {
    record.started_at.map(|started_at| record.finished_at.since(started_at))
}

/// The median of the newest runs that succeeded; `records` are newest first.
pub(crate) fn usual(records: &[RunRecord]) -> Option<Duration> {
    let succeeded = records.iter().filter(|record| record.status == Status::Succeeded);
    let mut durations: Vec<Duration> = succeeded.filter_map(duration).take(COUNTED).collect();
    durations.sort_unstable();
    let middle = durations.len() / 2;
    match (durations.len() % 2, durations.get(middle)) {
        (_, None) => None,
        (1, Some(one)) => Some(*one),
        (_, Some(upper)) => Some((durations[middle - 1] + *upper) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_domain::id::JobId;
    use carillon_domain::run::{DueRange, Reason};
    use carillon_domain::time::Timestamp;

    fn record(status: Status, ms: Option<i64>) -> RunRecord {
        let at = Timestamp::from_ms(0);
        let range = DueRange { count: 1, first: at, last: at };
        let skipped = RunRecord::skipped(JobId(1), range, Reason::Overlap, at);
        let finished_at = Timestamp::from_ms(ms.unwrap_or(0));
        RunRecord { status, started_at: ms.map(|_| at), finished_at, ..skipped }
    }

    #[test]
    fn the_usual_duration_is_the_median_of_the_newest_successes() {
        let ms = Duration::from_millis;
        let succeeded = |took| record(Status::Succeeded, Some(took));
        assert_eq!(usual(&[]), None);
        assert_eq!(usual(&[record(Status::Failed, Some(9)), record(Status::Skipped, None)]), None);
        assert_eq!(usual(&[succeeded(30), record(Status::Failed, Some(1)), succeeded(10)]), Some(ms(20)));
        assert_eq!(usual(&[succeeded(30), succeeded(10), succeeded(500)]), Some(ms(30)));
        let old = (0..30).map(|n| succeeded(if n < 20 { 5 } else { 1_000 })).collect::<Vec<_>>();
        assert_eq!(usual(&old), Some(ms(5)), "older ones do not count");
    }
}
