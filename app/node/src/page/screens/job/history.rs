//! The history of a job: a table of its due times, and how long they took and how late they began.

use std::time::Duration;

use carillon_domain::duration::{coarse, spoken};
use carillon_domain::run::RunRecord;
use carillon_store::{JobKey, JobView, RunQuery, RunStage, RunView};
use maud::{Markup, html};

use crate::page::chart::bars::{Columns, Series, columns};
use crate::page::outcome::{Mark, of_run};
use crate::page::screens::parts::{grouped, news, running};
use crate::page::screens::why;
use crate::page::usual;
use crate::page::visit::{Fault, Visit};
use crate::page::zone::clock;
use carillon_json::{read_run_cursor, run_cursor};

/// How many rows a page has.
const ROWS: usize = 50;
/// How many runs the charts show.
const CHARTED: usize = 200;

/// Due times, newest first. The first page is made of the records that the strip shows; older ones are asked for.
pub(super) async fn table(visit: &Visit, key: &JobKey, view: &JobView, records: &[RunRecord]) -> Result<Markup, Fault> {
    let cursor = visit.params.get("cursor").and_then(read_run_cursor);
    let (items, next): (Vec<RunView>, Option<String>) = match cursor {
        Some(after) => {
            let query =
                RunQuery { job_id: Some(view.state.id), after: Some(after), limit: ROWS, ..RunQuery::default() };
            let page = visit.api.store.runs(&query).await?;
            (page.items, page.next.as_ref().map(run_cursor))
        }
        None => first_page(key, view, records),
    };
    let link =
        |next: &str| format!("{}#runs", visit.links.with(&visit.path, &visit.state().with("cursor", Some(next))));
    Ok(html! {
        @if items.is_empty() { p.muted { "No due time has passed yet." } }
        @else {
            @if cursor.is_none() { (news(&visit.here("cursor", None))) }
            div.scroll { table.runs {
            thead { tr {
                th scope="col" { "Outcome" } th scope="col" { "Due" } th scope="col" { "Why" }
                th.n scope="col" { "Late by" } th.n scope="col" { "Took" } th scope="col" { "Trigger" } th.n scope="col" { "Attempt" }
            } }
            tbody data-rows="runs" { @for item in &items { (row(visit, item)) } }
        } } }
        nav.row aria-label="Pages of runs" {
            @if cursor.is_some() { a.button href=(format!("{}#runs", visit.here("cursor", None))) { "Newest" } }
            @if let Some(next) = &next { a.button rel="next" href=(link(next)) { "Older" } }
        }
    })
}

fn first_page(key: &JobKey, view: &JobView, records: &[RunRecord]) -> (Vec<RunView>, Option<String>) {
    let run_view = |id, stage, node| RunView { id, job_id: view.state.id, key: key.clone(), node, stage, params: None };
    let running = running(view).map(|held| {
        let stage = RunStage::Running { held: *held, cancelling: view.state.cancel.is_some() };
        run_view(held.run, stage, view.node.clone())
    });
    let recorded = records.iter().take(ROWS).map(|record| {
        let stage = RunStage::Recorded { record: Box::new(record.clone()), output_truncated: false };
        run_view(record.id, stage, None)
    });
    let last = records.get(ROWS - 1).filter(|_| records.len() > ROWS);
    let next = last.map(|record| {
        run_cursor(&carillon_store::RunCursor { due_at: record.due_at, attempt: record.attempt, run: record.id })
    });
    (running.into_iter().chain(recorded).collect(), next)
}

