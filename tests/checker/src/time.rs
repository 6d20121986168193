//! Times: everywhere microseconds since 1970, UTC.

use chrono::{DateTime, SecondsFormat, Utc};

/// One second.
pub const SECOND_US: i64 = 1_000_000;

/// Reads RFC 3339; `None` where it is none.
pub fn parse(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_micros())
}

/// RFC 3339 with milliseconds.
pub fn show(at_us: i64) -> String {
    DateTime::<Utc>::from_timestamp_micros(at_us)
        .map_or_else(|| format!("{at_us} us"), |at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
}
