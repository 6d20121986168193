//! Schedules in English words.
//!
//! The words are made from what was compiled, not from what was written, so they cannot say anything else than the due
//! times do. Common shapes have short sentences; any other is described field by field.

use super::cron::Cron;
use super::days::{Days, EVERY_DAY, EVERY_WEEKDAY};
use super::daytime::Daytime;
use super::interval::Interval;
use super::term::Term;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const EVERY_MONTH: u64 = 0x1ffe;

/// A cron schedule: times, days, months, zone.
pub(super) fn cron(cron: &Cron) -> String {
    let times = times(&cron.calendar.times);
    let mut sentence = times.words;
    match days_in_words(&cron.days) {
        Some(words) => sentence += &format!(" {words}"),
        None if times.at_clock_times => sentence += " every day",
        None => {}
    }
    if cron.calendar.months != EVERY_MONTH {
        sentence += &format!(" in {}", list(cron.calendar.months, &|month| MONTHS[month - 1].to_owned()));
    }
    format!("{sentence}, {}", cron.zone.name())
}

/// `@every`.
pub(super) fn every(interval: Interval) -> String {
    let ms = interval.duration().as_millis();
    let units =
        [("day", 86_400_000, u128::MAX), ("hour", 3_600_000, 24), ("minute", 60_000, 60), ("second", 1_000, 60)];
    let mut parts: Vec<String> = units
        .iter()
        .map(|(unit, unit_ms, wrap)| (unit, ms / unit_ms % wrap))
        .filter(|(_, n)| *n > 0)
        .map(|(unit, n)| format!("{n} {unit}{}", if n == 1 { "" } else { "s" }))
        .collect();
    if !ms.is_multiple_of(1_000) {
        parts.push(format!("{} ms", ms % 1_000));
    }
    let only = parts.join(" ");
    format!("Every {}", only.strip_prefix("1 ").filter(|_| parts.len() == 1).unwrap_or(&only))
}

struct Times {
    words: String,
    /// Whether the words are clock times, after which "every day" reads well.
    at_clock_times: bool,
}

/// More clock times than this are described field by field.
const MOST_CLOCK_TIMES: u64 = 6;

fn times(times: &Daytime) -> Times {
    let Daytime { seconds, minutes, hours } = *times;
    let once_a_minute = seconds == 1;
    if times.per_day() <= MOST_CLOCK_TIMES {
        let clock = std::iter::successors(Some(times.first()), |t| times.first_from(t + 1));
        let clock = clock.map(|t| match (t / 3_600, t / 60 % 60, t % 60) {
            (h, m, _) if once_a_minute => format!("{h:02}:{m:02}"),
            (h, m, s) => format!("{h:02}:{m:02}:{s:02}"),
        });
        return Times { words: format!("At {}", join(&clock.collect::<Vec<_>>(), "and")), at_clock_times: true };
    }
    let units = [("second", seconds, 60), ("minute", minutes, 60), ("hour", hours, 24)];
    let mut words = String::new();
    let mut every = false;
    for (name, mask, count) in units.into_iter().skip(usize::from(once_a_minute)) {
        // "of every minute" and "of every hour" say nothing after "every": they are left out.
        let of = if words.is_empty() { "" } else { " of " };
        match pattern(mask, count) {
            Pattern::All if every => continue,
            Pattern::All if of.is_empty() => words += &format!("Every {name}"),
            Pattern::Even(step) if of.is_empty() => words += &format!("Every {step} {name}s"),
            Pattern::All => words += &format!("{of}every {name}"),
            Pattern::Even(step) => words += &format!("{of}every {} {name}", ordinal(step)),
            Pattern::One(n) => words += &format!("{}{name} {n}", if of.is_empty() { "At " } else { of }),
            Pattern::Some => {
                let at = if of.is_empty() { "At " } else { of };
                words += &format!("{at}{name}s {}", list(mask, &|n| n.to_string()));
            }
        }
        every = matches!(pattern(mask, count), Pattern::All | Pattern::Even(_));
    }
    Times { words, at_clock_times: false }
}

enum Pattern {
    All,
    /// 0 and every so many up to the end, with the same distance to the next 0.
    Even(u32),
    One(u32),
    Some,
}

