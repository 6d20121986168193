//! The filters of the list of jobs: all of them stand in the address.

use carillon_domain::name::{check_label_key, check_label_value, check_namespace};
use carillon_domain::run::Status;
use carillon_store::{JobQuery, JobSort};
use maud::{Markup, html};

use crate::json::read_job_cursor;
use crate::page::outcome::Mark;
use crate::page::screens::parts::scope;
use crate::page::visit::{Fault, Visit};

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
        scope: scope(visit),
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

/// The form; without the script its button sends it.
pub(super) fn form(visit: &Visit) -> Markup {
    let get = |key| visit.params.get(key).unwrap_or_default();
    let many = visit.caller.namespaces().is_none_or(|names| names.len() > 1);
    let narrowed = !visit.state().only(&NARROWING).pairs().is_empty();
    html! {
        form.filters role="search" method="get" action=(visit.links.to("/jobs")) data-filter {
            input #q type="search" name="q" value=(get("q")) placeholder="Search names" aria-label="Search names" maxlength="128" data-keep;
            @if many {
                input type="text" name="namespace" value=(get("namespace")) placeholder="namespace" aria-label="Namespace" maxlength="128" data-keep;
            }
            input type="text" name="label" value=(get("label")) placeholder="label=value" aria-label="Label" maxlength="300" data-keep;
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
            input type="text" name="group" value=(get("group")) placeholder="group by label" aria-label="Group by label" maxlength="128" data-keep;
            @if let Some(sort) = visit.params.get("sort") { input type="hidden" name="sort" value=(sort); }
            @if let Some(zone) = visit.params.get("zone") { input type="hidden" name="zone" value=(zone); }
            button { "Filter" }
            @if narrowed { a href=(visit.links.to("/jobs")) { "Clear" } }
        }
    }
}
