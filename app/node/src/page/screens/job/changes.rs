//! Who changed a job, and when: the newest entries of the audit log about it.

use std::sync::Arc;

use carillon_store::{Action, AuditQuery, AuditView, JobKey, JobView};
use maud::{Markup, html};

use crate::page::params::Params;
use crate::page::screens::parts::plural;
use crate::page::visit::{Fault, Visit};
use crate::page::zone::clock;
use carillon_json::{audit_json, changed_fields};

/// How many entries are read; runs that somebody asked for are among them.
const READ: usize = 20;
/// How many changes are shown.
const SHOWN: usize = 5;
/// How many fields of a change are named.
const NAMED: usize = 4;

/// The changes of a job that the caller may see, newest first.
pub(super) async fn read(visit: &Visit, key: &JobKey, view: &JobView) -> Result<Arc<Vec<AuditView>>, Fault> {
    let read = async || {
        let query = AuditQuery {
            namespaces: Some(vec![key.namespace.clone()]),
            job: Some(key.name.clone()),
            who: None,
            action: None,
            since: None,
            until: None,
            after: None,
            limit: READ,
        };
        let mut entries = visit.api.store.audit(&query).await?.items;
        // A deleted job may have had the same name.
        entries.retain(|entry| entry.job_id == Some(view.state.id) && entry.run.is_none());
        entries.truncate(SHOWN);
        Ok::<_, Fault>(entries)
    };
    visit.shared(format!("changes {key:?}"), read).await
}

/// Who gave the job its present definition, as far as the changes tell.
pub(super) fn author(changes: &[AuditView]) -> Option<&str> {
    let defines = [Action::JobCreated, Action::JobUpdated].map(Action::as_str);
    changes.iter().find(|change| defines.contains(&change.action.as_str())).map(|change| change.who.as_str())
}

/// The changes as a list, with the way to all of them.
pub(super) fn list(visit: &Visit, key: &JobKey, changes: &[AuditView]) -> Markup {
    let all = Params::default().with("namespace", Some(&key.namespace)).with("job", Some(&key.name));
    html! {
        @if changes.is_empty() { p.muted { "The audit log has no recent change of it." } }
        @else { ul.bullets { @for change in changes {
            li {
                (verb(&change.action)) " by " strong { (change.who) } " " (clock(change.at, visit.now, visit.zone))
                @let fields = fields(change);
                @if !fields.is_empty() { span.muted { ": " (fields) } }
            }
        } } }
        p { a href=(visit.links.with("/audit", &all)) { "All changes, with their differences" } }
    }
}

/// The action in a word.
fn verb(action: &str) -> String {
    let word = action.strip_prefix("job.").unwrap_or(action);
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

/// The names of the fields that an update has changed.
fn fields(change: &AuditView) -> String {
    if change.action != Action::JobUpdated.as_str() {
        return String::new();
    }
    let shown = audit_json(change);
    let fields = changed_fields(&shown["before"], &shown["after"]);
    let named: Vec<&str> = fields.iter().take(NAMED).map(|field| field.path.as_str()).collect();
    match fields.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more {}", named.join(", "), plural(more, "field", "fields")),
    }
}
