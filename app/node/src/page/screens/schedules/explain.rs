//! A schedule in words, its next times, and the clock changes between them.

use carillon_domain::schedule::{Options, Schedule};
use carillon_domain::time::Timestamp;
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::page::layout::sentence;
use crate::page::visit::Visit;
use crate::page::zone::{clock_change, full, relative, utc};
use carillon_json::{FieldError, schedule_fault};

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
        @else { div.scroll tabindex="0" role="region" aria-label="The next due times" { table.next {
            thead { tr {
                @for zone in &zones { th scope="col" { (zone.name()) @if zones.len() > 1 && *zone == visit.zone { " (yours)" } } }
                th.n scope="col" { "From now" }
            } }
            tbody {
                @for (n, at) in due.iter().enumerate() {
                    @let before = if n == 0 { visit.now } else { due[n - 1] };
                    @for change in zones.iter().filter_map(|zone| clock_change(before, *at, *zone)) {
                        tr.change { td colspan=(zones.len() + 1) { p.say.warn { (change.sentence()) } } }
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
