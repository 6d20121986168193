//! The runs that execute now, each against its usual duration.

use std::collections::BTreeMap;

use carillon_domain::duration::{coarse, spoken};
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_store::{Bounded, RunStage, RunView};
use maud::{Markup, html};

use crate::page::screens::parts::{bounded, job_link};
use crate::page::usual::usual;
use crate::page::visit::Visit;

/// How many records of a job tell its usual duration.
pub(super) const RECORDS: usize = 20;
/// How many runs are listed; there may be thousands.
pub(super) const LISTED: usize = 8;

pub(super) fn section(visit: &Visit, running: &Bounded<RunView>, recent: &BTreeMap<JobId, Vec<RunRecord>>) -> Markup {
    let listed = &running.items[..running.items.len().min(LISTED)];
    html! {
        section.group {
            div.spread {
                h2 { "Running now" }
                span.note { a href=(visit.links.to("/jobs?state=executing")) { (bounded(running.items.len(), running.more)) } }
            }
            @if running.items.is_empty() { p.muted { "Nothing runs." } }
            @else { ul.running data-list { @for run in listed {
                (row(visit, run, recent.get(&run.job_id).and_then(|records| usual(records))))
            } } }
        }
    }
}

fn row(visit: &Visit, run: &RunView, usual: Option<std::time::Duration>) -> Markup {
    let started_at = match &run.stage {
        RunStage::Running { held, .. } => held.started_at,
        _ => None,
    };
    html! {
        li id=(format!("run:{}", run.id)) {
            (job_link(visit, &run.key))
            @if let Some(started_at) = started_at {
                a.plain.nowrap href=(visit.links.run(run.id)) {
                    time data-since datetime=(started_at.to_string()) { (coarse(visit.now.since(started_at))) }
                }
                span.usual { @match usual {
                    Some(usual) => {
                        progress aria-label=(format!("Time that {} has run, of its usual duration", run.key.name))
                            data-from=(started_at.to_string()) max=(usual.as_millis().max(1))
                            value=(visit.now.since(started_at).as_millis().min(usual.as_millis().max(1))) {}
                        span.muted.nowrap { "usually " (spoken(usual)) }
                    }
                    None => { span.muted { "no usual duration yet" } }
                } }
            } @else { span {} span {} }
            span.muted.nowrap { @if let Some(node) = &run.node { "on " (node) } }
        }
    }
}
