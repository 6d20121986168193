//! Schedules: what a user writes, and the due times that follow from it (SPEC section 2).
//!
//! ```text
//! text --syntax--> fields --term--> terms --ask (saffron)--> masks: Calendar      wall-clock times
//!                                                                      |
//!                                                                  Cron + Zone    instants, with the DST rule
//!                                                                      |
//!                                           Interval (@every), @at -- Schedule
//!                                                                      |
//!                                                  Timeline: + anchor, start, end, jitter of one job
//! ```
//!
//! Parsing asks saffron about every value once and keeps bit masks; from then on the next, the previous and the number of
//! due times are bit arithmetic on the wall clock and an addition per span of constant offset. Nothing is remembered
//! between calls: the same question always has the same answer, on every node.
//!
//! Due times are whole seconds (whole milliseconds for `@every`, `@at` and jitter) of the years 1970 to 9999.

mod ask;
mod calendar;
mod cron;
mod days;
mod daytime;
mod describe;
mod error;
mod field;
mod hash;
mod interval;
mod month;
mod syntax;
mod term;
mod timeline;
mod zone;

use std::sync::Arc;

pub use error::{MAX_LENGTH, Problem, ScheduleError};
pub use field::Field;
pub use hash::{jitter_offset, stable_hash};
pub use timeline::Timeline;

use self::cron::Cron;
use self::interval::Interval;
use self::zone::Zone;
use crate::time::Timestamp;

/// What becomes of wall-clock times that a change of the clock swallows or repeats.
///
/// Asked only of schedules at fixed times; one whose minute or hour begins with `*` follows real time (Debian cron).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Dst {
    /// Times that do not exist on that day.
    pub gap: Gap,
    /// Times that occur twice on that day.
    pub overlap: Overlap,
}

/// What becomes of due times that a gap swallowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Gap {
    /// They fire once, together, at the first instant after the gap.
    #[default]
    After,
    /// They do not fire.
    Skip,
}

/// At which of two equal wall-clock times a schedule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Overlap {
    /// Only at the first.
    #[default]
    First,
    /// At both.
    Both,
}

/// What belongs to a schedule beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options<'a> {
    /// A name of the IANA time zone database. `None`: the schedule's `CRON_TZ=` prefix, or else UTC.
    pub timezone: Option<&'a str>,
    /// The daylight saving rule.
    pub dst: Dst,
    /// What `H` hashes: `namespace/name` of the job.
    pub hash_key: &'a str,
}

/// A schedule, parsed and ready to be asked for due times. Cheap to clone.
///
/// Equal schedules have the same due times, however they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    kind: Kind,
    zone: &'static Zone,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Cron(Arc<Cron>),
    Every(Interval),
    At(Timestamp),
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// A sentence for the user: see [`ScheduleError`]. A schedule without any due time is refused too, except that `@at`
    /// may lie in the past.
    pub fn parse(text: &str, options: &Options<'_>) -> Result<Self, ScheduleError> {
        syntax::parse(text, options)
    }

    /// The name of its zone in the IANA database; `UTC` when none was given.
    pub fn timezone(&self) -> &'static str {
        self.zone.name()
    }

    /// The schedule in English words, ending with its zone where that matters.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Cron(cron) => describe::cron(cron),
            Kind::Every(interval) => describe::every(*interval),
            Kind::At(at) => format!("Once, at {}", at.to_rfc3339_short()),
        }
    }

    /// The first due time strictly later than `t`; `None` when there is none.
    ///
    /// `@every` counts from `t` here; for the due times of a job, which count from its anchor, ask a [`Timeline`].
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        self.next(t, t)
    }

    /// As [`Timeline::next_after`], without the bounds and jitter of a job.
    fn next(&self, anchor: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let (anchor, t) = (clamped(anchor), clamped(t));
        match &self.kind {
            Kind::Cron(cron) => cron.first_from(second_of(t) + 1).map(Timestamp::from_secs),
            Kind::Every(interval) => Some(Timestamp::from_ms(interval.next_after(anchor.as_ms(), t.as_ms()))),
            Kind::At(at) => Some(*at).filter(|&at| at > t),
        }
        .filter(|&due| due <= Timestamp::MAX)
    }

    /// As [`Timeline::last_until`], without the bounds and jitter of a job.
    fn last(&self, anchor: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let (anchor, t) = (clamped(anchor), clamped(t));
        match &self.kind {
            Kind::Cron(cron) => cron.last_until(second_of(t)).map(Timestamp::from_secs),
            Kind::Every(interval) => interval.last_until(anchor.as_ms(), t.as_ms()).map(Timestamp::from_ms),
            Kind::At(at) => Some(*at).filter(|&at| at <= t),
        }
    }

    /// As [`Timeline::count`], without the bounds and jitter of a job.
    fn count(&self, anchor: Timestamp, after: Timestamp, until: Timestamp) -> u64 {
        let (anchor, after, until) = (clamped(anchor), clamped(after), clamped(until));
        match &self.kind {
            Kind::Cron(cron) => cron.count_in(second_of(after) + 1, second_of(until) + 1),
            Kind::Every(interval) => interval.count(anchor.as_ms(), after.as_ms(), until.as_ms()),
            Kind::At(at) => u64::from(after < *at && *at <= until),
        }
    }
}

/// Brings any instant near the years 1970 to 9999, where due times lie, so that sums of instants cannot overflow.
fn clamped(t: Timestamp) -> Timestamp {
    Timestamp::from_ms(t.as_ms().clamp(-1, Timestamp::MAX.as_ms()))
}

fn second_of(t: Timestamp) -> i64 {
    t.as_ms().div_euclid(1_000)
}
