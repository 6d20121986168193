//! The timeline: what runs at once?

mod drawing;
mod lanes;

use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::time::Timestamp;
use maud::{Markup, html};

use self::lanes::{Bar, LANES, Lane, Range};
use crate::page::layout::{View, copyable};
use crate::page::outcome::Mark;
use crate::page::params::Params;
use crate::page::screens::parts::{grouped, job_link, plural};
use crate::page::screens::search::{Search, field, is_narrowed};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, clock_change, full, wall};

/// How many hours may be chosen.
const HOURS: [u32; 6] = [1, 3, 6, 12, 24, 48];
const USUAL_HOURS: u32 = 6;
const LONGEST: Duration = Duration::from_secs(48 * 3_600);
/// The parameters that choose jobs.
const NARROWING: [&str; 3] = ["q", "namespace", "label"];
/// How many rows the table has.
const MOST_ROWS: usize = 500;
/// How many labels stand under the time, and into how many parts the range can be cut by links.
const LABELS: u32 = 6;
/// The shortest range.
const SHORTEST: Duration = Duration::from_secs(60);
/// Shorter ranges have labels with seconds.
const IN_SECONDS: Duration = Duration::from_secs(600);

/// The screen.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let range = range(visit);
    let found = lanes::lanes(visit, range).await?;
    let (lanes, more) = (&found.lanes, found.more);
    let as_table = visit.params.get("as") == Some("table");
    let body = html! {
        div.spread {
            h1 { "Timeline" }
            a href=(visit.here("as", (!as_table).then_some("table"))) { @if as_table { "The same as a drawing" } @else { "The same as a table" } }
        }
        (filters(visit))
        (steps(visit, range))
        @if lanes.is_empty() { (empty(visit)) }
        @else if as_table { (table(visit, lanes)) }
        @else { (drawn(visit, lanes, range)) }
        @if more { p.note { "These are the " (LANES) " jobs that come up first. Narrow them by name, namespace or label." } }
    };
    let api = format!(
        "/v1/runs?namespace=*&since={}&until={}",
        range.from.to_rfc3339_short(),
        range.until.to_rfc3339_short()
    );
    let view = View::new("Timeline", body).otherwise(api, "carillon job runs NAME");
    let shows_now = range.from <= visit.now && visit.now <= range.until;
    Ok(if shows_now { view.live(Params::default().with("namespace", Some("*"))) } else { view })
}

/// The range of the address; around now where it names none.
fn range(visit: &Visit) -> Range {
    let hours = hours(visit);
    let length = Duration::from_secs(u64::from(hours) * 3_600);
    let given = visit.params.get("from").and_then(Timestamp::parse_rfc3339);
    // Whole minutes, so that a page that looks again stays the same for a while.
    let minute = Timestamp::from_secs(visit.now.as_ms() / 60_000 * 60);
    let from = given.unwrap_or(minute - length * 2 / 3).clamp(Timestamp::EPOCH, Timestamp::MAX - length);
    // A part of the range that somebody chose has an end of its own.
    let until = visit.params.get("until").and_then(Timestamp::parse_rfc3339).filter(|_| given.is_some());
    let length = until.map_or(length, |until| until.since(from).clamp(SHORTEST, LONGEST));
    Range { from, until: from + length }
}

fn hours(visit: &Visit) -> u32 {
    let given = visit.params.get("hours").and_then(|text| text.parse().ok());
    given.filter(|hours| HOURS.contains(hours)).unwrap_or(USUAL_HOURS)
}

fn filters(visit: &Visit) -> Markup {
    let hours = hours(visit);
    let fields = html! {
        (field(visit, "label", "label=value", "Label"))
        select name="hours" aria-label="How long" {
            @for one in HOURS { option value=(one) selected[one == hours] { (one) " " (plural(one as usize, "hour", "hours")) } }
        }
    };
    let text = ("q", "Search names");
    Search { path: "/timeline", text, fields, narrowing: &NARROWING, keeps: &["from", "as", "zone"] }.form(visit)
}

