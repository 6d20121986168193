//! `@every`: due times at a fixed rate.
//!
//! The k-th due time is `anchor + k * interval` for k = 1, 2, ... So no state is kept, a late firing does not move the
//! next one, and one division counts any number of due times. (robfig/cron counts from the start of the process.)

use std::time::Duration;

/// A whole number of milliseconds, at least a second and at most 36,500 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval(i64);

const DAY_MS: u128 = 86_400_000;

impl Interval {
    /// Reads `90s`, `5m`, `1h30m`, `1.5h`: numbers with the units `d`, `h`, `m`, `s` or `ms`, added up. `None` if the
    /// text is not such a duration, is not a whole number of milliseconds, or is outside the limits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut total_ms = 0_u128;
        while !rest.is_empty() {
            let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
            let unit_ends = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_ends);
            total_ms = total_ms.checked_add(milliseconds(number, unit)?)?;
            rest = after;
        }
        (1_000..=36_500 * DAY_MS)
            .contains(&total_ms)
            .then_some(total_ms)
            .and_then(|ms| i64::try_from(ms).ok())
            .map(Self)
    }

    /// The interval itself.
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }

    /// The first due time (ms) later than `after`.
    pub fn next_after(self, anchor: i64, after: i64) -> i64 {
        anchor + (self.passed(anchor, after) + 1) * self.0
    }

    /// The last due time (ms) at or before `until`.
    pub fn last_until(self, anchor: i64, until: i64) -> Option<i64> {
        let passed = self.passed(anchor, until);
        (passed > 0).then_some(anchor + passed * self.0)
    }

    /// The number of due times in `(after, until]`.
    pub fn count(self, anchor: i64, after: i64, until: i64) -> u64 {
        u64::try_from(self.passed(anchor, until) - self.passed(anchor, after)).unwrap_or(0)
    }

    /// The number of due times at or before `t`.
    fn passed(self, anchor: i64, t: i64) -> i64 {
        (t - anchor).max(0) / self.0
    }
}

fn milliseconds(number: &str, unit: &str) -> Option<u128> {
    let unit_ms = match unit {
        "d" => DAY_MS,
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1_000,
        "ms" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.len() > 12 || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction_ms = fraction.parse::<u128>().ok()? * unit_ms;
    (fraction_ms % scale == 0).then_some(whole.parse::<u128>().ok()? * unit_ms + fraction_ms / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        let good = [
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("1500ms", 1_500),
            ("000000000090s", 90_000),
            ("1.500000000s", 1_500),
        ];
        for (text, ms) in good {
            assert_eq!(Interval::parse(text), Some(Interval(ms)), "{text}");
        }
        assert_eq!(Interval::parse("36500d").map(Interval::duration), Some(Duration::from_secs(36_500 * 86_400)));
        let bad = [
            "",
            "90",
            "s",
            "999ms",
            "0s",
            "-5s",
            "+5s",
            "5 s",
            "5x",
            "1.s",
            ".5h",
            "1.2.3s",
            "1.0001s",
            "1.0000000000s",
            "0000000000090s",
            "36501d",
            "5é",
            "m5",
            "99999999999999999999h",
            "1h-1m",
        ];
        for text in bad {
            assert_eq!(Interval::parse(text), None, "{text}");
        }
    }

    #[test]
    fn counts_from_the_anchor() {
        let every = Interval(1_500);
        assert_eq!([-5_000, 100, 1_599, 1_600].map(|t| every.next_after(100, t)), [1_600, 1_600, 1_600, 3_100]);
        assert_eq!(
            [100, 1_599, 1_600, 3_099].map(|t| every.last_until(100, t)),
            [None, None, Some(1_600), Some(1_600)]
        );
        assert_eq!(every.count(100, 0, 3_100), 2);
        assert_eq!(every.count(100, 1_600, 3_100), 1);
        assert_eq!(every.count(100, 3_100, 1_600), 0);
    }
}
