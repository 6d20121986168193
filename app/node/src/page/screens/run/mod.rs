//! A run: why it ran or did not, its times, its attempts and its output.

mod actions;
mod ansi;
mod follow;
mod output;
mod span;

pub(crate) use actions::cancel;
pub(crate) use follow::follow;

use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::id::RunId;
use carillon_domain::run::{RunRecord, Trigger};
use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_store::{ControlError, RunStage, RunView};
use maud::{Markup, html};

use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::layout::View;
use crate::page::outcome::of_run;
use crate::page::params::Params;
use crate::page::screens::parts::{csrf, job_link, said};
use crate::page::screens::why;
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, full};
use crate::why::{Surroundings, why_run};

/// How many attempts of one due time are listed.
const ATTEMPTS: usize = 20;
/// How old the nodes and the losses of commits may be.
const A_SECOND: Duration = Duration::from_secs(1);

/// A run that the caller may see; one of another namespace is not there.
pub(crate) async fn visible(visit: &Visit, segment: &str) -> Result<RunView, Fault> {
    let run: RunId = segment.parse().map_err(|error| Problem::field("id", format!("{error}")))?;
    let view = visit.api.store.run(run).await?;
    if visit.caller.sees(&view.key.namespace) {
        return Ok(view);
    }
    Err(ControlError::Refused(Refusal::NoRun(run)).into())
}