/// Earlier and later by half of the range, and its parts.
fn steps(visit: &Visit, range: Range) -> Markup {
    let (half, part) = (range.length() / 2, range.length() / LABELS);
    let is_part = visit.params.get("until").is_some();
    let to = |from: Timestamp, until: Option<Timestamp>| {
        let text = |at: Timestamp| at.to_rfc3339_short();
        let state = visit.state().with("from", Some(&text(from))).with("until", until.map(text).as_deref());
        visit.links.with(&visit.path, &state)
    };
    let shifted = |from: Timestamp| to(from, is_part.then(|| from + range.length()));
    html! {
        nav.row aria-label="Range" {
            a.button rel="prev" href=(shifted((range.from - half).max(Timestamp::EPOCH))) { "← Earlier" }
            @if visit.params.get("from").is_some() {
                a.button href=(visit.links.with(&visit.path, &visit.state().with("from", None).with("until", None))) { "Now" }
            }
            a.button rel="next" href=(shifted(range.from + half)) { "Later →" }
            @if is_part { a.button href=(to(range.from, None)) { "Wider" } }
            span.muted { (full(range.from, visit.zone)) " to " (clock(range.until, range.from, visit.zone)) }
        }
        @if part >= SHORTEST {
            nav.row.small aria-label="Parts of the range" {
                span.muted { "Closer" }
                @for n in 0..LABELS {
                    @let from = range.from + part * n;
                    a href=(to(from, Some(from + part))) { (label(visit, range, from)) "–" (label(visit, range, from + part)) }
                }
            }
        }
    }
}

/// An instant within a range.
fn label(visit: &Visit, range: Range, at: Timestamp) -> String {
    wall(at, visit.zone).format(if range.length() < IN_SECONDS { "%H:%M:%S" } else { "%H:%M" }).to_string()
}

fn drawn(visit: &Visit, lanes: &[Lane], range: Range) -> Markup {
    let most = drawing::at_once(lanes, range);
    let limit = visit.api.engine.counts().max_executing;
    let peak = most.iter().copied().max().unwrap_or(0);
    let labels = (0..=LABELS).map(|n| {
        let share = f64::from(n) / f64::from(LABELS);
        let at = range.from + range.length() * n / LABELS;
        (share, label(visit, range, at))
    });
    let change = clock_change(range.from, range.until, visit.zone);
    html! {
        div.timeline {
            div.head { strong { "At once" } span.note { "at most " (grouped(peak as u64)) @if limit > 0 { ", a node runs " (grouped(limit as u64)) } } }
            (drawing::at_once_chart(&most, limit, labels.collect()))
            ul.names data-list { @for lane in lanes { li { (job_link(visit, &lane.key)) } } }
            (drawing::lanes(lanes, range, range.share(visit.now), change.as_ref()))
        }
        p.legend.small {
            @for mark in [Mark::Succeeded, Mark::Failed, Mark::TimedOut, Mark::Cancelled, Mark::Lost, Mark::Skipped, Mark::Running] { (mark.badge()) " " }
            span.muted { "Outlines are to come, as long as they usually take. Drag over the lanes to look closer." }
            @if let Some(change) = change { span { "Dashed: " (change.sentence()) } }
            @if lanes.iter().any(|lane| lane.more) { span.muted { "Of a job that runs very often, the newest runs are drawn." } }
        }
    }
}

fn table(visit: &Visit, lanes: &[Lane]) -> Markup {
    let mut rows: Vec<(&Lane, &Bar)> =
        lanes.iter().flat_map(|lane| lane.bars.iter().map(move |bar| (lane, bar))).collect();
    rows.sort_by_key(|(lane, bar)| (bar.from, &lane.key));
    let cut = rows.len() > MOST_ROWS;
    rows.truncate(MOST_ROWS);
    html! {
        @if rows.is_empty() { p.muted { "Nothing ran in this range, and nothing is to come in it." } }
        @else { div.scroll { table {
            thead { tr { th scope="col" { "From" } th scope="col" { "Job" } th scope="col" { "Outcome" } th.n scope="col" { "Took" } th scope="col" { "Until" } } }
            tbody data-list { @for (lane, bar) in rows { tr {
                td.nowrap { (clock(bar.from, visit.now, visit.zone)) }
                td.name { (job_link(visit, &lane.key)) }
                td { @if bar.mark == Mark::Waiting { span.o.o-waiting { (Mark::Waiting.icon()) "to come" } } @else { (bar.mark.badge()) } }
                td.n { @match bar.mark {
                    Mark::Skipped => "–",
                    Mark::Waiting => { span.muted { "usually " (spoken(bar.until.since(bar.from))) } }
                    _ => (spoken(bar.until.since(bar.from))),
                } }
                td.nowrap { @if bar.mark != Mark::Skipped { (clock(bar.until, visit.now, visit.zone)) } }
            } } }
        } } }
        @if cut { p.note { "These are the first " (MOST_ROWS) ". Choose fewer hours, or fewer jobs." } }
    }
}

fn empty(visit: &Visit) -> Markup {
    let filtered = is_narrowed(visit, &NARROWING);
    html! {
        div.empty {
            @if filtered { h2 { "No job matches." } p { a href=(visit.links.to("/timeline")) { "Show all jobs" } } }
            @else { h2 { "No jobs yet." } p { "Add one, and its runs stand here:" } (copyable("carillon job add hello --schedule '* * * * *' -- echo hello")) }
        }
    }
}
