//! The reasons why a schedule is refused, as sentences that a user can act on.
//!
//! saffron has one error text for everything. These errors name the field, quote the text at fault and list the values
//! that are allowed there. Quotes are short and have control characters escaped, so that they are safe in logs and
//! terminals.

use thiserror::Error;

use super::syntax::field::Field;

/// The longest schedule in bytes. Longer ones are refused unread.
pub const MAX_LENGTH: usize = 1_024;

/// The reason why a schedule is refused. Its text is for the person who wrote the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The text is empty or blank.
    #[error("schedule: it is empty; allowed are 5 or 6 fields, or a descriptor such as @daily")]
    Empty,
    /// Longer than [`MAX_LENGTH`] bytes.
    #[error("schedule: it is {length} bytes long; allowed are at most {MAX_LENGTH}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Neither five nor six fields.
    #[error(
        "schedule: {text} has {found}; allowed are 5 fields (minute hour day-of-month month day-of-week), or 6 with \
         seconds first"
    )]
    FieldCount {
        /// The schedule, quoted.
        text: String,
        /// The number of fields with its noun, such as `4 fields`.
        found: String,
    },
    /// One of the fields cannot be read.
    #[error("{field}: {text} {problem}; allowed are {}", field.allowed())]
    Field {
        /// The field at fault.
        field: Field,
        /// The item at fault, quoted.
        text: String,
        /// The problem.
        problem: Problem,
    },
    /// An `@` word that is not a descriptor.
    #[error(
        "schedule: {text} is not a descriptor; allowed are @yearly, @annually, @monthly, @weekly, @daily, @midnight, \
         @hourly, @every DURATION and @at TIME"
    )]
    Descriptor {
        /// The word, quoted.
        text: String,
    },
    /// `@every` without a usable duration.
    #[error(
        "schedule: {text} has no usable interval; allowed are @every 1s to @every 36500d, such as @every 90s or @every 1h30m"
    )]
    Every {
        /// The schedule, quoted.
        text: String,
    },
    /// `@at` without an instant.
    #[error(
        "schedule: {text} has no usable time; allowed are RFC 3339 times of the years 1970 to 9999, such as \
         @at 2027-01-01T00:00:00Z"
    )]
    At {
        /// The schedule, quoted.
        text: String,
    },
    /// A zone name that the time zone database does not have.
    #[error("timezone: {text} is unknown; allowed are names of the IANA time zone database, such as Europe/Berlin")]
    UnknownTimezone {
        /// The name, quoted.
        text: String,
    },
    /// A `CRON_TZ=` prefix and a timezone option that differ.
    #[error(
        "timezone: {prefix} in the schedule differs from the timezone setting {option}; allowed is one of them, or both the \
         same"
    )]
    TimezoneConflict {
        /// The zone of the prefix, quoted.
        prefix: String,
        /// The zone of the option, quoted.
        option: String,
    },
    /// No date of any year matches, as in `0 0 30 2 *`.
    #[error("schedule: {text} can never fire; allowed are days that at least one of its months has")]
    NeverFires {
        /// The schedule, quoted.
        text: String,
    },
}

impl ScheduleError {
    /// The name of the part at fault: a field's name, `schedule` or `timezone`. Programs use it to mark the input.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Field { field, .. } => field.name(),
            Self::UnknownTimezone { .. } | Self::TimezoneConflict { .. } => "timezone",
            Self::Empty
            | Self::TooLong { .. }
            | Self::FieldCount { .. }
            | Self::Descriptor { .. }
            | Self::Every { .. }
            | Self::At { .. }
            | Self::NeverFires { .. } => "schedule",
        }
    }

    pub(super) fn in_field(field: Field, text: &str, problem: Problem) -> Self {
        Self::Field { field, text: shown(text), problem }
    }
}

/// The problem with an item of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The field has no such form.
    #[error("is not understood")]
    NotUnderstood,
    /// A number is outside the field's limits.
    #[error("is out of range")]
    OutOfRange,
    /// The end of a range is before its start.
    #[error("runs backwards")]
    Backwards,
    /// The step is `/0`.
    #[error("has a step of 0")]
    ZeroStep,
    /// There is no text before, between or after commas.
    #[error("has an empty list item")]
    EmptyItem,
}

/// Quotes text for an error: at most 40 characters, control characters escaped.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut quoted = String::from("\"");
    for c in text.chars().take(MOST) {
        if c.is_control() || c == '"' || c == '\\' {
            quoted.extend(c.escape_default());
        } else {
            quoted.push(c);
        }
    }
    if text.chars().nth(MOST).is_some() {
        quoted.push_str("...");
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_harmless() {
        assert_eq!(shown("a\tb\u{1b}[31m\"\\"), r#""a\tb\u{1b}[31m\"\\""#);
        assert_eq!(shown(&"é".repeat(41)), format!("\"{}...\"", "é".repeat(40)));
        assert_eq!(shown(&"x".repeat(40)), format!("\"{}\"", "x".repeat(40)));
    }
}
