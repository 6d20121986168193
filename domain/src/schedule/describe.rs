//! Schedules in English words.
//!
//! The words come from the compiled schedule and not from the user's text, so that they always agree with the due times.
//! Common schedules have short sentences; all others are described field by field.

use super::cron::Cron;
use super::cron::daytime::Daytime;
use super::interval::Interval;
use super::syntax::days::{Days, EVERY_DAY, EVERY_WEEKDAY};
use super::syntax::term::Term;

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
        let name = |month: usize| MONTHS[month - 1].to_owned();
        sentence += &match stepped(cron.calendar.months) {
            Some(stepped) => format!(" in {}", stepped.words("month", &name)),
            None => format!(" in {}", list(cron.calendar.months, &name, "and")),
        };
    }
    format!("{sentence}, {}", cron.zone.name())
}

/// The words for `@every`.
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
    /// Whether the words are clock times. Then "every day" may follow.
    at_clock_times: bool,
}

/// The most clock times that are listed. More of them are described field by field.
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
        // After "every", the words "of every minute" and "of every hour" add nothing, so they are left out.
        let of = if words.is_empty() { "" } else { " of " };
        match pattern(mask, count) {
            Pattern::All if every => continue,
            Pattern::All if of.is_empty() => words += &format!("Every {name}"),
            Pattern::Even(step) if of.is_empty() => words += &format!("Every {step} {name}s"),
            Pattern::All => words += &format!("{of}every {name}"),
            Pattern::Even(step) => words += &format!("{of}every {} {name}", ordinal(step)),
            Pattern::One(n) => words += &format!("{}{name} {n}", if of.is_empty() { "At " } else { of }),
            Pattern::Some => {
                let number = |n: usize| n.to_string();
                words += &match (stepped(mask), of) {
                    (Some(stepped), "") => format!("E{}", &stepped.words(name, &number)[1..]),
                    (Some(stepped), of) => format!("{of}{}", stepped.words(name, &number)),
                    (None, "") => format!("At {name}s {}", list(mask, &number, "and")),
                    (None, of) => format!("{of}{name}s {}", list(mask, &number, "and")),
                };
            }
        }
        every = matches!(pattern(mask, count), Pattern::All | Pattern::Even(_));
    }
    Times { words, at_clock_times: false }
}

enum Pattern {
    All,
    /// 0 and every n-th value up to the end, with the same distance to the next 0.
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

/// `2nd`, `3rd`, `4th`, `21st`...
fn ordinal(n: u32) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

/// The words for the days; `None` if every day matches.
fn days_in_words(days: &Days) -> Option<String> {
    let (any_dom, any_dow) = (days.dom == EVERY_DAY, days.dow == EVERY_WEEKDAY);
    match (any_dom, any_dow, days.both) {
        (true, true, _) | (true, false, false) | (false, true, false) => None,
        (true, false, true) => Some(format!("on {}", weekdays(days, &WeekdayStyle::PLAIN))),
        (false, true, true) => Some(format!("on {}", days_of_month(days))),
        (false, false, true) => {
            let several = (days.dom.count_ones() > 1 && stepped(days.dom).is_none())
                || days.dom_special.len() + usize::from(days.dom != 0) > 1;
            let falling = if several { "where they fall on" } else { "if it falls on" };
            Some(format!("on {} {falling} {}", days_of_month(days), weekdays(days, &WeekdayStyle::ONE)))
        }
        (false, false, false) => {
            Some(format!("on {} and on {}", days_of_month(days), weekdays(days, &WeekdayStyle::EVERY)))
        }
    }
}

fn days_of_month(days: &Days) -> String {
    let mut parts = Vec::new();
    let number = |n: usize| n.to_string();
    match (stepped(days.dom), days.dom.count_ones()) {
        (_, 0) => {}
        (Some(stepped), _) => parts.push(format!("{} of the month", stepped.words("day", &number))),
        (None, 1) => parts.push(format!("day {} of the month", list(days.dom, &number, "and"))),
        (None, _) => parts.push(format!("days {} of the month", list(days.dom, &number, "and"))),
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

/// The words around days of the week in a sentence.
struct WeekdayStyle {
    before: &'static str,
    working: &'static str,
    weekend: &'static str,
    conjunction: &'static str,
}

impl WeekdayStyle {
    /// `on Monday and Friday`
    const PLAIN: Self = Self { before: "", working: "weekdays", weekend: "weekends", conjunction: "and" };
    /// `if it falls on a Monday or Friday`
    const ONE: Self = Self { before: "a ", working: "weekday", weekend: "weekend", conjunction: "or" };
    /// `and on every Monday and Friday`
    const EVERY: Self = Self { before: "every ", working: "weekday", weekend: "weekend", conjunction: "and" };
}

fn weekdays(days: &Days, style: &WeekdayStyle) -> String {
    // Monday first, so that Saturday and Sunday are neighbours.
    let from_monday = days.dow >> 1 | (days.dow & 1) << 6;
    let name = |n: usize| WEEKDAYS[(n + 1) % 7].to_owned();
    let mut parts = Vec::new();
    match from_monday {
        0 => {}
        0b001_1111 => parts.push(format!("{}{}", style.before, style.working)),
        0b110_0000 => parts.push(format!("{}{}", style.before, style.weekend)),
        some => parts.push(format!("{}{}", style.before, list(some, &name, style.conjunction))),
    }
    parts.extend(days.dow_special.iter().map(|item| match *item {
        Term::Nth { weekday, nth } => {
            let nth = ["first", "second", "third", "fourth", "fifth"][usize::from(nth - 1)];
            format!("the {nth} {} of the month", WEEKDAYS[usize::from(weekday)])
        }
        Term::LastOf { weekday } => format!("the last {} of the month", WEEKDAYS[usize::from(weekday)]),
        _ => String::new(),
    }));
    join(&parts, style.conjunction)
}

/// Five or more values at a constant distance of at least 2.
struct Stepped {
    first: usize,
    last: usize,
    step: u32,
}

impl Stepped {
    /// `every 7th minute from 0 to 56`
    fn words(&self, unit: &str, name: &dyn Fn(usize) -> String) -> String {
        format!("every {} {unit} from {} to {}", ordinal(self.step), name(self.first), name(self.last))
    }
}

fn stepped(mask: u64) -> Option<Stepped> {
    let last = mask.checked_ilog2()? as usize;
    let first = mask.trailing_zeros() as usize;
    let step = (mask >> first >> 1).trailing_zeros() + 1;
    let regular = (first..=last).step_by(step as usize).fold(0_u64, |mask, n| mask | 1 << n);
    (step > 1 && mask == regular && mask.count_ones() >= 5).then_some(Stepped { first, last, step })
}

/// The set bits; three or more in a row as `a to b`.
fn list(mask: u64, name: &dyn Fn(usize) -> String, conjunction: &str) -> String {
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
    join(&parts, conjunction)
}

/// `a`, `a and b`, `a, b and c`.
fn join(parts: &[String], conjunction: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordinal_number_has_the_right_suffix() {
        let words =
            ["1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "14th", "21st", "22nd", "23rd", "112th"];
        for word in words {
            let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            assert_eq!(ordinal(number.parse().unwrap()), word);
        }
    }
}