fn row(visit: &Visit, item: &RunView) -> Markup {
    let mark = of_run(&item.stage);
    let (due_at, trigger, attempt) = match &item.stage {
        RunStage::Waiting { due_at, trigger, attempt, .. } => (*due_at, *trigger, *attempt),
        RunStage::Running { held, .. } => (held.firing.due_at, held.firing.trigger, held.firing.attempt),
        RunStage::Recorded { record, .. } => (record.due_at, record.trigger, record.attempt),
    };
    let (lag, duration) = match &item.stage {
        RunStage::Recorded { record, .. } => (record.lag_ms, usual::duration(record)),
        _ => (None, None),
    };
    html! {
        tr id=(format!("run:{}", item.id)) {
            td { (mark.badge()) }
            td.nowrap {
                a href=(visit.links.run(item.id)) data-do="output" { (clock(due_at, visit.now, visit.zone)) }
                @if let RunStage::Recorded { record, .. } = &item.stage { @if record.count > 1 {
                    span.muted { " and " (grouped(record.count - 1)) " before" }
                } }
            }
            td.why { @if mark != Mark::Succeeded { (why::sentence(&item.stage)) } }
            td.n { @if let Some(lag) = lag { (spoken(Duration::from_millis(lag.unsigned_abs()))) } }
            td.n {
                @match (&item.stage, duration) {
                    (RunStage::Running { held, .. }, _) => @if let Some(started_at) = held.started_at {
                        time data-since datetime=(started_at.to_string()) { (coarse(visit.now.since(started_at))) }
                    }
                    (_, Some(duration)) => (spoken(duration)),
                    _ => {}
                }
            }
            td { (trigger.as_str()) }
            td.n { @if attempt > 1 { (attempt) } }
        }
    }
}

/// Durations and lags of the newest runs, oldest on the left.
pub(super) fn durations(records: &[RunRecord]) -> Markup {
    let started: Vec<&RunRecord> = records.iter().filter(|record| record.started_at.is_some()).take(CHARTED).collect();
    if started.len() < 2 {
        return html! {};
    }
    let ordered = || started.iter().rev();
    let value = |record: &&RunRecord, mark: Mark| {
        let is = Mark::from(record.status);
        let of_kind = if mark == Mark::Succeeded { is == mark } else { is != Mark::Succeeded };
        if of_kind { usual::duration(record).unwrap_or_default().as_secs_f64() } else { 0.0 }
    };
    let series = [(Mark::Succeeded, "c-ok"), (Mark::Failed, "c-bad")]
        .map(|(mark, class)| Series { class, values: ordered().map(|record| value(record, mark)).collect() });
    let durations: Vec<Duration> = started.iter().filter_map(|record| usual::duration(record)).collect();
    let lags: Vec<Duration> = started
        .iter()
        .filter_map(|record| record.lag_ms)
        .map(|lag| Duration::from_millis(lag.max(0).unsigned_abs()))
        .collect();
    let of_durations = Columns {
        sentence: format!("Durations of the last {} runs: {}.", started.len(), spread(&durations)),
        series: series.to_vec(),
        known: 1.0,
        points: Vec::new(),
        labels: Vec::new(),
        size: (600.0, 72.0),
    };
    let lag_values = ordered().map(|record| record.lag_ms.unwrap_or(0).max(0) as f64).collect();
    let of_lags = Columns {
        sentence: format!("Lags of the last {} runs: {}.", started.len(), spread(&lags)),
        series: vec![Series { class: "c-lag", values: lag_values }],
        known: 1.0,
        points: Vec::new(),
        labels: Vec::new(),
        size: (600.0, 72.0),
    };
    html! {
        div.columns-2 {
            section.group { div.spread { h2 { "Duration" } span.note { (spread(&durations)) } } (columns(&of_durations)) }
            section.group { div.spread { h2 { "Late by" } span.note { (spread(&lags)) } } (columns(&of_lags)) }
        }
    }
}

/// Median, the slowest tenth and the longest.
fn spread(durations: &[Duration]) -> String {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let at = |share: usize| sorted.get((sorted.len() * share / 100).min(sorted.len().saturating_sub(1))).copied();
    match (at(50), at(90), sorted.last()) {
        (Some(median), Some(slow), Some(most)) => {
            format!("median {}, 9 of 10 within {}, longest {}", spoken(median), spoken(slow), spoken(*most))
        }
        _ => "nothing ran".to_owned(),
    }
}
