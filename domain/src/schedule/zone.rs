//! Time zones as spans of constant offset.
//!
//! chrono-tz answers "what is the offset at this instant" and nothing about the transitions around it. The spans of a zone
//! are found once a process by asking for each day and bisecting where the answer changed; after that, finding due times
//! needs no zone arithmetic beyond an addition. A zone that nobody computes due times in costs nothing.

use std::fmt;
use std::sync::{LazyLock, OnceLock};

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::month::DAY;

/// Due times lie in `[FIRST, END)`, seconds since the epoch: the years 1970 to 9999.
pub(super) const FIRST: i64 = 0;
/// 10000-01-01T00:00:00Z.
pub(super) const END: i64 = 253_402_300_800;

/// chrono-tz knows the transitions up to the year 2100; from then on the offset stays.
const LAST_TRANSITION: i64 = 4_102_444_800 + 366 * DAY;

/// A time with one offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The first instant, in seconds since the epoch.
    pub start: i64,
    /// The first instant after it.
    pub end: i64,
    /// Wall clock minus UTC, in seconds.
    pub offset: i64,
    /// The wall time up to which clocks of this zone had already come before `start`. Later than `start + offset`: the
    /// wall clock repeats itself up to here (overlap). Earlier: what lies between was swallowed (gap).
    pub reached: i64,
}

/// A zone of the IANA database with its spans, found when first needed.
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
        // The variants are listed in the order of their declaration, so this is the right one; a test compares all.
        ZONES.get(tz as usize).filter(|zone| zone.tz == tz)
    }

    /// The name in the IANA database.
    pub fn name(&self) -> &'static str {
        self.tz.name()
    }

    /// All spans, in order, from [`FIRST`] to [`END`] without a hole.
    pub fn spans(&self) -> &[Span] {
        self.spans.get_or_init(|| find_spans(self.tz))
    }

    /// The index of the span that contains an instant, which must lie in `[FIRST, END)`.
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
        // A day is short enough: no zone has changed its offset twice within six since 1970.
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
    fn spans_agree_with_asking_for_each_quarter_of_an_hour() {
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
    fn nothing_changes_after_the_last_probe() {
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
