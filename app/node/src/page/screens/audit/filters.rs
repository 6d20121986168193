//! The filters of the audit log: all of them stand in the address.

use carillon_store::Action;
use maud::{Markup, html};

use crate::page::screens::search::{Search, field};
use crate::page::visit::Visit;

/// The parameters that narrow the log.
pub(super) const NARROWING: [&str; 4] = ["namespace", "job", "who", "action"];

/// The form.
pub(super) fn form(visit: &Visit) -> Markup {
    let chosen = visit.params.get("action");
    let fields = html! {
        (field(visit, "who", "who", "Who"))
        select name="action" aria-label="Action" {
            option value="" { "any action" }
            @for action in Action::ALL { option value=(action.as_str()) selected[chosen == Some(action.as_str())] { (action.as_str()) } }
        }
    };
    Search { path: "/audit", text: ("job", "Job"), fields, narrowing: &NARROWING, keeps: &["zone"] }.form(visit)
}
