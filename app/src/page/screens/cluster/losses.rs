//! The times in which the database lost commits.

use carillon_store::RecordedLoss;
use maud::{Markup, html};

use crate::config::Role;
use crate::page::layout::{copyable, sentence};
use crate::page::visit::Visit;
use crate::page::zone::{clock, full, relative};

/// The loss that holds everything up, with the way to accept it.
pub(super) fn open(visit: &Visit, losses: &[RecordedLoss]) -> Markup {
    let Some(loss) = losses.iter().find(|loss| loss.accepted_at.is_none()) else { return html! {} };
    html! {
        section.say.bad.group {
            h2 { "Commits were lost" }
            p { (sentence(&loss.window.to_string())) }
            @if may_accept(visit) {
                p { a.button.danger href=(visit.links.to("/cluster/accept")) { "Accept it…" } }
            } @else {
                p { "Somebody with the role admin for all namespaces can accept it:" }
                p { (copyable("carillon cluster accept")) }
            }
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
