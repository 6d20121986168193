//! Months of the proleptic Gregorian calendar, as day numbers since 1970-01-01.
//!
//! The matching days of a month depend only on its *shape*: its length and the weekday of its first day. There are 4 x 7
//! shapes. So a schedule keeps one 31-bit mask per shape, and a search is bit arithmetic.

use chrono::{Datelike, NaiveDate};

/// The number of shapes a month can have.
pub(in crate::schedule) const SHAPES: usize = 28;

/// The matching days for each shape of a month: bit 0 is the first day.
pub(in crate::schedule) type DaysByShape = [u32; SHAPES];

/// Seconds of a day on the wall clock.
pub(in crate::schedule) const DAY: i64 = 86_400;

/// One month of one year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schedule) struct Month {
    year: i32,
    /// 0 = January.
    pub index: u8,
    /// The day number of its first day (0 = 1970-01-01).
    pub start: i64,
    /// 28-31.
    pub length: u8,
}

impl Month {
    /// The month that contains a day number.
    pub fn containing(day: i64) -> Self {
        let date = i32::try_from(day).ok().and_then(NaiveDate::from_epoch_days).unwrap_or_default();
        let index = u8::try_from(date.month0()).unwrap_or(0);
        Self { year: date.year(), index, start: day - i64::from(date.day0()), length: length(date.year(), index) }
    }

    /// The month after this one.
    pub fn next(self) -> Self {
        let (year, index) = if self.index == 11 { (self.year + 1, 0) } else { (self.year, self.index + 1) };
        Self { year, index, start: self.start + i64::from(self.length), length: length(year, index) }
    }

    /// The month before this one.
    pub fn previous(self) -> Self {
        let (year, index) = if self.index == 0 { (self.year - 1, 11) } else { (self.year, self.index - 1) };
        let length = length(year, index);
        Self { year, index, start: self.start - i64::from(length), length }
    }

    /// The day number after its last day.
    pub fn end(self) -> i64 {
        self.start + i64::from(self.length)
    }

    /// Its shape, below [`SHAPES`].
    pub fn shape(self) -> usize {
        // 1970-01-01 was a Thursday.
        let first_weekday = (self.start + 4).rem_euclid(7);
        shape(self.length, u8::try_from(first_weekday).unwrap_or(0))
    }
}

/// The shape of months of `length` days that begin on `first_weekday` (0 = Sunday).
pub(in crate::schedule) fn shape(length: u8, first_weekday: u8) -> usize {
    (usize::from(length) - 28) * 7 + usize::from(first_weekday)
}

/// The lengths that a month (0 = January) can have.
pub(in crate::schedule) fn lengths(index: u8) -> &'static [u8] {
    match index {
        1 => &[28, 29],
        3 | 5 | 8 | 10 => &[30],
        _ => &[31],
    }
}

fn length(year: i32, index: u8) -> u8 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if index == 1 && leap { 29 } else { lengths(index)[0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_chrono_for_eight_hundred_years() {
        let mut month = Month::containing(0);
        while month.year < 2770 {
            let first = NaiveDate::from_ymd_opt(month.year, u32::from(month.index) + 1, 1).unwrap();
            let next = first.checked_add_months(chrono::Months::new(1)).unwrap();
            assert_eq!(month.start, i64::from(first.to_epoch_days()));
            assert_eq!(month.end(), i64::from(next.to_epoch_days()));
            assert_eq!(month.shape() % 7, usize::try_from(first.weekday().num_days_from_sunday()).unwrap());
            assert_eq!(Month::containing(month.end() - 1), month);
            assert_eq!(month.next().previous(), month);
            month = month.next();
        }
    }

    #[test]
    fn works_before_1970() {
        let december = Month::containing(-1);
        assert_eq!((december.year, december.index, december.start, december.length), (1969, 11, -31, 31));
        assert_eq!(december.next(), Month::containing(0));
    }
}
