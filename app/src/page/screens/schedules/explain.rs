//! A schedule in words, its next times, and the clock changes between them.

use carillon_domain::schedule::{Options, Schedule};
use carillon_domain::time::Timestamp;
use chrono::Offset;
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::json::{FieldError, schedule_fault};
use crate::page::layout::sentence;
use crate::page::visit::Visit;
use crate::page::zone::{full, relative, utc, wall};

/// How many next times are shown.
const SHOWN: usize = 10;

/// A schedule that somebody asks about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Its text.
    pub schedule: &'a str,
    /// Its zone, if one is given beside the text.
    pub timezone: Option<&'a str>,
    /// The text that `H` hashes: `namespace/name`.
    pub key: &'a str,
}

impl Asked<'_> {
    /// Reads it; a refused one is a fault of the field in which it stands.
    pub fn read(&self) -> Result<Schedule, FieldError> {
        let options = Options { timezone: self.timezone, hash_key: self.key, ..Options::default() };
        Schedule::parse(self.schedule, &options).map_err(|error| schedule_fault(&error))
    }
}

/// The explanation of a schedule that was read.
pub(crate) fn explained(visit: &Visit, schedule: &Schedule) -> Markup {
    let due = std::iter::successors(schedule.next_after(visit.now), |due| schedule.next_after(*due));
    let due: Vec<Timestamp> = due.take(SHOWN).collect();
    let own: Tz = schedule.timezone().parse().unwrap_or(Tz::UTC);
    let zones: Vec<Tz> = if own == visit.zone { vec![own] } else { vec![visit.zone, own] };
    html! {
        p.medium { (schedule.describe()) }
        @if due.is_empty() { p.say.warn { "It is not due any more." } }
        @else { div.scroll { table.next {
            thead { tr {
                @for zone in &zones { th scope="col" { (zone.name()) @if zones.len() > 1 && *zone == visit.zone { " (yours)" } } }
                th.n scope="col" { "From now" }
            } }
            tbody {
                @for (n, at) in due.iter().enumerate() {
                    @let before = if n == 0 { visit.now } else { due[n - 1] };
                    @for change in zones.iter().filter_map(|zone| clock_change(before, *at, *zone)) {
                        tr.change { td colspan=(zones.len() + 1) { p.say.warn { (change) } } }
                    }
                    tr {
                        @for zone in &zones { td { time datetime=(at.to_rfc3339_short()) title=(utc(*at)) { (full(*at, *zone)) } } }
                        td.n { (relative(*at, visit.now)) }
                    }
                }
            }
        } } }
    }
}

/// The fault of a schedule, for the place of its explanation.
pub(crate) fn refused(fault: &FieldError) -> Markup {
    html! { p.fault role="alert" { (sentence(&fault.message)) } }
}

/// The change of a zone's clock between two instants, as a sentence; the first one if there are several.
fn clock_change(after: Timestamp, until: Timestamp, zone: Tz) -> Option<String> {
    let offset_secs = |at: Timestamp| wall(at, zone).offset().fix().local_minus_utc();
    let (mut low, mut high) = (after.as_ms(), until.as_ms());
    // Times that lie far apart have many changes between them; a year that ends as it began has two.
    const HALF_A_MONTH_MS: i64 = 15 * 86_400_000;
    let before = offset_secs(after);
    let mut at = low;
    while at < high && offset_secs(Timestamp::from_ms(at)) == before {
        low = at;
        at = at.saturating_add(HALF_A_MONTH_MS);
    }
    high = at.min(high);
    if offset_secs(Timestamp::from_ms(high)) == before {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset_secs(Timestamp::from_ms(middle)) == before { low = middle } else { high = middle }
    }
    let changed_at = Timestamp::from_ms(high);
    let minutes = (offset_secs(changed_at) - before) / 60;
    let (way, by) = if minutes > 0 { ("forward", minutes) } else { ("back", -minutes) };
    Some(format!("The clock of {} goes {way} by {by} minutes: {}.", zone.name(), full(changed_at, zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_change_between_two_times_is_told() {
        let at = |text| Timestamp::parse_rfc3339(text).unwrap();
        let told = |from, until, zone| clock_change(at(from), at(until), zone);
        let spring = told("2027-03-27T02:00:00Z", "2027-03-28T02:00:00Z", Tz::Europe__Berlin).unwrap();
        assert_eq!(spring, "The clock of Europe/Berlin goes forward by 60 minutes: Sun 28 Mar 2027 03:00:00 CEST.");
        let autumn = told("2027-10-30T02:00:00Z", "2027-10-31T02:00:00Z", Tz::Europe__Berlin).unwrap();
        assert!(autumn.contains("goes back by 60 minutes: Sun 31 Oct 2027 02:00:00 CET"), "{autumn}");
        assert_eq!(told("2027-03-28T02:00:00Z", "2027-03-29T02:00:00Z", Tz::Europe__Berlin), None);
        assert_eq!(told("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", Tz::UTC), None);
        assert!(told("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", Tz::Europe__Berlin).is_some(), "one of two");
    }
}
