//! The audit log: who did what?

mod filters;

use carillon_store::{AuditQuery, AuditView, JobKey, Page};
use maud::{Markup, html};

use crate::page::layout::{View, copyable};
use crate::page::params::Params;
use crate::page::screens::diff::{self, Sides};
use crate::page::screens::parts::{job_link, news};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{full, utc};
use carillon_json::{audit_cursor, audit_json, changed_fields, read_audit_cursor};

/// How many entries a page has.
const ROWS: usize = 50;
/// How many fields of a change are shown before the others are folded.
const SHOWN_FIELDS: usize = 6;

/// The screen.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let asked = query(visit)?;
    let page = visit.api.store.audit(&asked).await?;
    let body = html! {
        h1 { "Audit" }
        (filters::form(visit))
        @if page.items.is_empty() && page.next.is_none() { (empty(visit)) }
        @else { (table(visit, &page)) }
        nav.row aria-label="Pages" {
            @if asked.after.is_some() { a.button href=(visit.here("cursor", None)) { "Newest" } }
            @if let Some(next) = page.next {
                a.button rel="next" href=(visit.links.with("/audit", &visit.state().with("cursor", Some(&audit_cursor(next))))) { "Older" }
            }
        }
    };
    let filters = visit.state().only(&filters::NARROWING);
    let options = filters.pairs().iter().map(|(key, value)| format!(" --{key} '{}'", value.replace('\'', "'\\''")));
    let view = View::new("Audit", body).otherwise(
        format!("/v1/audit{}", filters.to_query()),
        format!("carillon audit --diff{}", options.collect::<String>()),
    );
    let live = Params::default().with("namespace", Some("*")).with("types", Some("job.changed,audit.written"));
    Ok(if asked.after.is_none() { view.live(live) } else { view })
}

fn query(visit: &Visit) -> Result<AuditQuery, Fault> {
    let text = |key| visit.params.get(key).map(|text| text.trim().chars().take(128).collect::<String>());
    let namespaces = match visit.params.get("namespace").filter(|name| *name != "*") {
        None => visit.caller.namespaces().map(<[String]>::to_vec),
        Some(namespace) => {
            visit.caller.enters(namespace)?;
            Some(vec![namespace.to_owned()])
        }
    };
    let after = visit.params.get("cursor").and_then(read_audit_cursor);
    let (since, until) = (None, None);
    let (job, who, action) = (text("job"), text("who"), text("action"));
    Ok(AuditQuery { namespaces, job, who, action, since, until, after, limit: ROWS })
}

fn table(visit: &Visit, page: &Page<AuditView, u64>) -> Markup {
    html! {
        (news(&visit.here("cursor", None)))
        @if page.items.is_empty() { p.muted { "Nothing fits in this part of the log. Look at older entries." } }
        @else {
            div.scroll { table.audit {
                thead { tr {
                    th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "Action" } th scope="col" { "Of" } th scope="col" { "Difference" }
                } }
                tbody data-rows="audit" { @for entry in &page.items { (row(visit, entry)) } }
            } }
        }
    }
}

fn row(visit: &Visit, entry: &AuditView) -> Markup {
    let by = |key: &str, value: &str, text: &str| {
        html! { a.plain href=(visit.here(key, Some(value))) { (text) } }
    };
    html! {
        tr id=(format!("audit:{}", entry.id)) {
            td.nowrap { time datetime=(entry.at.to_rfc3339_short()) title=(utc(entry.at)) { (full(entry.at, visit.zone)) } }
            td { (by("who", &entry.who, &entry.who)) br; span.note { "from " (entry.origin) } }
            td.nowrap { (by("action", &entry.action, &entry.action)) }
            td.name { (target(visit, entry)) }
            td { (difference(entry)) }
        }
    }
}

/// The job, the run, or the cluster.
fn target(visit: &Visit, entry: &AuditView) -> Markup {
    html! {
        @match (&entry.namespace, &entry.job) {
            (Some(namespace), Some(name)) => (job_link(visit, &JobKey { namespace: namespace.clone(), name: name.clone() })),
            (Some(namespace), None) => (namespace),
            (None, _) => a href=(visit.links.to("/cluster")) { "the cluster" },
        }
        @if let Some(run) = entry.run { br; a.note href=(visit.links.run(run)) { "run " (run) } }
    }
}

fn difference(entry: &AuditView) -> Markup {
    let shown = audit_json(entry);
    let fields = changed_fields(&shown["before"], &shown["after"]);
    let sides = match (&entry.before, &entry.after) {
        (None, None) => return html! {},
        (None, Some(_)) => Sides::After,
        (Some(_), None) => Sides::Before,
        (Some(_), Some(_)) => Sides::Both,
    };
    if fields.is_empty() {
        return html! { span.muted { "Only values of secrets changed." } };
    }
    html! {
        @if sides == Sides::Both {
            (diff::table(&fields[..fields.len().min(SHOWN_FIELDS)], sides))
            @if fields.len() > SHOWN_FIELDS {
                details { summary { (fields.len() - SHOWN_FIELDS) " more" } (diff::table(&fields[SHOWN_FIELDS..], sides)) }
            }
        } @else {
            details {
                summary { (fields.len()) " fields " @if sides == Sides::After { "set" } @else { "gone" } }
                (diff::table(&fields, sides))
            }
        }
    }
}

fn empty(visit: &Visit) -> Markup {
    let filtered = !visit.state().only(&filters::NARROWING).pairs().is_empty();
    html! {
        div.empty {
            @if filtered {
                h2 { "No entry fits." }
                p { a href=(visit.links.to("/audit")) { "Show all entries" } }
            } @else {
                h2 { "Nobody has changed anything yet." }
                p { "The first change will be here:" }
                (copyable("carillon job add hello --schedule '* * * * *' -- echo hello"))
            }
        }
    }
}
