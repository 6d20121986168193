//! Durations as users write them (`90s`, `1h30m`, `500ms`), and as they read them in sentences and tables (`1 min 30 s`, `500 ms`).

use std::time::Duration;

use crate::name::quoted;

/// The longest duration that is accepted: 36500 days.
pub const MAX: Duration = Duration::from_millis(36_500 * 86_400_000);

/// The units with their milliseconds, in the order in which they must be written.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The reason why a text is not a duration, as a sentence for users. Texts in it are escaped and in quotes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is empty.
    #[error("the duration is empty: expected a number and a unit, such as 90s or 1h30m (0s for none)")]
    Empty,
    /// A number was expected.
    #[error("{text} is not a duration: a whole number is missing before {rest}; write it like 90s or 1h30m")]
    NoNumber {
        /// The whole text.
        text: String,
        /// The part where a number is expected.
        rest: String,
    },
    /// A number without a unit.
    #[error("{text} is not a duration: {number} has no unit; the units are d h m s ms")]
    NoUnit {
        /// The whole text.
        text: String,
        /// The number.
        number: String,
    },
    /// An unknown unit.
    #[error("{text} is not a duration: there is no unit {unit}; the units are d h m s ms")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The unit.
        unit: String,
    },
    /// A unit twice, or after a smaller one.
    #[error("{text} is not a duration: {unit} is out of place; the order is d h m s ms, each at most once")]
    Order {
        /// The whole text.
        text: String,
        /// The unit.
        unit: String,
    },
    /// It is longer than [`MAX`].
    #[error("{text} is too long: at most 36500d are allowed")]
    TooLong {
        /// The whole text.
        text: String,
    },
}

/// Parses a duration: whole numbers, each with a unit. Units descend, each at most once; blanks and signs are refused.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut allowed = UNITS.as_slice();
    let mut total_ms: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit());
        if number.is_empty() {
            return Err(DurationError::NoNumber { text: quoted(text), rest: quoted(rest) });
        }
        let (unit, after) = split_while(after, |c| c.is_alphabetic());
        if unit.is_empty() {
            return Err(DurationError::NoUnit { text: quoted(text), number: number.chars().take(64).collect() });
        }
        let Some(at) = allowed.iter().position(|(name, _)| *name == unit) else {
            let known = UNITS.iter().any(|(name, _)| *name == unit);
            let (text, unit) = (quoted(text), quoted(unit));
            return Err(if known {
                DurationError::Order { text, unit }
            } else {
                DurationError::UnknownUnit { text, unit }
            });
        };
        let too_long = || DurationError::TooLong { text: quoted(text) };
        let count: u64 = number.parse().map_err(|_| too_long())?;
        total_ms = count.checked_mul(allowed[at].1).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(too_long)?;
        if Duration::from_millis(total_ms) > MAX {
            return Err(too_long());
        }
        allowed = &allowed[at + 1..];
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// The canonical text of a duration: the largest unit first, without units that are zero, and `0s` for no time at all.
/// Digits below a millisecond are dropped. [`parse`] reads it back.
pub fn format(duration: Duration) -> String {
    let mut left_ms = duration.as_millis();
    let mut out = String::new();
    for (unit, unit_ms) in UNITS {
        let count = left_ms / u128::from(unit_ms);
        left_ms %= u128::from(unit_ms);
        if count > 0 {
            out.push_str(&format!("{count}{unit}"));
        }
    }
    if out.is_empty() { "0s".into() } else { out }
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// A duration as people read it, in sentences and tables: `7 ms`, `4.2 s`, `7 s`, and from a minute on as [`coarse`] has it. A setting
/// keeps the text of [`format`], as people write it.
pub fn spoken(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..=999 => format!("{ms} ms"),
        ms @ 1_000..=59_999 if ms % 1_000 >= 100 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => coarse(duration),
    }
}

