//! Schedules: the text that a user writes, and the due times that follow from it.
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
//! Parsing asks saffron about every value once and keeps the answers as bit masks. After that, every query needs only
//! bit arithmetic on the wall clock, and one addition for each span of constant offset. No state is kept between calls,
//! so that every node gets the same answer to the same question.
//!
//! Due times are whole seconds (whole milliseconds for `@every`, `@at` and jitter) of the years 1970 to 9999.

mod cron;
mod describe;
mod error;
mod hash;
mod interval;
mod syntax;
mod timeline;
mod zone;

use std::sync::Arc;

pub use error::{MAX_LENGTH, Problem, ScheduleError};
pub use hash::{jitter_offset, stable_hash};
pub use syntax::field::Field;
pub use timeline::Timeline;

use self::cron::Cron;
use self::interval::Interval;
use self::zone::Zone;
use crate::time::Timestamp;

/// The rule for wall-clock times that a clock change skips or repeats.
///
/// It applies only to schedules at fixed times. A schedule whose minute or hour begins with `*` follows real time, as in
/// Debian cron.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Dst {
    /// Times that do not exist on that day.
    pub gap: Gap,
    /// Times that occur twice on that day.
    pub overlap: Overlap,
}

/// The rule for due times inside a gap, which the wall clock skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Gap {
    /// They fire once, together, at the first instant after the gap.
    #[default]
    After,
    /// They do not fire.
    Skip,
}

/// The rule for wall-clock times that occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Overlap {
    /// The schedule is due only at the first.
    #[default]
    First,
    /// The schedule is due at both.
    Both,
}

/// The settings that a schedule needs in addition to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options<'a> {
    /// A name of the IANA time zone database. `None` means the zone of the `CRON_TZ=` prefix, or UTC without one.
    pub timezone: Option<&'a str>,
    /// The daylight saving rule.
    pub dst: Dst,
    /// The text that `H` hashes: `namespace/name` of the job.
    pub hash_key: &'a str,
}

/// A parsed schedule, which computes due times. Cheap to clone.
///
/// Equal schedules have the same due times, even if their texts differ.
///
/// ```
/// use carillon_domain::schedule::{Options, Schedule};
/// use carillon_domain::time::Timestamp;
///
/// let options = Options { timezone: Some("Europe/Berlin"), ..Options::default() };
/// let nightly = Schedule::parse("0 3 * * *", &options).unwrap();
/// assert_eq!(nightly.describe(), "At 03:00 every day, Europe/Berlin");
///
/// // Berlin is one hour ahead of UTC in winter.
/// let new_year = Timestamp::parse_rfc3339("2027-01-01T00:00:00Z").unwrap();
/// assert_eq!(nightly.next_after(new_year).unwrap().to_rfc3339_short(), "2027-01-01T02:00:00Z");
///
/// // Errors name the field, the text at fault, and the values that are allowed there.
/// let error = Schedule::parse("61 3 * * *", &options).unwrap_err();
/// assert_eq!(error.field(), "minute");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    kind: ScheduleKind,
    zone: &'static Zone,
}

#[derive(Debug, Clone, PartialEq)]
enum ScheduleKind {
    Cron(Arc<Cron>),
    Every(Interval),
    At(Timestamp),
}

impl Schedule {
    /// Parses a schedule.
    ///
    /// # Errors
    /// [`ScheduleError`], a sentence for the user. A schedule that can never fire is refused too; only `@at` may be in the
    /// past.
    pub fn parse(text: &str, options: &Options<'_>) -> Result<Self, ScheduleError> {
        syntax::parse(text, options)
    }

    /// The name of its zone in the IANA database; `UTC` if none was given.
    pub fn timezone(&self) -> &'static str {
        self.zone.name()
    }

    /// The schedule in English words. A cron schedule ends with its zone.
    pub fn describe(&self) -> String {
        match &self.kind {
            ScheduleKind::Cron(cron) => describe::cron(cron),
            ScheduleKind::Every(interval) => describe::every(*interval),
            ScheduleKind::At(at) => format!("Once, at {}", at.to_rfc3339_short()),
        }
    }

    /// The first due time strictly later than `t`; `None` if there is none.
    ///
    /// `@every` counts from `t` here. The due times of a job count from its anchor: use a [`Timeline`] for them.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        self.next(t, t)
    }

    /// As [`Timeline::next_after`], without the bounds and jitter of a job.
    fn next(&self, anchor: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let (anchor, t) = (clamped(anchor), clamped(t));
        match &self.kind {
            ScheduleKind::Cron(cron) => cron.first_from(second_of(t) + 1).map(Timestamp::from_secs),
            ScheduleKind::Every(interval) => Some(Timestamp::from_ms(interval.next_after(anchor.as_ms(), t.as_ms()))),
            ScheduleKind::At(at) => Some(*at).filter(|&at| at > t),
        }
        .filter(|&due| due <= Timestamp::MAX)
    }

    /// As [`Timeline::last_until`], without the bounds and jitter of a job.
    fn last(&self, anchor: Timestamp, t: Timestamp) -> Option<Timestamp> {
        let (anchor, t) = (clamped(anchor), clamped(t));
        match &self.kind {
            ScheduleKind::Cron(cron) => cron.last_until(second_of(t)).map(Timestamp::from_secs),
            ScheduleKind::Every(interval) => interval.last_until(anchor.as_ms(), t.as_ms()).map(Timestamp::from_ms),
            ScheduleKind::At(at) => Some(*at).filter(|&at| at <= t),
        }
    }

    /// As [`Timeline::count`], without the bounds and jitter of a job.
    fn count(&self, anchor: Timestamp, after: Timestamp, until: Timestamp) -> u64 {
        let (anchor, after, until) = (clamped(anchor), clamped(after), clamped(until));
        match &self.kind {
            ScheduleKind::Cron(cron) => cron.count_in(second_of(after) + 1, second_of(until) + 1),
            ScheduleKind::Every(interval) => interval.count(anchor.as_ms(), after.as_ms(), until.as_ms()),
            ScheduleKind::At(at) => u64::from(after < *at && *at <= until),
        }
    }
}

/// Moves any instant to the range of due times, the years 1970 to 9999, so that sums of instants cannot overflow.
fn clamped(t: Timestamp) -> Timestamp {
    Timestamp::from_ms(t.as_ms().clamp(-1, Timestamp::MAX.as_ms()))
}

fn second_of(t: Timestamp) -> i64 {
    t.as_ms().div_euclid(1_000)
}
