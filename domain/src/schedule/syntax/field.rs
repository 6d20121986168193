//! The six fields of a schedule and the values that each allows.

use std::fmt;

/// A field of a schedule, in the order in which six-field schedules are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// 0-59; 0 in schedules of five fields, which do not have it.
    Seconds,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31, and `L`, `LW`, `15W`, `L-3`.
    DayOfMonth,
    /// 1-12 or JAN-DEC.
    Month,
    /// 0-7 or SUN-SAT, where 0 and 7 are Sunday; and `FRI#3`, `5L`.
    DayOfWeek,
}

impl Field {
    /// The name in errors. It is also the purpose of the hash behind `H`, so it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        }
    }

    /// The smallest number.
    pub(in crate::schedule) const fn min(self) -> u8 {
        match self {
            Self::DayOfMonth | Self::Month => 1,
            Self::Seconds | Self::Minute | Self::Hour | Self::DayOfWeek => 0,
        }
    }

    /// The largest number. As in Debian cron, day-of-week has 7 too: `5-7` is Friday to Sunday, and `1/2` ends on
    /// Sunday.
    pub(in crate::schedule) const fn max(self) -> u8 {
        match self {
            Self::Seconds | Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => 7,
        }
    }

    /// The largest value that a bare `H` may take. Days of the month stop at 28, so that no month is left out. Days of
    /// the week stop at 6, so that Sunday is not twice as likely.
    pub(in crate::schedule) const fn hash_max(self) -> u8 {
        match self {
            Self::DayOfMonth => 28,
            Self::DayOfWeek => 6,
            other => other.max(),
        }
    }

    /// The number of a three-letter name in upper case.
    pub(in crate::schedule) fn number_of(self, name: &str) -> Option<u8> {
        let (names, first): (&[&str], u8) = match self {
            Self::Month => (&MONTHS, 1),
            Self::DayOfWeek => (&WEEKDAYS, 0),
            Self::Seconds | Self::Minute | Self::Hour | Self::DayOfMonth => return None,
        };
        (first..).zip(names).find_map(|(number, &known)| (known == name).then_some(number))
    }

    /// The allowed values, as errors list them.
    pub(in crate::schedule) const fn allowed(self) -> &'static str {
        match self {
            Self::Seconds | Self::Minute => "0-59, * and H, with lists, ranges and steps such as 1,5-20/5",
            Self::Hour => "0-23, * and H, with lists, ranges and steps such as 1,8-18/2",
            Self::DayOfMonth => "1-31, *, H, L, LW, L-1 to L-30 and 1W to 31W, with lists, ranges and steps of numbers",
            Self::Month => "1-12, JAN-DEC, * and H, with lists, ranges and steps such as JAN,4-10/3",
            Self::DayOfWeek => {
                "0-7 (0 and 7 are Sunday), SUN-SAT, *, H, FRI#1 to FRI#5 and 5L, with lists, ranges and steps of days"
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
