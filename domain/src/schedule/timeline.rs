//! The due times of one job: its schedule with the job's anchor, start, end and jitter.

use std::time::Duration;

use super::Schedule;
use crate::time::Timestamp;

/// The due times of a job: an ordered sequence of instants. Every node computes the same sequence.
///
/// `start_at` and `end_at` bound the due times before the jitter is added. Both are inclusive: a job with `end_at` at
/// its last due time still runs then.
///
/// ```
/// use carillon_domain::schedule::{Options, Schedule, Timeline};
/// use carillon_domain::time::Timestamp;
///
/// let options = Options { timezone: Some("Europe/Berlin"), hash_key: "default/nightly-backup", ..Options::default() };
/// let timeline = Timeline::new(Schedule::parse("0 3 * * *", &options)?, Timestamp::EPOCH);
/// let monday = Timestamp::from_secs(1_780_272_000); // 2026-06-01T00:00:00Z
/// let due: Vec<_> = timeline.after(monday).take(2).map(Timestamp::to_rfc3339_short).collect();
/// assert_eq!(due, ["2026-06-01T01:00:00Z", "2026-06-02T01:00:00Z"]);
/// # Ok::<(), carillon_domain::schedule::ScheduleError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The schedule.
    pub schedule: Schedule,
    /// Where `@every` counts from: the first due time is one interval later. Other schedules ignore it.
    pub anchor: Timestamp,
    /// No due time is before this.
    pub start_at: Option<Timestamp>,
    /// No due time is after this.
    pub end_at: Option<Timestamp>,
    /// Shifts every due time. It is the job's [`jitter_offset`](super::jitter_offset), not the width of its jitter.
    pub jitter: Duration,
}

impl Timeline {
    /// A timeline without bounds and jitter.
    pub fn new(schedule: Schedule, anchor: Timestamp) -> Self {
        Self { schedule, anchor, start_at: None, end_at: None, jitter: Duration::ZERO }
    }

    /// The first due time strictly later than `t`. `None` if there is none: after a one-shot schedule has fired, after
    /// `end_at`, and after the year 9999.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        let due = self.schedule.next(self.anchor, self.lower(t))?;
        self.end_at.is_none_or(|end| due <= end).then_some(due + self.jitter).filter(|&due| due <= Timestamp::MAX)
    }

    /// The last due time at or before `t`; `None` if there was none.
    pub fn last_until(&self, t: Timestamp) -> Option<Timestamp> {
        let due = self.schedule.last(self.anchor, self.upper(t))?;
        self.start_at.is_none_or(|start| start <= due).then_some(due + self.jitter)
    }

    /// The exact number of due times in `(after, until]`; 0 if `until` is not later. It is quick over any length of
    /// time, because it counts days and does not visit due times.
    pub fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        self.schedule.count(self.anchor, self.lower(after), self.upper(until))
    }

    /// The due times later than `t`, in order.
    pub fn after(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next_after(t), |&due| self.next_after(due))
    }

    /// The due times at or before `t`, newest first: `timeline.until(now).take(100)` are the newest of a backlog.
    pub fn until(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.last_until(t), |&due| self.last_until(due - Timestamp::TICK))
    }

    /// `t` without the jitter, as an exclusive lower bound that respects the start.
    fn lower(&self, t: Timestamp) -> Timestamp {
        let t = t - self.jitter;
        self.start_at.map_or(t, |start| t.max(start - Timestamp::TICK))
    }

    /// `t` without the jitter, as an inclusive upper bound that respects the end.
    fn upper(&self, t: Timestamp) -> Timestamp {
        let t = t.min(Timestamp::MAX) - self.jitter;
        self.end_at.map_or(t, |end| t.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn timeline(schedule: &str) -> Timeline {
        Timeline::new(Schedule::parse(schedule, &Options::default()).unwrap(), at("2026-01-01T00:00:00.250Z"))
    }

    #[test]
    fn every_counts_from_the_anchor() {
        let t = timeline("@every 90s");
        assert_eq!(t.next_after(at("2020-01-01T00:00:00Z")), Some(at("2026-01-01T00:01:30.250Z")));
        assert_eq!(t.next_after(at("2026-01-01T00:01:30.250Z")), Some(at("2026-01-01T00:03:00.250Z")));
        assert_eq!(t.last_until(at("2026-01-01T00:01:30.249Z")), None);
        assert_eq!(t.count(Timestamp::EPOCH, at("2027-01-01T00:00:00.250Z")), 365 * 960);
        assert_eq!(t.schedule.next_after(at("2026-01-01T00:00:07Z")), Some(at("2026-01-01T00:01:37Z")));
    }

    #[test]
    fn one_shot_is_due_once() {
        let t = timeline("@at 2027-01-01T01:00:00.5+01:00");
        let due = at("2027-01-01T00:00:00.500Z");
        assert_eq!(t.after(Timestamp::EPOCH).collect::<Vec<_>>(), [due]);
        assert_eq!((t.next_after(due), t.last_until(due)), (None, Some(due)));
        assert_eq!((t.count(Timestamp::EPOCH, due), t.count(due, Timestamp::MAX)), (1, 0));
    }

    #[test]
    fn bounds_are_inclusive_and_hold_before_the_jitter() {
        let mut t = timeline("0 12 * * *");
        t.start_at = Some(at("2026-03-01T12:00:00Z"));
        t.end_at = Some(at("2026-03-03T12:00:00Z"));
        t.jitter = Duration::from_millis(1_500);
        let all = ["2026-03-01T12:00:01.500Z", "2026-03-02T12:00:01.500Z", "2026-03-03T12:00:01.500Z"].map(at);
        assert_eq!(t.after(Timestamp::EPOCH).collect::<Vec<_>>(), all);
        assert_eq!(t.until(Timestamp::MAX).collect::<Vec<_>>(), [all[2], all[1], all[0]]);
        assert_eq!(t.count(Timestamp::EPOCH, Timestamp::MAX), 3);
        assert_eq!(t.count(all[0], all[1]), 1);
        assert_eq!(t.last_until(at("2026-03-01T12:00:01.499Z")), None);
    }

    #[test]
    fn instants_at_the_ends_of_the_range_do_not_overflow() {
        for schedule in ["* * * * * *", "@every 1s", "@at 9999-12-31T23:59:59Z", "0 0 29 2 *"] {
            let mut t = timeline(schedule);
            for jitter in [0, 7, u64::MAX] {
                t.jitter = Duration::from_millis(jitter);
                for ms in [i64::MIN, -1, 0, Timestamp::MAX.as_ms(), i64::MAX] {
                    let instant = Timestamp::from_ms(ms);
                    assert!(t.next_after(instant).is_none_or(|due| due > instant && due <= Timestamp::MAX));
                    assert!(t.last_until(instant).is_none_or(|due| due <= instant));
                    t.count(instant, Timestamp::from_ms(i64::MAX));
                }
            }
        }
    }

    #[test]
    fn a_century_of_seconds_is_counted_without_a_visit_to_each() {
        let t = timeline("TZ=Europe/Berlin * * * * * *");
        let seconds = t.count(at("1999-12-31T23:59:59Z"), at("2099-12-31T23:59:59Z"));
        assert_eq!(seconds, 36_525 * 86_400);
    }
}
