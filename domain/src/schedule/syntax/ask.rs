//! Asks saffron which values and days a field matches.
//!
//! saffron parses and matches; this file only translates. Each field gets an expression of its own, with `*` in the
//! others. So a refusal names its field, and saffron's own OR rule between the two day fields never applies. The
//! answers are kept as bit masks, because a question for every due time would be slow.
//!
//! The translation works around these properties of saffron 0.1.0:
//! - It has no seconds. They are asked for as minutes, which have the same range.
//! - Its weekdays are 1-7 from Sunday. Ranges over the end of the week are wrong by a day (`6-1` includes Thursday), so
//!   weekdays are always listed one by one.
//! - It knows `*` only as a whole field, and steps only up to the size of the field.
//! - It accepts `L`, `LW`, `15W`, `2#1` and `5L` only alone, so each such item is an expression of its own.
//! - It matches `31W` on Friday the 30th of a month of 30 days, so months without the day are left out here.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use saffron::Cron;

use super::field::Field;
use super::term::Term;
use crate::schedule::cron::month::{DAY, DaysByShape, Month, SHAPES, shape};

/// The day number of the first day of one month of each shape. Questions to saffron use these months.
static SAMPLES: LazyLock<[i64; SHAPES]> = LazyLock::new(|| {
    // 28 years contain every shape, because the calendar repeats after them within a century.
    let mut samples = [0; SHAPES];
    let mut month = Month::containing(10_957); // 2000-01-01
    for _ in 0..28 * 12 {
        samples[month.shape()] = month.start;
        month = month.next();
    }
    samples
});

/// The values of `items` as a bit mask; only [`Term::Values`] count. Weekdays are bits 0-6 from Sunday.
///
/// `None` if saffron refuses the translation or matches no value, which would be a bug in this file.
pub(in crate::schedule) fn values(field: Field, items: &[Term]) -> Option<u64> {
    let text = list(field, items);
    if text.is_empty() {
        return Some(0);
    }
    // 2000-01-01 was a Saturday; 2000-01-02, day 10,958, a Sunday.
    let (expression, samples, first, unit) = match field {
        Field::Seconds | Field::Minute => (format!("{text} * * * *"), 60, 0, 60),
        Field::Hour => (format!("* {text} * * *"), 24, 0, 3_600),
        Field::DayOfMonth => (format!("* * {text} * *"), 31, 10_957 * DAY, DAY),
        // From 15 January on, steps of 30.5 days stay in the middle of each month.
        Field::Month => (format!("* * * {text} *"), 12, 10_971 * DAY, 61 * DAY / 2),
        Field::DayOfWeek => (format!("* * * * {text}"), 7, 10_958 * DAY, DAY),
    };
    let cron = expression.parse::<Cron>().ok()?;
    let matching = (0..samples).filter(|n| contains(&cron, first + n * unit)).fold(0_u64, |mask, n| mask | 1 << n);
    let from_one = matches!(field, Field::DayOfMonth | Field::Month);
    (matching != 0).then_some(if from_one { matching << 1 } else { matching })
}

/// Adds the days of a special item of a day field to `days`. `None` as for [`values`].
pub(in crate::schedule) fn add_special(item: Term, days: &mut DaysByShape) -> Option<()> {
    let expression = match item {
        Term::Values { .. } => return Some(()),
        Term::LastDay { before: 0 } => "* * L * *".to_owned(),
        Term::LastDay { before } => format!("* * L-{before} * *"),
        Term::LastWorkday => "* * LW * *".to_owned(),
        Term::NearestWorkday { day } => format!("* * {day}W * *"),
        Term::Nth { weekday, nth } => format!("* * * * {}#{nth}", weekday + 1),
        Term::LastOf { weekday } => format!("* * * * {}L", weekday + 1),
    };
    let cron = expression.parse::<Cron>().ok()?;
    for length in 28..=31 {
        for shape in (0..7).map(|first_weekday| shape(length, first_weekday)) {
            for day in candidates(item, length) {
                if contains(&cron, (SAMPLES[shape] + i64::from(day) - 1) * DAY) {
                    days[shape] |= 1 << (day - 1);
                }
            }
        }
    }
    Some(())
}

/// The days that a special item can match in a month of this length. Parsing stays fast, because saffron is asked about
/// these few days and not about the whole month.
fn candidates(item: Term, length: u8) -> RangeInclusive<u8> {
    let (first, last) = match item {
        Term::LastDay { before } if before < length => (length - before, length - before),
        Term::NearestWorkday { day } if day <= length => (day.saturating_sub(2), day + 2),
        Term::Nth { nth, .. } => (nth * 7 - 6, nth * 7),
        Term::LastOf { .. } => (length - 6, length),
        Term::LastWorkday => (length - 2, length),
        Term::LastDay { .. } | Term::NearestWorkday { .. } | Term::Values { .. } => (1, 0),
    };
    first.max(1)..=last.min(length)
}

/// The plain items in saffron's syntax.
fn list(field: Field, items: &[Term]) -> String {
    let mut text = String::new();
    for item in items {
        let Term::Values { first, last, step } = *item else { continue };
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = if field == Field::DayOfWeek {
            let days = (first..=last).step_by(usize::from(step)).map(|day| (day % 7 + 1).to_string());
            write!(text, "{comma}{}", days.collect::<Vec<_>>().join(","))
        } else if first == last || step > last - first {
            write!(text, "{comma}{first}")
        } else if step == 1 {
            write!(text, "{comma}{first}-{last}")
        } else {
            write!(text, "{comma}{first}-{last}/{step}")
        };
    }
    text
}

fn contains(cron: &Cron, utc_secs: i64) -> bool {
    DateTime::<Utc>::from_timestamp(utc_secs, 0).is_some_and(|at| cron.contains(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(expression: &str, date: &str) -> bool {
        let midnight = crate::time::Timestamp::parse_rfc3339(&format!("{date}T00:00:00Z")).unwrap();
        contains(&expression.parse().unwrap(), midnight.as_ms() / 1_000)
    }

    /// If one of these fails, saffron has changed, and the translation may become simpler.
    #[test]
    fn saffron_is_as_described() {
        assert!(on("* * * * 6-1", "2026-01-01"), "a range over the end of the week includes the Thursday before it");
        assert!(on("* * 31W * *", "2027-04-30"), "a month of 30 days has a workday near its 31st");
        for refused in ["* * ? * *", "*,5 * * * *", "* * 15,L * *", "* * * * 2#1,3#2", "*/60 * * * *", "* * * * 0"] {
            assert!(refused.parse::<Cron>().is_err(), "{refused}");
        }
    }

    #[test]
    fn there_is_a_sample_of_every_shape() {
        assert!((0..SHAPES).all(|shape| Month::containing(SAMPLES[shape]).shape() == shape));
    }
}
