//! The last 24 hours and the next hour as charts, each with the same as a table.

use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::time::Timestamp;
use carillon_store::{ActivityBucket, ListedJob, OutcomeCounts};
use chrono::{Duration as Delta, DurationRound, Timelike};
use maud::{Markup, html};

use crate::page::chart::bars::{Columns, Series, columns};
use crate::page::screens::parts::{coming, grouped};
use crate::page::visit::Visit;
use crate::page::zone::wall;

const BUCKET: Duration = Duration::from_secs(300);
const BUCKETS: usize = 288;
const MINUTES: usize = 60;
/// How many due times of one job are looked up.
const LOOKED_UP: usize = 6;

/// How many starts before `end` fall into each of the next 60 minutes. A few due times of each job are looked up, as all of them would take long.
/// After those it is taken to go on at the same pace.
pub(super) fn starts_of_next_hour<'a>(
    visit: &Visit,
    jobs: impl Iterator<Item = &'a ListedJob>,
    end: Timestamp,
) -> Vec<f64> {
    let mut minutes = vec![0.0; MINUTES];
    for job in jobs {
        let first = coming(&job.view, LOOKED_UP);
        let pace = match first.as_slice() {
            [from, .., until] if first.len() == LOOKED_UP => until.since(*from) / (LOOKED_UP as u32 - 1),
            _ => Duration::ZERO,
        };
        let last = first.last().copied().filter(|_| !pace.is_zero());
        let going_on = std::iter::successors(last.map(|last| last + pace), |due| Some(*due + pace));
        for due in first.iter().copied().chain(going_on).take_while(|due| *due < end).filter(|due| *due >= visit.now) {
            if let Some(count) = minutes.get_mut((due.since(visit.now).as_secs() / 60) as usize) {
                *count += 1.0;
            }
        }
    }
    minutes
}

/// `known` is the share of the hour that is counted.
pub(super) fn next_hour_chart(visit: &Visit, starts: &[f64], count: u64, known: f64) -> Markup {
    let most = starts.iter().copied().fold(0.0, f64::max);
    let labels = [0, 15, 30, 45].map(|minute| {
        let at = visit.now + Duration::from_secs(minute * 60);
        (minute as f64 / 60.0, wall(at, visit.zone).format("%H:%M").to_string())
    });
    columns(&Columns {
        sentence: format!("About {} starts within the next hour, {} in the busiest minute.", grouped(count), most),
        series: vec![Series { class: "c-coming", values: starts.to_vec() }],
        points: Vec::new(),
        known,
        labels: labels.to_vec(),
        size: (1_200.0, 48.0),
    })
}

pub(super) fn section(visit: &Visit, activity: &[ActivityBucket]) -> Markup {
    let mut total = OutcomeCounts::default();
    activity.iter().for_each(|bucket| total.merge(&bucket.outcomes));
    let bad = total.failed + total.timed_out + total.lost;
    let lag_max = activity.iter().map(|bucket| bucket.lag_max_ms).max().unwrap_or(0);
    html! {
        section.group {
            div.spread {
                h2 { "Last 24 hours" }
                span.note {
                    (grouped(total.succeeded)) " succeeded, "
                    @if bad > 0 { a.fault href=(visit.links.to("/jobs?outcome=failed")) { (grouped(bad)) " failed, timed out or lost" } } @else { "none failed" }
                    @if total.skipped > 0 { ", " (grouped(total.skipped)) " did not run" }
                    @if total.cancelled > 0 { ", " (grouped(total.cancelled)) " cancelled" }
                    @if lag_max > 0 { "; at most " (spoken(Duration::from_millis(lag_max))) " late" }
                }
            }
            @if activity.is_empty() { p.muted { "Nothing ended within a day." } }
            @else {
                (chart(visit, activity, &total))
                details.program { summary { "The same as a table" } (table(visit, activity)) }
            }
        }
    }
}

