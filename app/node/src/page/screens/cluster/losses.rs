//! The times in which the database lost commits.

use carillon_domain::job::OnLost;
use carillon_store::{Bounded, RecordedLoss};
use maud::{Markup, html};

use crate::config::Role;
use crate::losses::OpenLoss;
use crate::page::layout::{copyable, sentence};
use crate::page::visit::Visit;
use crate::page::zone::{clock, full, relative};

/// The loss that holds everything up, with the way to accept it.
pub(super) fn open(visit: &Visit, losses: &[RecordedLoss], unknown: Option<&OpenLoss>) -> Markup {
    let Some(loss) = losses.iter().find(|loss| loss.is_open()) else { return html! {} };
    let still = unknown.and_then(|unknown| unknown.still.as_ref());
    html! {
        section.say.bad.group {
            h2 { "Commits were lost" }
            p { (sentence(&loss.window.to_string())) }
            @if let Some(still) = still {
                p { (sentence(&format!("It cannot be accepted yet: {still}"))) }
            } @else if may_accept(visit) {
                p { a.button.danger href=(visit.links.to("/cluster/accept")) { "Accept it…" } }
            } @else {
                p { "Somebody with the role admin for all namespaces can accept it:" }
                p { (copyable("carillon cluster accept")) }
            }
            @if let Some(unknown) = unknown { (jobs(visit, unknown)) }
        }
    }
}

/// The jobs of whose firings nobody knows a run, and what becomes of these firings.
pub(super) fn jobs(visit: &Visit, unknown: &OpenLoss) -> Markup {
    let Bounded { items, more } = &unknown.jobs;
    html! {
        @if items.is_empty() {
            p { "Of each firing that was due by then a run or a record is known." }
        } @else {
            p { "Nobody knows whether these firings ran:" }
            ul.bullets { @for listed in items { li {
                (listed.view.job.namespace) "/" (listed.view.job.name)
                @if let Some(at) = listed.at { ", due " (clock(at, visit.now, visit.zone)) }
                ": " @match listed.view.job.on_lost {
                    OnLost::Skip => "recorded as lost",
                    OnLost::Rerun => "runs, perhaps for the second time",
                }
            } } }
            @if *more { p.muted { "More jobs are not shown." } }
        }
    }
}

/// Whether the caller may accept a loss: it concerns all namespaces.
pub(super) fn may_accept(visit: &Visit) -> bool {
    visit.may(Role::Admin) && visit.caller.namespaces().is_none()
}

/// All that is recorded.
pub(super) fn section(visit: &Visit, losses: &[RecordedLoss]) -> Markup {
    let time = |at| clock(at, visit.now, visit.zone);
    html! {
        section.group {
            h2 { "Lost commits" }
            @if losses.is_empty() { p.muted { "No node has noticed any within the last day." } }
            @else { div.scroll tabindex="0" role="region" aria-label="Lost commits" { table {
                thead { tr {
                    th scope="col" { "From" } th scope="col" { "Until" } th scope="col" { "Noticed" } th scope="col" { "By" } th scope="col" { "Accepted" }
                } }
                tbody data-list { @for loss in losses { tr {
                    td.nowrap { (time(loss.window.from_at)) }
                    td.nowrap { (time(loss.window.until_at)) }
                    td.nowrap { (relative(loss.window.noticed_at, visit.now)) }
                    td { (noticed_by(loss)) }
                    td.nowrap { @match loss.accepted_at { Some(at) => (time(at)), None => span.fault { "not yet" } } }
                } } }
            } } }
        }
    }
}

/// The window in words, with both ends in the reader's zone.
pub(super) fn window(visit: &Visit, loss: &RecordedLoss) -> Markup {
    html! {
        dl.facts {
            dt { "From" } dd { (full(loss.window.from_at, visit.zone)) }
            dt { "Until" } dd { (full(loss.window.until_at, visit.zone)) }
            dt { "Noticed by" } dd { (noticed_by(loss)) ", " (relative(loss.window.noticed_at, visit.now)) }
        }
    }
}

/// The node that noticed it, or its session where the name is not known any more.
fn noticed_by(loss: &RecordedLoss) -> String {
    loss.node.clone().unwrap_or_else(|| loss.session.to_string())
}
