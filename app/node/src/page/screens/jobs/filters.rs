//! The filters of the list of jobs: all of them stand in the address.

use carillon_domain::name::{check_label_key, check_label_value, check_namespace};
use carillon_domain::run::Status;
use carillon_store::{JobQuery, JobSort};
use maud::{Markup, html};

use crate::page::outcome::Mark;
use crate::page::screens::search::{Search, field};
use crate::page::visit::{Fault, Visit};
use carillon_json::read_job_cursor;

/// The parameters that narrow the list.
pub(super) const NARROWING: [&str; 5] = ["q", "namespace", "label", "state", "outcome"];

/// States by which jobs are chosen: the value and the word.
const STATES: [(&str, &str); 4] =
    [("executing", "running"), ("idle", "idle"), ("prepared", "prepared"), ("paused", "paused")];

/// Outcomes of the last run by which jobs are chosen.
const OUTCOMES: [Status; 5] = [Status::Succeeded, Status::Failed, Status::TimedOut, Status::Cancelled, Status::Lost];

/// The query of the store.
pub(super) fn query(visit: &Visit, limit: usize) -> Result<JobQuery, Fault> {
    let params = &visit.params;
    let namespace = namespace(visit);
    if let Some(namespace) = namespace {
        visit.caller.enters(namespace)?;
    }
    let label = params.get("label").map(|label| match label.split_once('=') {
        Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
        None => (label.trim().to_owned(), None),
    });
    let label = label.filter(|(key, value)| {
        check_label_key(key).is_ok() && value.as_deref().is_none_or(|value| check_label_value(value).is_ok())
    });
    let state = params.get("state");
    Ok(JobQuery {
        namespace: namespace.map(str::to_owned),
        scope: visit.caller.scope(),
        prefix: None,
        contains: params.get("q").map(|text| text.trim().chars().take(128).collect()),
        label,
        state: state.filter(|state| ["idle", "prepared", "executing"].contains(state)).map(str::to_owned),
        paused: (state == Some("paused")).then_some(true),
        last_status: OUTCOMES.into_iter().find(|status| Some(status.as_str()) == params.get("outcome")),
        sort: if params.get("sort") == Some("next") { JobSort::Next } else { JobSort::Name },
        after: params.get("cursor").and_then(read_job_cursor),
        limit,
    })
}

/// The namespace that is asked for, if it can be one.
pub(super) fn namespace(visit: &Visit) -> Option<&str> {
    visit.params.get("namespace").filter(|name| *name != "*" && check_namespace(name).is_ok())
}

/// The form.
pub(super) fn form(visit: &Visit) -> Markup {
    let get = |key| visit.params.get(key).unwrap_or_default();
    let fields = html! {
        (field(visit, "label", "label=value", "Label"))
        select name="state" aria-label="State" {
            option value="" { "any state" }
            @for (value, word) in STATES { option value=(value) selected[get("state") == value] { (word) } }
        }
        select name="outcome" aria-label="Outcome of the last run" {
            option value="" { "any outcome" }
            @for status in OUTCOMES {
                option value=(status.as_str()) selected[get("outcome") == status.as_str()] { (Mark::from(status).word()) }
            }
        }
        (field(visit, "group", "group by label", "Group by label"))
    };
    let text = ("q", "Search names");
    Search { path: "/jobs", text, fields, narrowing: &NARROWING, keeps: &["sort", "zone"] }.form(visit)
}
