//! How far history is counted.
//!
//! Records are numbered when they are inserted and become visible when their transaction commits, so a lower number may appear after a
//! higher one. A number is *settled* once nothing can appear at it or below it any more. A counter remembers the newest number that
//! it saw and when. That number is settled after a while, as whoever had drawn a lower one has inserted its row by then. The COMMIT
//! of that row may be outstanding, so the count locks the rows that it reads, and waits.

use std::time::Duration;

use carillon_domain::time::Timestamp;

/// The length of an [`crate::ActivityBucket`].
pub const BUCKET: Duration = Duration::from_secs(5 * 60);
/// The length of a [`crate::JobDay`].
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long buckets are kept; the page shows 24 hours.
pub const BUCKETS_KEPT: Duration = Duration::from_secs(26 * 60 * 60);
/// How long days are kept; the page shows a year.
pub const DAYS_KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The two counts of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// Outcomes of each five minutes and namespace.
    Activity,
    /// Outcomes of each job and day.
    JobDays,
}

impl Count {
    /// Every value.
    pub const ALL: [Count; 2] = [Count::Activity, Count::JobDays];

    /// The number of its row.
    pub const fn id(self) -> u8 {
        match self {
            Count::Activity => 1,
            Count::JobDays => 2,
        }
    }

    /// How long a number takes to be settled. A statement must take less. Days are counted once an hour,
    /// as a step writes one row for each job in it. So a run of a job that runs each minute costs a sixtieth of a row.
    pub const fn settles_after(self) -> Duration {
        match self {
            Count::Activity => Duration::from_secs(10),
            Count::JobDays => Duration::from_secs(60 * 60),
        }
    }
}

/// How far a count has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Every record up to this number is counted.
    pub done: u64,
    /// The newest number that was seen, and is counted next.
    pub seen: u64,
    /// When it was seen.
    pub seen_at: Timestamp,
}

/// A step of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Count the records behind this number.
    pub after: u64,
    /// Count them up to this number.
    pub up_to: u64,
    /// How far the count has come then.
    pub next: Counted,
}

impl Step {
    /// Whether the next step may follow at once.
    pub const fn has_more(&self) -> bool {
        self.next.done < self.next.seen && self.up_to > self.after
    }
}

impl Counted {
    /// The next step at `now`, over at most `limit` numbers, where `newest` is the highest number that is visible. A number is settled
    /// `settles_after` it was seen. `None` if there is nothing to do.
    pub fn step(self, settles_after: Duration, newest: u64, now: Timestamp, limit: u64) -> Option<Step> {
        // The clock was set back, or the newest records were deleted: what was seen says nothing.
        if now < self.seen_at || newest < self.done {
            let done = self.done.min(newest);
            return Some(Step { after: done, up_to: done, next: Self { done, seen: newest, seen_at: now } });
        }
        let is_settled = now >= self.seen_at + settles_after;
        if self.done < self.seen {
            let up_to = self.seen.min(self.done.saturating_add(limit.max(1)));
            let next = match up_to == self.seen {
                true => Self { done: up_to, seen: newest.max(up_to), seen_at: now },
                false => Self { done: up_to, ..self },
            };
            return is_settled.then_some(Step { after: self.done, up_to, next });
        }
        (newest > self.seen).then_some(Step {
            after: self.done,
            up_to: self.done,
            next: Self { done: self.done, seen: newest, seen_at: now },
        })
    }
}

/// The first instant of the five minutes or the day of this instant.
pub fn begin_of(at: Timestamp, length: Duration) -> Timestamp {
    let length = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_ms(at.as_ms().div_euclid(length) * length)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The number of the day of this instant, since 1970 in UTC.
pub const fn day_of(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(DAY_MS)
}

/// When the day of this number begins.
pub const fn begin_of_day(day: i64) -> Timestamp {
    Timestamp::from_ms(day.saturating_mul(DAY_MS))
}

/// The numbers of all days from this instant on for which counts may be kept.
pub fn days_from(first: Timestamp) -> std::ops::Range<i64> {
    let first = day_of(first).max(0);
    first..first + day_of(Timestamp::EPOCH + DAYS_KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn counted(done: u64, seen: u64, seen_at: i64) -> Counted {
        Counted { done, seen, seen_at: at(seen_at) }
    }

    fn step(from: Counted, newest: u64, now: i64) -> Option<(u64, u64, Counted)> {
        let step = from.step(Count::Activity.settles_after(), newest, at(now), 100)?;
        Some((step.after, step.up_to, step.next))
    }

    #[test]
    fn a_number_is_counted_once_it_is_settled() {
        let seen = counted(0, 7, 50);
        assert_eq!(step(counted(0, 0, 0), 7, 50), Some((0, 0, seen)), "it is looked at and not counted");
        assert_eq!(step(seen, 30, 59), None, "a lower number may still appear");
        assert_eq!(step(seen, 30, 60), Some((0, 7, counted(7, 30, 60))), "what came since then is next");
        assert_eq!(step(counted(7, 7, 60), 7, 500), None, "an idle count does nothing");
    }

    #[test]
    fn a_step_is_bounded() {
        let far = counted(0, 250, 0);
        let steps: Vec<_> = std::iter::successors(step(far, 250, 60), |(_, _, next)| step(*next, 250, 60))
            .map(|(after, up_to, _)| (after, up_to))
            .collect();
        assert_eq!(steps, [(0, 100), (100, 200), (200, 250)]);
        assert!(far.step(Count::Activity.settles_after(), 250, at(60), 100).is_some_and(|step| step.has_more()));
        assert!(
            !counted(200, 250, 0)
                .step(Count::Activity.settles_after(), 250, at(60), 100)
                .is_some_and(|step| step.has_more())
        );
    }

    #[test]
    fn a_clock_that_goes_back_makes_it_wait_anew() {
        assert_eq!(step(counted(5, 9, 100), 12, 40), Some((5, 5, counted(5, 12, 40))));
    }

    #[test]
    fn numbers_that_are_used_again_are_counted() {
        assert_eq!(step(counted(9, 9, 40), 3, 100), Some((3, 3, counted(3, 3, 100))));
    }

    #[test]
    fn instants_fall_into_their_five_minutes_and_days() {
        assert_eq!(begin_of(at(899), BUCKET), at(600));
        assert_eq!(begin_of(at(-1), DAY), at(-86_400));
    }
}
