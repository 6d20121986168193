//! A time of day in a zone.

use std::fmt;
use std::str::FromStr;

use chrono::{Days, LocalResult, NaiveDateTime, NaiveTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::name::quoted;
use crate::time::Timestamp;

/// A time of day as clocks of a zone show it, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(NaiveTime);

/// The text is not a time of day; a sentence for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a time of day: write it like 06:00, 23:30 or 06:00:30")]
pub struct BadTimeOfDay(String);

impl TimeOfDay {
    /// The time of day; `None` unless it is between 00:00:00 and 23:59:59.
    pub fn new(hour: u32, minute: u32, second: u32) -> Option<Self> {
        NaiveTime::from_hms_opt(hour, minute, second).map(Self)
    }

    /// The first instant later than `after` at which clocks of `zone` show this time. Where they show it twice, the later one counts;
    /// where they skip it, the first instant after the gap. A zone that does not exist counts as UTC.
    pub fn first_after(self, zone: &str, after: Timestamp) -> Timestamp {
        let zone: Tz = zone.parse().unwrap_or(Tz::UTC);
        let today = wall(zone, after).date();
        // Yesterday's may come later than its date: after a gap over midnight.
        let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        let days = (0..4).filter_map(|n| first.checked_add_days(Days::new(n)));
        let mut instants = days.map(|date| instant(zone, date.and_time(self.0)));
        instants.find(|at| *at > after).unwrap_or(Timestamp::MAX)
    }
}

/// The instant of a wall time: the later of two, or the first one after a gap.
fn instant(zone: Tz, wall_time: NaiveDateTime) -> Timestamp {
    match zone.from_local_datetime(&wall_time) {
        LocalResult::Single(at) => Timestamp::from_ms(at.timestamp_millis()),
        LocalResult::Ambiguous(one, other) => Timestamp::from_ms(one.timestamp_millis().max(other.timestamp_millis())),
        LocalResult::None => after_gap(zone, wall_time),
    }
}

/// The first instant at which clocks show a later time than one that they skip. The bisection ends at a whole second, as all clock
/// changes do.
fn after_gap(zone: Tz, skipped: NaiveDateTime) -> Timestamp {
    const REACH: i64 = 50 * 3_600;
    let middle = skipped.and_utc().timestamp();
    let (mut before, mut after) = (middle - REACH, middle + REACH);
    while after - before > 1 {
        let probe = before + (after - before) / 2;
        let reached = wall(zone, Timestamp::from_secs(probe)) >= skipped;
        *(if reached { &mut after } else { &mut before }) = probe;
    }
    Timestamp::from_secs(after)
}

fn wall(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let utc = at.naive();
    zone.offset_from_utc_datetime(&utc).fix().from_utc_datetime(&utc).naive_local()
}

impl FromStr for TimeOfDay {
    type Err = BadTimeOfDay;

    fn from_str(text: &str) -> Result<Self, BadTimeOfDay> {
        let bad = || BadTimeOfDay(quoted(text));
        let two = |part: &str| {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten().ok_or_else(bad)
        };
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            [hour, minute] => Self::new(two(hour)?, two(minute)?, 0),
            [hour, minute, second] => Self::new(two(hour)?, two(minute)?, two(second)?),
            _ => None,
        }
        .ok_or_else(bad)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole_minute = self.0.signed_duration_since(NaiveTime::MIN).num_seconds() % 60 == 0;
        write!(f, "{}", self.0.format(if whole_minute { "%H:%M" } else { "%H:%M:%S" }))
    }
}
