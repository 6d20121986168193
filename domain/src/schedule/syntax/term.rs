//! The items of a field: turns the user's text into plain terms.
//!
//! Terms have no names, no `?`, no `H`, and one number for Sunday. Only the few forms remain that saffron can answer.
//!
//! Decisions of our own, where other schedulers differ:
//! - `a/n` is `a-max/n`, as in robfig/cron, Quartz and saffron (Debian cron has no such form). `a-a/n` is just `a`.
//! - A step larger than the range keeps only the start, as in Debian cron (`*/90` in the minute field is 0).
//! - `H/n` is `*/n` with a hashed phase and counts as beginning with `*`; `H`, `H(a-b)` and `H(a-b)/n` are fixed values.
//! - A name may end a range: `FRI-SUN` is 5-7. Case does not matter, neither in names nor in `L`, `W`, `H`.

use super::field::Field;
use crate::schedule::error::{Problem, ScheduleError};
use crate::schedule::hash::stable_hash;

/// One item of a field's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schedule) enum Term {
    /// `first`, `first + step`, ... up to `last`. A single number has `first == last`. Weekdays count 0-7 here.
    Values { first: u8, last: u8, step: u8 },
    /// `L` (0 before) and `L-3` (3 before): the number of days before the last day of the month.
    LastDay { before: u8 },
    /// `LW`: the last Monday to Friday of the month.
    LastWorkday,
    /// `15W`: the Monday to Friday nearest to that day, inside the month. A month without that day has none.
    NearestWorkday { day: u8 },
    /// `FRI#3`: the n-th such weekday (0 = Sunday) of the month.
    Nth { weekday: u8, nth: u8 },
    /// `5L`: the last such weekday (0 = Sunday) of the month.
    LastOf { weekday: u8 },
}

/// A field as terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schedule) struct Terms {
    /// Whether it begins with `*`, `?` or `H/n`. Debian cron's AND rule and its DST rule depend on this.
    pub star: bool,
    /// Its items, at least one.
    pub items: Vec<Term>,
}

impl Terms {
    /// The single value 0, which stands for a missing field.
    pub fn zero() -> Self {
        Self { star: false, items: vec![Term::Values { first: 0, last: 0, step: 1 }] }
    }

    /// Reads a field. `H` hashes `key`.
    pub fn parse(field: Field, text: &str, key: &str) -> Result<Self, ScheduleError> {
        if text.split(',').any(str::is_empty) {
            return Err(ScheduleError::in_field(field, text, Problem::EmptyItem));
        }
        let reader = Reader { field, key };
        let items = text
            .split(',')
            .map(|item| {
                let upper = item.to_ascii_uppercase();
                reader.item(&upper).map_err(|problem| ScheduleError::in_field(field, item, problem))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let star = text.starts_with(['*', '?']) || text.starts_with("H/") || text.starts_with("h/");
        Ok(Self { star, items })
    }
}

struct Reader<'a> {
    field: Field,
    key: &'a str,
}

impl Reader<'_> {
    fn item(&self, item: &str) -> Result<Term, Problem> {
        if let Some(special) = self.special(item) {
            return special;
        }
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(self.step(step)?)),
            None => (item, None),
        };
        let (min, max) = (self.field.min(), self.field.max());
        if base == "*" || base == "?" {
            return Ok(Term::Values { first: min, last: max, step: step.unwrap_or(1) });
        }
        if let Some(range) = base.strip_prefix('H') {
            return self.hashed(range, step);
        }
        if base.contains('-') {
            let (first, last) = self.range(base)?;
            return Ok(Term::Values { first, last, step: step.unwrap_or(1) });
        }
        let first = self.value(base)?;
        Ok(match step {
            Some(step) => Term::Values { first, last: max, step },
            None => Term::Values { first, last: first, step: 1 },
        })
    }

    /// The forms that only the day fields have; `None` if the item is none of them.
    fn special(&self, item: &str) -> Option<Result<Term, Problem>> {
        match self.field {
            Field::DayOfMonth => match item {
                "L" => Some(Ok(Term::LastDay { before: 0 })),
                "LW" => Some(Ok(Term::LastWorkday)),
                _ => {
                    if let Some(before) = item.strip_prefix("L-") {
                        Some(number(before, 1, 30).map(|before| Term::LastDay { before }))
                    } else {
                        let day = item.strip_suffix('W')?;
                        Some(number(day, 1, 31).map(|day| Term::NearestWorkday { day }))
                    }
                }
            },
            Field::DayOfWeek => {
                if let Some((weekday, nth)) = item.split_once('#') {
                    let nth = number(nth, 1, 5);
                    return Some(self.value(weekday).and_then(|day| Ok(Term::Nth { weekday: day % 7, nth: nth? })));
                }
                let weekday = item.strip_suffix('L')?;
                Some(self.value(weekday).map(|day| Term::LastOf { weekday: day % 7 }))
            }
            Field::Seconds | Field::Minute | Field::Hour | Field::Month => None,
        }
    }

    /// `H` or `H(a-b)`, with or without a step. `rest` is the text after the letter.
    fn hashed(&self, rest: &str, step: Option<u8>) -> Result<Term, Problem> {
        let hash = stable_hash(self.key, self.field.name());
        let pick = |first: u8, choices: u8| first + u8::try_from(hash % u64::from(choices.max(1))).unwrap_or(0);
        let (first, last, spread) = if rest.is_empty() {
            let (min, most) = (self.field.min(), self.field.hash_max());
            let last = if self.field == Field::DayOfWeek { most } else { self.field.max() };
            (min, last, most - min + 1)
        } else {
            let range = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')).ok_or(Problem::NotUnderstood)?;
            let (first, last) = self.range(range)?;
            (first, last, last - first + 1)
        };
        Ok(match step {
            Some(step) => Term::Values { first: pick(first, step.min(spread)), last, step },
            None => {
                let value = pick(first, spread);
                Term::Values { first: value, last: value, step: 1 }
            }
        })
    }

    fn range(&self, text: &str) -> Result<(u8, u8), Problem> {
        let (first, last) = text.split_once('-').ok_or(Problem::NotUnderstood)?;
        let (first, last) = (self.value(first)?, (last, self.value(last)?));
        let last = match last {
            ("SUN", _) if self.field == Field::DayOfWeek && first > 0 => 7,
            (_, number) => number,
        };
        if first <= last { Ok((first, last)) } else { Err(Problem::Backwards) }
    }

    fn value(&self, text: &str) -> Result<u8, Problem> {
        match self.field.number_of(text) {
            Some(number) => Ok(number),
            None => number(text, self.field.min(), self.field.max()),
        }
    }

    /// All steps beyond a field's size match the start alone. They are cut to 60, so that they fit into a byte.
    fn step(&self, text: &str) -> Result<u8, Problem> {
        match number(text, 0, u8::MAX) {
            Ok(0) => Err(Problem::ZeroStep),
            Ok(step) => Ok(step.min(60)),
            Err(Problem::OutOfRange) => Ok(60),
            Err(problem) => Err(problem),
        }
    }
}

/// Reads a number of ASCII digits without sign and blanks.
fn number(text: &str, min: u8, max: u8) -> Result<u8, Problem> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::NotUnderstood);
    }
    text.parse().ok().filter(|n| (min..=max).contains(n)).ok_or(Problem::OutOfRange)
}
