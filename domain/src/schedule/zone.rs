//! Time zones as spans of constant offset.
//!
//! chrono-tz tells the offset at one instant and no transitions. So the spans of a zone are found once per process: by
//! the offset at each day, and by bisection where it changed. After that a due time needs only one addition. The spans
//! of a zone are found when they are first needed, so that unused zones cost nothing.

use std::fmt;
use std::sync::{LazyLock, OnceLock};

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::cron::month::DAY;

/// Due times are in `[FIRST, END)`, seconds since the epoch: the years 1970 to 9999.
pub(super) const FIRST: i64 = 0;
/// 10000-01-01T00:00:00Z.
pub(super) const END: i64 = 253_402_300_800;

/// chrono-tz knows transitions up to the year 2100; after that the offset stays.
const LAST_TRANSITION: i64 = 4_102_444_800 + 366 * DAY;

/// A span of time with a constant offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The first instant, in seconds since the epoch.
    pub start: i64,
    /// The first instant after it.
    pub end: i64,
    /// Wall clock minus UTC, in seconds.
    pub offset: i64,
    /// The wall time that clocks of this zone reached before `start`. If it is later than `start + offset`, the wall
    /// clock repeats the times up to here (overlap). If it is earlier, the wall clock skips the times between (gap).
    pub reached: i64,
}

/// A zone of the IANA database. Its spans are found when they are first needed.
pub(super) struct Zone {
    tz: Tz,
    spans: OnceLock<Box<[Span]>>,
}

impl Zone {
    /// The zone of that exact name.
    pub fn named(name: &str) -> Option<&'static Zone> {
        static ZONES: LazyLock<Box<[Zone]>> =
            LazyLock::new(|| TZ_VARIANTS.iter().map(|&tz| Zone { tz, spans: OnceLock::new() }).collect());
        let tz: Tz = name.parse().ok()?;
        // The list has the variants in the order of their declaration, so their number is the index. A test compares
        // all.
        ZONES.get(tz as usize).filter(|zone| zone.tz == tz)
    }

    /// The name in the IANA database.
    pub fn name(&self) -> &'static str {
        self.tz.name()
    }

    /// All spans in order, without a hole from [`FIRST`] to [`END`].
    pub fn spans(&self) -> &[Span] {
        self.spans.get_or_init(|| find_spans(self.tz))
    }

    /// The index of the span that contains an instant, which must be in `[FIRST, END)`.
    pub fn span_at(&self, utc: i64) -> usize {
        self.spans().partition_point(|span| span.start <= utc).saturating_sub(1)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.tz == other.tz
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn find_spans(tz: Tz) -> Box<[Span]> {
    let mut offset = offset_at(tz, FIRST);
    let mut spans = vec![Span { start: FIRST, end: END, offset, reached: FIRST + offset }];
    let mut known = FIRST;
    while known < LAST_TRANSITION {
        // A step of one day misses no change: since 1970 no zone has changed its offset twice within six days.
        let probe = known + DAY;
        let changed = offset_at(tz, probe);
        if changed != offset {
            let (mut before, mut after) = (known, probe);
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                *(if offset_at(tz, middle) == offset { &mut before } else { &mut after }) = middle;
            }
            let reached = spans.last_mut().map_or(after, |last| {
                last.end = after;
                after + last.offset
            });
            spans.push(Span { start: after, end: END, offset: changed, reached });
            offset = changed;
        }
        known = probe;
    }
    spans.into_boxed_slice()
}

fn offset_at(tz: Tz, utc: i64) -> i64 {
    let naive = DateTime::from_timestamp(utc, 0).unwrap_or_default().naive_utc();
    i64::from(tz.offset_from_utc_datetime(&naive).fix().local_minus_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_is_found_under_its_own_name() {
        for tz in TZ_VARIANTS {
            assert_eq!(Zone::named(tz.name()).map(Zone::name), Some(tz.name()));
        }
        assert_eq!(Zone::named("Mars/Olympus_Mons"), None);
        assert_eq!(Zone::named(""), None);
    }

    #[test]
    fn spans_agree_with_the_offset_at_each_quarter_of_an_hour() {
        for name in ["UTC", "Australia/Lord_Howe", "Africa/Casablanca"] {
            let zone = Zone::named(name).unwrap();
            let mut spans = zone.spans().iter();
            let mut span = spans.next().unwrap();
            for utc in (FIRST..2_208_988_800).step_by(900) {
                if utc >= span.end {
                    span = spans.next().unwrap();
                }
                assert_eq!(span.offset, offset_at(zone.tz, utc), "{name} {utc}");
            }
        }
    }

    #[test]
    fn no_offset_changes_after_the_last_transition() {
        for tz in TZ_VARIANTS {
            let last = offset_at(tz, LAST_TRANSITION);
            assert!((0..400).all(|n| offset_at(tz, LAST_TRANSITION + n * 41 * DAY) == last), "{}", tz.name());
        }
    }

    #[test]
    fn a_skipped_day_is_one_gap() {
        let zone = Zone::named("Pacific/Apia").unwrap();
        let gap = zone.spans().iter().find(|s| s.start + s.offset - s.reached == DAY).unwrap();
        assert_eq!(gap.start, 1_325_239_200); // 2011-12-30T10:00:00Z
    }
}