fn chart(visit: &Visit, activity: &[ActivityBucket], total: &OutcomeCounts) -> Markup {
    let end = visit.now.as_ms() / BUCKET.as_millis() as i64;
    let mut slots = vec![ActivityBucket::default(); BUCKETS];
    for bucket in activity {
        let back = end - bucket.begins_at.as_ms() / BUCKET.as_millis() as i64;
        if let Some(slot) = usize::try_from(back).ok().and_then(|back| (BUCKETS - 1).checked_sub(back)) {
            slots[slot] = *bucket;
        }
    }
    let values = |of: fn(&OutcomeCounts) -> u64| slots.iter().map(|slot| of(&slot.outcomes) as f64).collect::<Vec<_>>();
    let series = vec![
        Series { class: "c-bad", values: values(|counts| counts.failed + counts.timed_out + counts.lost) },
        Series { class: "c-ok", values: values(|counts| counts.succeeded) },
        Series { class: "c-skipped", values: values(|counts| counts.skipped + counts.cancelled) },
    ];
    let lag_max = slots.iter().map(|slot| slot.lag_max_ms).max().unwrap_or(0).max(1_000) as f64;
    let points = slots.iter().map(|slot| (slot.started > 0).then_some(slot.lag_max_ms as f64 / lag_max)).collect();
    let sentence = format!(
        "Within 24 hours {} succeeded, {} failed, timed out or were lost, {} did not run.",
        grouped(total.succeeded),
        grouped(total.failed + total.timed_out + total.lost),
        grouped(total.skipped + total.cancelled)
    );
    let chart = Columns { sentence, series, points, known: 1.0, labels: hours(visit), size: (1_200.0, 72.0) };
    html! {
        (columns(&chart))
        p.legend.small {
            span.o.o-succeeded { (crate::page::outcome::Mark::Succeeded.icon()) "succeeded" } " "
            span.o.o-failed { (crate::page::outcome::Mark::Failed.icon()) "failed, at the bottom" } " "
            span.o.o-skipped { (crate::page::outcome::Mark::Skipped.icon()) "did not run" } " "
            span.muted { "– longest delay of a start" }
        }
    }
}

/// A label at every third full hour of the reader's zone.
fn hours(visit: &Visit) -> Vec<(f64, String)> {
    let here = wall(visit.now, visit.zone);
    let Ok(full) = here.duration_trunc(Delta::hours(1)) else { return Vec::new() };
    let labels = (0..24).map(|back| full - Delta::hours(back)).filter(|hour| hour.hour().is_multiple_of(3));
    labels
        .map(|hour| {
            let back = visit.now.since(Timestamp::from_ms(hour.timestamp_millis())).as_secs_f64();
            (1.0 - back / 86_400.0, hour.format("%H:%M").to_string())
        })
        .filter(|(share, _)| *share >= 0.0)
        .collect()
}

fn table(visit: &Visit, activity: &[ActivityBucket]) -> Markup {
    let mut hours: std::collections::BTreeMap<i64, ActivityBucket> = std::collections::BTreeMap::new();
    for bucket in activity {
        let hour = hours.entry(bucket.begins_at.as_ms().div_euclid(3_600_000)).or_default();
        hour.outcomes.merge(&bucket.outcomes);
        hour.lag_max_ms = hour.lag_max_ms.max(bucket.lag_max_ms);
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="The last 24 hours" { table {
            thead { tr { th scope="col" { "Hour" } th.n scope="col" { "Succeeded" } th.n scope="col" { "Failed" } th.n scope="col" { "Timed out" } th.n scope="col" { "Lost" } th.n scope="col" { "Did not run" } th.n scope="col" { "Cancelled" } th.n scope="col" { "Latest start" } } }
            tbody { @for (hour, bucket) in hours.iter().rev() {
                @let counts = &bucket.outcomes;
                tr {
                    td.nowrap { (wall(Timestamp::from_ms(hour * 3_600_000), visit.zone).format("%a %H:%M")) }
                    @for count in [counts.succeeded, counts.failed, counts.timed_out, counts.lost, counts.skipped, counts.cancelled] { td.n { (grouped(count)) } }
                    td.n { (spoken(Duration::from_millis(bucket.lag_max_ms))) }
                }
            } }
        } }
    }
}
