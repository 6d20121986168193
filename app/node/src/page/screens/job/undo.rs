//! The way back from a pause and from a resumption. Due times of a pause stay recorded, whoever takes it back.

use carillon_store::{JobKey, JobView};
use maud::{Markup, html};

use crate::config::Role;
use crate::page::screens::parts::{UNDO_REASON, UNDO_UNTIL, csrf, said, said_with_way_back};
use crate::page::visit::Visit;

/// The effect of the action that led here, with the way back while the job stands as that action left it.
pub(super) fn notice(visit: &Visit, key: &JobKey, view: &JobView) -> Markup {
    let opposite = match (visit.params.get("said"), view.pause()) {
        (Some("paused"), Some(_)) => "resume",
        (Some("resumed"), None) => "pause",
        _ => return said(visit),
    };
    if !visit.may(Role::Operator) {
        return said(visit);
    }
    let form = html! {
        form method="post" action=(format!("{}/{opposite}", visit.links.job(key))) {
            (csrf(visit))
            // A pause comes back with its reason and its end.
            @for (name, kept) in [("reason", UNDO_REASON), ("until", UNDO_UNTIL)] {
                @if let Some(value) = visit.params.get(kept) { input type="hidden" name=(name) value=(value); }
            }
            button { "Undo" }
        }
    };
    said_with_way_back(visit, &form)
}