/// The parts of a run that every stage has.
pub(super) struct Outline {
    pub due_at: Timestamp,
    pub trigger: Trigger,
    pub attempt: u32,
    pub claimed_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl Outline {
    pub fn of(stage: &RunStage) -> Self {
        match stage {
            RunStage::Waiting { due_at, trigger, attempt, .. } => {
                let (claimed_at, started_at, finished_at) = (None, None, None);
                Self { due_at: *due_at, trigger: *trigger, attempt: *attempt, claimed_at, started_at, finished_at }
            }
            RunStage::Running { held, .. } => Self {
                due_at: held.firing.due_at,
                trigger: held.firing.trigger,
                attempt: held.firing.attempt,
                claimed_at: None,
                started_at: held.started_at,
                finished_at: None,
            },
            RunStage::Recorded { record, .. } => Self {
                due_at: record.due_at,
                trigger: record.trigger,
                attempt: record.attempt,
                claimed_at: record.claimed_at(),
                started_at: record.started_at,
                finished_at: Some(record.finished_at),
            },
        }
    }
}

/// The page of a run.
pub(crate) async fn show(visit: &Visit, segment: &str) -> Result<View, Fault> {
    let view = visible(visit, segment).await?;
    let outline = Outline::of(&view.stage);
    let (sentence, attempts) = story(visit, &view, &outline).await?;
    let output = output::section(visit, &view).await?;
    let body = html! {
        (head(visit, &view, &outline))
        (said(visit))
        p.sentence.medium { (sentence) }
        (span::bar(visit, &outline))
        div.columns-2[attempts.len() > 1] {
            section.group { h2 { "Facts" } (facts(visit, &view, &outline)) }
            @if attempts.len() > 1 { section.group { h2 { "Attempts" } (attempt_list(visit, &view, &attempts)) } }
        }
        (output)
    };
    let moves = !matches!(view.stage, RunStage::Recorded { .. });
    let title = format!("{} · run", view.key.name);
    let page =
        View::new(title, body).otherwise(format!("/v1/runs/{}", view.id), format!("carillon run show {}", view.id));
    let live = Params::default().with("namespace", Some(&view.key.namespace)).with("job", Some(&view.key.name));
    Ok(if moves { page.live(live) } else { page })
}

/// Why it ran or did not, and the attempts. Where nothing ran, the whole story of the due time is told; what is read for that
/// has the attempts, too.
async fn story(visit: &Visit, view: &RunView, outline: &Outline) -> Result<(String, Vec<RunView>), Fault> {
    let ran = outline.started_at.is_some() && !output::is_lost_with_its_node(&view.stage);
    if !ran && outline.trigger != Trigger::Manual {
        let (store, engine) = (&visit.api.store, &visit.api.engine);
        let around = async || {
            visit.kept(A_SECOND, "surroundings".to_owned(), async || Ok(Surroundings::read(&**store).await?)).await
        };
        // A job that is deleted has no story any more; its record speaks for itself.
        if let Ok((told, runs)) = why_run(&**store, engine, view, outline.due_at, around).await {
            let records = runs.into_iter().filter_map(|run| match run.stage {
                RunStage::Recorded { record, .. } => Some(*record),
                RunStage::Waiting { .. } | RunStage::Running { .. } => None,
            });
            return Ok((told.sentence, attempts(view, outline, records.collect())));
        }
    }
    let mut records = Vec::new();
    if has_attempts(view, outline) {
        let due = outline.due_at..outline.due_at + Timestamp::TICK;
        let mut found = visit.api.store.runs_between(&[view.job_id], due, ATTEMPTS).await?;
        records = found.remove(&view.job_id).unwrap_or_default();
    }
    Ok((why::sentence(&view.stage), attempts(view, outline, records)))
}

/// Whether its firing may have had several attempts.
fn has_attempts(view: &RunView, outline: &Outline) -> bool {
    match view.stage {
        RunStage::Recorded { .. } => outline.started_at.is_some(),
        RunStage::Waiting { .. } | RunStage::Running { .. } => outline.attempt > 1,
    }
}

/// The attempts of its firing among the records of its due time, the first one first. One that lives is the run itself.
fn attempts(view: &RunView, outline: &Outline, mut records: Vec<RunRecord>) -> Vec<RunView> {
    if !has_attempts(view, outline) {
        return Vec::new();
    }
    records.retain(|record| record.trigger == outline.trigger);
    records.sort_by_key(|record| (record.attempt, record.id));
    records.drain(..records.len().saturating_sub(ATTEMPTS));
    let of_record = |record: RunRecord| RunView {
        id: record.id,
        stage: RunStage::Recorded { record: Box::new(record), output_truncated: false },
        ..view.clone()
    };
    let living = (!matches!(view.stage, RunStage::Recorded { .. })).then(|| view.clone());
    records.into_iter().map(of_record).chain(living).collect()
}

fn head(visit: &Visit, view: &RunView, outline: &Outline) -> Markup {
    let here = visit.links.run(view.id);
    let alive = !matches!(view.stage, RunStage::Recorded { .. });
    let cancelling = matches!(view.stage, RunStage::Running { cancelling: true, .. });
    html! {
        div.spread {
            div.group {
                h1 { (job_link(visit, &view.key)) }
                p.row {
                    (of_run(&view.stage).badge())
                    span { "due " (clock(outline.due_at, visit.now, visit.zone)) }
                    @if let Some(node) = &view.node { span.muted { "on " (node) } }
                }
            }
            @if visit.may(Role::Operator) {
                div.row.actions {
                    @if alive && !cancelling {
                        form method="post" action=(format!("{here}/cancel")) { (csrf(visit)) button.danger { "Cancel" } }
                    }
                    a.button href=(format!("{}/run", visit.links.job(&view.key))) data-do="run" { "Run again" }
                }
            }
        }
    }
}

fn facts(visit: &Visit, view: &RunView, outline: &Outline) -> Markup {
    let time = |at: Timestamp| html! { time datetime=(at.to_string()) title=(crate::page::zone::utc(at)) { (full(at, visit.zone)) } };
    html! {
        dl.facts {
            dt { "Run" } dd { code { (view.id) } }
            dt { "Due" } dd { (time(outline.due_at)) }
            @if let (Some(at), Some(from)) = (outline.claimed_at, outline.started_at) {
                dt { "Claimed" } dd { (time(at)) ", " (spoken(from.since(at))) " before it started" }
            }
            @if let Some(at) = outline.started_at { dt { "Started" } dd { (time(at)) ", " (spoken(at.since(outline.due_at))) " after it was due" } }
            @if let (Some(from), Some(at)) = (outline.started_at, outline.finished_at) {
                dt { "Ended" } dd { (time(at)) ", after " (spoken(at.since(from))) }
            }
            dt { "Trigger" } dd { (outline.trigger.as_str()) ", attempt " (outline.attempt) }
            @if let RunStage::Recorded { record, .. } = &view.stage {
                @if let Some(code) = record.exit_code { dt { "Exit code" } dd { (code) } }
                @if let Some(signal) = record.signal { dt { "Signal" } dd { (signal) } }
                @if let Some(ms) = record.usage.cpu_ms { dt { "CPU time" } dd { (spoken(Duration::from_millis(ms))) } }
                @if let Some(kib) = record.usage.peak_memory_kib { dt { "Peak memory" } dd { (memory(kib)) } }
                @if record.count > 1 {
                    dt { "Due times" } dd { (record.count) ", from " (time(record.first_due_at)) }
                }
                @if let Some(token) = record.fencing_token { dt { "Fencing token" } dd { (token) } }
            }
            @if let RunStage::Running { held, .. } = &view.stage { dt { "Fencing token" } dd { (held.fencing_token) } }
        }
    }
}

/// Memory with one decimal in the largest unit of which it has one.
fn memory(kib: u64) -> String {
    let in_units = |unit: u64, name: &str| format!("{}.{} {name}", kib / unit, kib % unit * 10 / unit);
    match kib {
        0..=1_023 => format!("{kib} KiB"),
        1_024..=1_048_575 => in_units(1_024, "MiB"),
        _ => in_units(1_048_576, "GiB"),
    }
}

fn attempt_list(visit: &Visit, view: &RunView, attempts: &[RunView]) -> Markup {
    html! {
        ol.attempts data-list {
            @for run in attempts {
                @let outline = Outline::of(&run.stage);
                li {
                    (of_run(&run.stage).badge()) " "
                    @if run.id == view.id { strong { "Attempt " (outline.attempt) } }
                    @else { a href=(visit.links.run(run.id)) { "Attempt " (outline.attempt) } }
                    @if let (Some(from), Some(at)) = (outline.started_at, outline.finished_at) { span.muted { " " (spoken(at.since(from))) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_told_in_the_largest_unit() {
        let told = [0, 1_023, 1_024, 3_993, 1_048_575, 1_572_864].map(super::memory);
        assert_eq!(told, ["0 KiB", "1023 KiB", "1.0 MiB", "3.8 MiB", "1023.9 MiB", "1.5 GiB"]);
    }
}
