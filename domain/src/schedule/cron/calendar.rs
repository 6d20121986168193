//! The wall-clock times of a schedule, without any zone.
//!
//! A wall time is the number of seconds since 1970-01-01T00:00 on the same wall clock. Ranges are half open.

use super::daytime::Daytime;
use super::month::{DAY, DaysByShape, Month, lengths, shape};

/// The matching days, and the matching times on each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schedule) struct Calendar {
    /// Bits 1-12.
    pub months: u64,
    pub days: DaysByShape,
    pub times: Daytime,
}

impl Calendar {
    /// Whether any date of any year matches. Within the 400 years after which the calendar repeats, a month of each
    /// possible length begins on every weekday; so only lengths and weekdays matter.
    pub fn ever(&self) -> bool {
        let months = (0..12).filter(|month| self.months >> (month + 1) & 1 != 0);
        let mut lengths = months.flat_map(lengths);
        lengths.any(|&length| (0..7).any(|first_weekday| self.days[shape(length, first_weekday)] != 0))
    }

    /// The first matching wall time in `[from, to)`.
    pub fn first_in(&self, from: i64, to: i64) -> Option<i64> {
        let (day, second) = split(from);
        let mut month = Month::containing(day);
        let mut days = self.days_of(month) & (u32::MAX << (day - month.start));
        if days >> (day - month.start) & 1 != 0 {
            if let Some(time) = self.times.first_from(second) {
                return within(day * DAY + i64::from(time), from, to);
            }
            days &= days - 1;
        }
        while days == 0 {
            month = month.next();
            if month.start * DAY >= to {
                return None;
            }
            days = self.days_of(month);
        }
        let day = month.start + i64::from(days.trailing_zeros());
        within(day * DAY + i64::from(self.times.first()), from, to)
    }

    /// The last matching wall time in `[from, to)`.
    pub fn last_in(&self, from: i64, to: i64) -> Option<i64> {
        let (day, second) = split(to - 1);
        let mut month = Month::containing(day);
        let mut days = self.days_of(month) & (u32::MAX >> (31 - (day - month.start)));
        if days >> (day - month.start) & 1 != 0 {
            if let Some(time) = self.times.last_until(second) {
                return within(day * DAY + i64::from(time), from, to);
            }
            days &= !(1 << (day - month.start));
        }
        while days == 0 {
            if month.start * DAY <= from {
                return None;
            }
            month = month.previous();
            days = self.days_of(month);
        }
        let day = month.start + i64::from(days.ilog2());
        within(day * DAY + i64::from(self.times.last()), from, to)
    }

    /// The number of matching wall times in `[from, to)`.
    pub fn count_in(&self, from: i64, to: i64) -> u64 {
        if from >= to {
            return 0;
        }
        let ((first_day, first_second), (last_day, last_second)) = (split(from), split(to));
        let before = |day: i64, second: u32| if self.on(day) { self.times.count_before(second) } else { 0 };
        let whole = self.days_in(first_day, last_day) * self.times.per_day();
        whole + before(last_day, last_second) - before(first_day, first_second)
    }

    /// The number of matching days in `[from, to)`.
    fn days_in(&self, from: i64, to: i64) -> u64 {
        let mut month = Month::containing(from);
        let mut count = 0;
        while month.start < to {
            let mut days = self.days_of(month);
            if from > month.start {
                days &= u32::MAX << (from - month.start);
            }
            if to < month.end() {
                days &= !(u32::MAX << (to - month.start));
            }
            count += u64::from(days.count_ones());
            month = month.next();
        }
        count
    }

    fn on(&self, day: i64) -> bool {
        let month = Month::containing(day);
        self.days_of(month) >> (day - month.start) & 1 != 0
    }

    fn days_of(&self, month: Month) -> u32 {
        if self.months >> (month.index + 1) & 1 != 0 { self.days[month.shape()] } else { 0 }
    }
}

/// The day number, and the second of that day.
fn split(wall: i64) -> (i64, u32) {
    (wall.div_euclid(DAY), u32::try_from(wall.rem_euclid(DAY)).unwrap_or(0))
}

fn within(wall: i64, from: i64, to: i64) -> Option<i64> {
    (from <= wall && wall < to).then_some(wall)
}
