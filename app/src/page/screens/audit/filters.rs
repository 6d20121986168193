//! The filters of the audit log: all of them stand in the address.

use carillon_store::Action;
use maud::{Markup, html};

use crate::page::visit::Visit;

/// The parameters that narrow the log.
pub(super) const NARROWING: [&str; 4] = ["namespace", "job", "who", "action"];

/// The form; without the script its button sends it.
pub(super) fn form(visit: &Visit) -> Markup {
    let get = |key| visit.params.get(key).unwrap_or_default();
    let many = visit.caller.namespaces().is_none_or(|names| names.len() > 1);
    let narrowed = !visit.state().only(&NARROWING).pairs().is_empty();
    html! {
        form.filters role="search" method="get" action=(visit.links.to("/audit")) data-filter {
            input #q type="search" name="job" value=(get("job")) placeholder="Job" aria-label="Job" maxlength="128" data-keep;
            @if many {
                input type="text" name="namespace" value=(get("namespace")) placeholder="namespace" aria-label="Namespace" maxlength="128" data-keep;
            }
            input type="text" name="who" value=(get("who")) placeholder="who" aria-label="Who" maxlength="128" data-keep;
            select name="action" aria-label="Action" {
                option value="" { "any action" }
                @for action in Action::ALL { option value=(action.as_str()) selected[get("action") == action.as_str()] { (action.as_str()) } }
            }
            @if let Some(zone) = visit.params.get("zone") { input type="hidden" name="zone" value=(zone); }
            button { "Filter" }
            @if narrowed { a href=(visit.links.to("/audit")) { "Clear" } }
        }
    }
}
