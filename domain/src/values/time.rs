//! The two clocks of the domain: UTC for due times, and the machine's own steady clock for leases and timers.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike, Utc};

/// An instant in UTC, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// Due times, start times and finish times are all of this type. They come from the database's clock, because all nodes
/// share that one. Readings of two machines' own wall clocks are never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The largest representable instant that still formats as RFC 3339 (9999-12-31T23:59:59.999Z). Used for "never".
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// The resolution of an instant: the instant right before `due` is `due - Timestamp::TICK`.
    pub const TICK: Duration = Duration::from_millis(1);

    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// From milliseconds since the Unix epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// From whole seconds since the Unix epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * 1000)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// `self - earlier`, or zero when `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Parses RFC 3339 with any offset and drops digits below a millisecond. `None` when the text is not RFC 3339, or is
    /// outside the years 1970 to 9999.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let ms = DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis();
        (0..=Self::MAX.0).contains(&ms).then_some(Self(ms))
    }

    /// RFC 3339 without a fraction when the instant is a whole second, as `carillon next` prints it.
    pub fn to_rfc3339_short(self) -> String {
        if self.0 % 1000 == 0 { self.naive().format("%Y-%m-%dT%H:%M:%SZ").to_string() } else { self.to_string() }
    }

    /// The same instant as chrono's UTC wall clock.
    pub fn naive(self) -> NaiveDateTime {
        DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default().naive_utc()
    }
}

/// A reading of the machine's own steady clock in milliseconds: CLOCK_BOOTTIME, which also counts while the machine
/// sleeps.
///
/// Leases and timers use it, because it is never set back. It does not tell the time of day, and readings of two
/// machines are never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct BootTime(u64);

impl BootTime {
    /// From milliseconds since boot.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since boot.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// `self - earlier`, or zero when `earlier` is later.
    pub const fn since(self, earlier: BootTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootTime {
    type Output = BootTime;
    fn add(self, by: Duration) -> BootTime {
        BootTime(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    /// Saturates at the ends of the representable range.
    fn add(self, by: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, by: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds, as the API and the logs print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.naive();
        let (hour, minute, second, ms) = (at.hour(), at.minute(), at.second(), at.and_utc().timestamp_subsec_millis());
        let Ok(year @ 0..=9999) = u32::try_from(at.year()) else {
            let (year, month, day) = (at.year(), at.month(), at.day());
            return write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z");
        };
        // Each run gets its due time as text, so this is a hot path: a pattern of chrono takes ten times as long.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [(4, year), (7, at.month()), (10, at.day()), (13, hour), (16, minute), (19, second), (23, ms)];
        for (end, mut rest) in parts {
            let digits = text[..end].iter_mut().rev().take_while(|digit| digit.is_ascii_digit());
            for digit in digits {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_rfc3339() {
        let t = Timestamp::from_ms(1_000);
        assert_eq!(t.to_string(), "1970-01-01T00:00:01.000Z");
        assert_eq!(t.to_rfc3339_short(), "1970-01-01T00:00:01Z");
        assert_eq!(Timestamp::from_ms(1_234).to_rfc3339_short(), "1970-01-01T00:00:01.234Z");
        assert_eq!(Timestamp::parse_rfc3339("1970-01-01T01:00:01+01:00"), Some(t));
        assert_eq!(Timestamp::parse_rfc3339("yesterday"), None);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_ms(1_740_787_201_050).to_string(), "2025-03-01T00:00:01.050Z");
        assert_eq!(Timestamp::from_ms(1_798_761_599_999).to_string(), "2026-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_secs(253_402_300_800).to_string(), "10000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_secs(-62_167_219_201).to_string(), "-001-12-31T23:59:59.000Z");
    }

    #[test]
    fn differences_never_go_below_zero() {
        let (a, b) = (Timestamp::from_ms(5), Timestamp::from_ms(9));
        assert_eq!(b.since(a), Duration::from_millis(4));
        assert_eq!(a.since(b), Duration::ZERO);
    }

    #[test]
    fn only_the_years_1970_to_9999_are_read() {
        for (text, ms) in
            [("1970-01-01T00:00:00Z", Some(0)), ("9999-12-31T23:59:59.999Z", Some(Timestamp::MAX.as_ms()))]
        {
            assert_eq!(Timestamp::parse_rfc3339(text), ms.map(Timestamp::from_ms), "{text}");
        }
        for text in ["1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999-00:01"] {
            assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn sums_stay_in_range_and_both_clocks_count_milliseconds() {
        let (second, two) = (Duration::from_secs(1), Timestamp::from_ms(2_000));
        assert_eq!((two + second, two - second), (Timestamp::from_secs(3), Timestamp::from_secs(1)));
        assert_eq!((two + Duration::MAX).as_ms(), i64::MAX);
        assert_eq!((Timestamp::from_ms(-5) - Duration::MAX).as_ms(), i64::MIN);
        let boot = BootTime::from_ms(2_000);
        assert_eq!((boot.as_ms(), boot + second), (2_000, BootTime::from_ms(3_000)));
        assert_eq!((boot + Duration::MAX).as_ms(), u64::MAX);
        assert_eq!(
            (boot.since(BootTime::from_ms(500)), BootTime::from_ms(500).since(boot)),
            (second * 3 / 2, Duration::ZERO)
        );
        assert_eq!(two.naive().to_string(), "1970-01-01 00:00:02");
        assert_eq!(format!("{two:?}"), "1970-01-01T00:00:02.000Z");
    }
}
