//! Times as people read them: in the reader's zone, with UTC in the title, and durations in words.

use carillon_domain::duration::coarse;
use carillon_domain::time::Timestamp;
use chrono::{DateTime, Datelike, Offset, TimeZone};
use chrono_tz::Tz;
use maud::{Markup, html};

/// An instant on the clock of a zone.
pub(crate) fn wall(at: Timestamp, zone: Tz) -> DateTime<Tz> {
    zone.from_utc_datetime(&at.naive())
}

/// An instant as an element, as short as `now` allows: only the time on the same day, the year only where it is another one.
pub(crate) fn clock(at: Timestamp, now: Timestamp, zone: Tz) -> Markup {
    html! { time datetime=(at.to_rfc3339_short()) title=(utc(at)) { (short(at, now, zone)) } }
}

/// The same as text.
pub(crate) fn short(at: Timestamp, now: Timestamp, zone: Tz) -> String {
    let (there, here) = (wall(at, zone), wall(now, zone));
    let format = if there.date_naive() == here.date_naive() {
        "%H:%M:%S"
    } else if there.year() == here.year() {
        "%a %-d %b %H:%M"
    } else {
        "%-d %b %Y %H:%M"
    };
    there.format(format).to_string()
}

/// Date and time to the second, with the zone's name.
pub(crate) fn full(at: Timestamp, zone: Tz) -> String {
    wall(at, zone).format("%a %-d %b %Y %H:%M:%S %Z").to_string()
}

/// The title of a time.
pub(crate) fn utc(at: Timestamp) -> String {
    at.naive().format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// How far off an instant is, as an element that the script keeps true: `in 4 min 10 s`, `2 h ago`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> Markup {
    html! { time data-rel datetime=(at.to_string()) title=(utc(at)) { (distance(at, now)) } }
}

/// How far off an instant is.
pub(crate) fn distance(at: Timestamp, now: Timestamp) -> String {
    if at >= now { format!("in {}", coarse(at.since(now))) } else { format!("{} ago", coarse(now.since(at))) }
}

/// A change of a zone's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockChange {
    /// When it happens.
    pub at: Timestamp,
    zone: Tz,
    minutes: i32,
}

impl ClockChange {
    /// The change as a sentence.
    pub fn sentence(&self) -> String {
        let (way, by) = if self.minutes > 0 { ("forward", self.minutes) } else { ("back", -self.minutes) };
        format!("The clock of {} goes {way} by {by} minutes: {}.", self.zone.name(), full(self.at, self.zone))
    }
}

/// How far a zone's clock is ahead of UTC.
pub(crate) fn offset_secs(at: Timestamp, zone: Tz) -> i32 {
    wall(at, zone).offset().fix().local_minus_utc()
}

/// The first change of a zone's clock between two instants.
pub(crate) fn clock_change(after: Timestamp, until: Timestamp, zone: Tz) -> Option<ClockChange> {
    // Times that lie far apart have many changes between them; a year that ends as it began has two.
    const HALF_A_MONTH_MS: i64 = 15 * 86_400_000;
    let offset = |ms: i64| offset_secs(Timestamp::from_ms(ms), zone);
    let (mut low, before) = (after.as_ms(), offset(after.as_ms()));
    let mut at = low;
    while at < until.as_ms() && offset(at) == before {
        low = at;
        at = at.saturating_add(HALF_A_MONTH_MS);
    }
    let mut high = at.min(until.as_ms());
    if offset(high) == before {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset(middle) == before { low = middle } else { high = middle }
    }
    Some(ClockChange { at: Timestamp::from_ms(high), zone, minutes: (offset(high) - before) / 60 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_time_is_as_short_as_its_distance_allows() {
        let now = at("2027-03-28T10:00:00Z");
        let berlin = Tz::Europe__Berlin;
        for (then, shown) in [
            ("2027-03-28T00:30:00Z", "01:30:00"),
            ("2027-03-28T01:00:00Z", "03:00:00"),
            ("2027-03-27T22:30:00Z", "Sat 27 Mar 23:30"),
            ("2026-03-27T22:30:00Z", "27 Mar 2026 23:30"),
        ] {
            assert_eq!(short(at(then), now, berlin), shown);
        }
        let element = clock(at("2027-03-28T00:30:00Z"), now, berlin).into_string();
        assert!(element.contains("datetime=\"2027-03-28T00:30:00Z\""), "{element}");
        assert!(element.contains("title=\"2027-03-28 00:30:00 UTC\""), "{element}");
    }

    #[test]
    fn a_distance_is_told_with_its_direction() {
        let now = Timestamp::from_secs(1_000);
        assert_eq!(distance(Timestamp::from_secs(1_250), now), "in 4 min 10 s");
        assert_eq!(distance(Timestamp::from_secs(400), now), "10 min ago");
        assert_eq!(distance(now, now), "in 0 s");
    }

    #[test]
    fn a_clock_change_between_two_times_is_told() {
        let told = |from, until, zone| clock_change(at(from), at(until), zone).map(|change| change.sentence());
        let spring = told("2027-03-27T02:00:00Z", "2027-03-28T02:00:00Z", Tz::Europe__Berlin).unwrap();
        assert_eq!(spring, "The clock of Europe/Berlin goes forward by 60 minutes: Sun 28 Mar 2027 03:00:00 CEST.");
        let autumn = told("2027-10-30T02:00:00Z", "2027-10-31T02:00:00Z", Tz::Europe__Berlin).unwrap();
        assert!(autumn.contains("goes back by 60 minutes: Sun 31 Oct 2027 02:00:00 CET"), "{autumn}");
        assert_eq!(told("2027-03-28T02:00:00Z", "2027-03-29T02:00:00Z", Tz::Europe__Berlin), None);
        assert_eq!(told("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", Tz::UTC), None);
        assert!(told("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", Tz::Europe__Berlin).is_some(), "one of two");
    }
}