/// A duration in whole seconds, to its two largest units: `0 s`, `4 min 10 s`, `2 h`, `1 d 1 h`. Countdowns and distances have this form.
pub fn coarse(duration: Duration) -> String {
    let secs = duration.as_secs();
    let units = [("d", secs / 86_400), ("h", secs / 3_600 % 24), ("min", secs / 60 % 60), ("s", secs % 60)];
    let Some(first) = units.iter().position(|(_, n)| *n > 0) else { return "0 s".to_owned() };
    let shown = units[first..].iter().take(2).filter(|(_, n)| *n > 0);
    shown.map(|(unit, n)| format!("{n} {unit}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_at_a_glance() {
        let ms = Duration::from_millis;
        for (duration, shown) in [
            (ms(0), "0 ms"),
            (ms(7), "7 ms"),
            (ms(999), "999 ms"),
            (ms(1_000), "1 s"),
            (ms(1_099), "1 s"),
            (ms(4_250), "4.2 s"),
            (ms(59_999), "59.9 s"),
            (ms(61_000), "1 min 1 s"),
            (ms(7_200_000), "2 h"),
            (ms(90_061_000), "1 d 1 h"),
            (ms(86_400_000 + 61_000), "1 d"),
        ] {
            assert_eq!(spoken(duration), shown);
        }
        assert_eq!((coarse(ms(999)), coarse(ms(4_250))), ("0 s".to_owned(), "4 s".to_owned()));
    }

    #[test]
    fn durations_are_read_and_printed_canonically() {
        for (text, ms, canonical) in [
            ("0s", 0, "0s"),
            ("0d0ms", 0, "0s"),
            ("500ms", 500, "500ms"),
            ("90s", 90_000, "1m30s"),
            ("5m", 300_000, "5m"),
            ("007m", 420_000, "7m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("30d", 2_592_000_000, "30d"),
            ("1d2h3m4s5ms", 93_784_005, "1d2h3m4s5ms"),
            ("1d5ms", 86_400_005, "1d5ms"),
            ("36500d", 3_153_600_000_000, "36500d"),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(format(Duration::from_millis(ms)), canonical);
        }
        assert_eq!(format(Duration::from_micros(1_999)), "1ms");
    }

    #[test]
    fn other_texts_are_refused_with_a_sentence() {
        for (text, sentence) in [
            ("", "the duration is empty: expected a number and a unit, such as 90s or 1h30m (0s for none)"),
            ("s", "\"s\" is not a duration: a whole number is missing before \"s\"; write it like 90s or 1h30m"),
            ("-5s", "\"-5s\" is not a duration: a whole number is missing before \"-5s\"; write it like 90s or 1h30m"),
            (
                "1h 5m",
                "\"1h 5m\" is not a duration: a whole number is missing before \" 5m\"; write it like 90s or 1h30m",
            ),
            ("90", "\"90\" is not a duration: 90 has no unit; the units are d h m s ms"),
            ("1.5h", "\"1.5h\" is not a duration: 1 has no unit; the units are d h m s ms"),
            ("3w", "\"3w\" is not a duration: there is no unit \"w\"; the units are d h m s ms"),
            ("5M", "\"5M\" is not a duration: there is no unit \"M\"; the units are d h m s ms"),
            ("5s1m", "\"5s1m\" is not a duration: \"m\" is out of place; the order is d h m s ms, each at most once"),
            ("5s5s", "\"5s5s\" is not a duration: \"s\" is out of place; the order is d h m s ms, each at most once"),
            ("36501d", "\"36501d\" is too long: at most 36500d are allowed"),
            ("36500d1ms", "\"36500d1ms\" is too long: at most 36500d are allowed"),
            ("99999999999999999999s", "\"99999999999999999999s\" is too long: at most 36500d are allowed"),
            ("18446744073709551615d", "\"18446744073709551615d\" is too long: at most 36500d are allowed"),
        ] {
            assert_eq!(parse(text).map_err(|e| e.to_string()), Err(sentence.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn every_printed_duration_is_read_back(ms in 0u64..=36_500 * 86_400_000) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC*|[0-9dhms]{0,12}") {
            let _ = parse(&text);
        }
    }
}
