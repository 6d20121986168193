//! One row of the list of jobs.

use carillon_domain::duration::spoken;
use carillon_domain::run::RunRecord;
use carillon_store::JobView;
use maud::{Markup, html};

use crate::config::Role;
use crate::page::chart::strip::{Facts, Size, strip};
use crate::page::outcome::{Mark, of_job};
use crate::page::screens::parts::{coming, in_words, job_link, key_of};
use crate::page::usual;
use crate::page::visit::Visit;
use crate::page::zone::{clock, relative};

/// How many columns there are.
pub(super) const COLUMNS: usize = 8;

/// The heads of the columns; two of them sort.
pub(super) fn heads(visit: &Visit) -> Markup {
    let by_next = visit.params.get("sort") == Some("next");
    let head = |word: &str, sort: Option<&str>, current: bool| {
        html! {
            th scope="col" aria-sort=[current.then_some("ascending")] {
                a href=(visit.here("sort", sort)) { (word) @if current { " ↑" } }
            }
        }
    };
    html! {
        thead { tr {
            th scope="col" {
                @if visit.may(Role::Operator) { input #select-all type="checkbox" aria-label="Select all rows"; }
            }
            th scope="col" { "State" }
            (head("Job", None, !by_next))
            th scope="col" { "Last 20, next 4" }
            th scope="col" { "Schedule" }
            (head("Next", Some("next"), by_next))
            th.n scope="col" { "Usually" }
            th scope="col" { "Node" }
        } }
    }
}

/// A job.
pub(super) fn row(visit: &Visit, view: &JobView, records: &[RunRecord]) -> Markup {
    let key = key_of(view);
    let id = format!("row:{}/{}", key.namespace, key.name);
    let coming = coming(view, Size::Row.coming());
    let facts = Facts::of(visit, view, records, &coming);
    let mark = of_job(view);
    html! {
        tr id=(id) {
            td {
                @if visit.may(Role::Operator) {
                    input type="checkbox" name="job" value=(format!("{}/{}", key.namespace, key.name)) aria-label=(format!("Select {}", key.name)) data-keep;
                }
            }
            td.state { (mark.badge()) @if mark != Mark::Running { (last(view)) } }
            td.name { (job_link(visit, &key)) }
            td.strip-cell { (strip(&facts, Size::Row)) }
            td.when { span { (in_words(view)) } " " code.muted { (view.job.schedule) } }
            td.nowrap {
                @match (view.pause(), coming.first()) {
                    (Some(pause), _) => { "paused" @if let Some(until) = pause.until { " until " (clock(until, visit.now, visit.zone)) } }
                    (None, Some(next)) => { (relative(*next, visit.now)) " " span.muted { (clock(*next, visit.now, visit.zone)) } }
                    (None, None) => { span.muted { "never" } }
                }
            }
            td.n { @if let Some(usual) = usual::usual(records) { (spoken(usual)) } @else { span.muted { "–" } } }
            td.cut title=[view.node.as_deref()] { @if let Some(node) = &view.node { (node) } }
        }
    }
}

/// The outcome of the last run, where it says more than the state.
fn last(view: &JobView) -> Markup {
    let status = view.state.last_end.map(|end| end.status);
    html! {
        @if let Some(mark) = status.map(Mark::from).filter(|mark| *mark != Mark::Succeeded) { " " (mark.badge()) }
    }
}