fn pattern(mask: u64, count: u32) -> Pattern {
    let every = |step: u32| (0..count).step_by(step as usize).fold(0_u64, |mask, n| mask | 1 << n);
    match (1..=count / 2).filter(|step| count.is_multiple_of(*step)).find(|step| mask == every(*step)) {
        Some(1) => Pattern::All,
        Some(step) => Pattern::Even(step),
        None if mask.is_power_of_two() => Pattern::One(mask.trailing_zeros()),
        None => Pattern::Some,
    }
}

/// For the divisors of 60 and 24.
fn ordinal(n: u32) -> String {
    match n {
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        n => format!("{n}th"),
    }
}

/// `None` when every day matches.
fn days_in_words(days: &Days) -> Option<String> {
    let (any_dom, any_dow) = (days.dom == EVERY_DAY, days.dow == EVERY_WEEKDAY);
    match (any_dom, any_dow, days.both) {
        (true, true, _) | (true, false, false) | (false, true, false) => None,
        (true, false, true) => Some(format!("on {}", weekdays(days, "and"))),
        (false, true, true) => Some(format!("on {}", days_of_month(days))),
        (false, false, true) => Some(format!("on {} if it falls on {}", days_of_month(days), weekdays(days, "or"))),
        (false, false, false) => Some(format!("on {} and also on {}", days_of_month(days), weekdays(days, "and"))),
    }
}

fn days_of_month(days: &Days) -> String {
    let mut parts = Vec::new();
    if days.dom != 0 {
        let plural = if days.dom.is_power_of_two() { "" } else { "s" };
        parts.push(format!("day{plural} {} of the month", list(days.dom, &|n| n.to_string())));
    }
    parts.extend(days.dom_special.iter().map(|item| match *item {
        Term::LastDay { before: 0 } => "the last day of the month".to_owned(),
        Term::LastDay { before: 1 } => "the day before the last day of the month".to_owned(),
        Term::LastDay { before } => format!("the day {before} days before the last day of the month"),
        Term::LastWorkday => "the last Monday-to-Friday day of the month".to_owned(),
        Term::NearestWorkday { day } => format!("the Monday-to-Friday day nearest to day {day} of the month"),
        Term::Values { .. } | Term::Nth { .. } | Term::LastOf { .. } => String::new(),
    }));
    join(&parts, "and")
}

fn weekdays(days: &Days, conjunction: &str) -> String {
    let mut parts = Vec::new();
    match days.dow {
        0 => {}
        0b011_1110 => parts.push("weekdays".to_owned()),
        0b100_0001 => parts.push("weekends".to_owned()),
        some => parts.extend((0..7).filter(|n| some >> n & 1 != 0).map(|n| WEEKDAYS[n].to_owned())),
    }
    parts.extend(days.dow_special.iter().map(|item| match *item {
        Term::Nth { weekday, nth } => {
            let nth = ["first", "second", "third", "fourth", "fifth"][usize::from(nth - 1)];
            format!("the {nth} {} of the month", WEEKDAYS[usize::from(weekday)])
        }
        Term::LastOf { weekday } => format!("the last {} of the month", WEEKDAYS[usize::from(weekday)]),
        _ => String::new(),
    }));
    join(&parts, conjunction)
}

/// The set bits; three or more in a row as `a to b`, five or more at one distance as `a to b in steps of n`.
fn list(mask: u64, name: &dyn Fn(usize) -> String) -> String {
    let Some(last) = mask.checked_ilog2() else { return String::new() };
    let (first, last) = (mask.trailing_zeros() as usize, last as usize);
    let step = (mask >> first >> 1).trailing_zeros() as usize + 1;
    let stepped = (first..=last).step_by(step).fold(0_u64, |mask, n| mask | 1 << n);
    if step > 1 && mask == stepped && mask.count_ones() >= 5 {
        return format!("{} to {} in steps of {step}", name(first), name(last));
    }
    let mut parts = Vec::new();
    let mut n = 0;
    while n < 64 {
        let run = (mask >> n).trailing_ones() as usize;
        match run {
            0 => n += 1,
            1 | 2 => {
                parts.push(name(n));
                n += 1;
            }
            _ => {
                parts.push(format!("{} to {}", name(n), name(n + run - 1)));
                n += run;
            }
        }
    }
    join(&parts, "and")
}

/// `a`, `a and b`, `a, b and c`.
fn join(parts: &[String], conjunction: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}
