//! Alerts: who is told of what, what is open, and what became of each message.

mod act;
mod form;
mod messages;

pub(crate) use act::{Deed, act, confirm_delete, resend};
pub(crate) use form::{edit, new, take};

use carillon_domain::alert::{Incident, Route, Target};
use carillon_domain::duration;
use carillon_store::JobKey;
use carillon_store::alerts::{IncidentQuery, StoredRoute, Unreadable};
use maud::{Markup, html};

use crate::config::Role;
use crate::http::routes::alerts::reaches;
use crate::page::layout::{View, copyable, sentence};
use crate::page::params::{Params, encode};
use crate::page::screens::parts::{csrf, job_link, said};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::relative;

/// How many incidents are listed.
const INCIDENTS: usize = 200;

/// The screen.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let stored = visit.api.store.routes().await?;
    let routes: Vec<&StoredRoute> = stored.iter().filter(|stored| reaches(&visit.caller, &stored.route)).collect();
    let namespaces = visit.caller.namespaces().map(<[String]>::to_vec);
    let query = IncidentQuery { route: None, namespaces, limit: INCIDENTS };
    let incidents = visit.api.store.incidents(&query).await?;
    let messages = messages::section(visit, &routes).await?;
    // They may belong to any namespace.
    let unreadable = match visit.caller.namespaces() {
        None => visit.api.store.unreadable_alerts().await?,
        Some(_) => Vec::new(),
    };
    let body = html! {
        div.spread {
            h1 { "Alerts" }
            @if visit.may(Role::Admin) { a.button.primary href=(visit.links.to("/alerts/new")) { "New route" } }
        }
        (said(visit))
        @if !unreadable.is_empty() { (left_out(&unreadable)) }
        section.group {
            h2 { "Open" }
            @if incidents.is_empty() { p.muted { "No trouble is open." } }
            @else { (open(visit, &incidents)) }
        }
        section.group {
            h2 { "Routes" }
            @if routes.is_empty() { (empty()) } @else { (table(visit, &routes)) }
        }
        (messages)
    };
    let live = Params::default().with("namespace", Some("*")).with("types", Some("alert"));
    Ok(View::new("Alerts", body).live(live).otherwise("/v1/alerts", "carillon alert list"))
}

/// Rows that nobody is told by, with the way out.
fn left_out(rows: &[Unreadable]) -> Markup {
    html! {
        section.group #unreadable {
            h2 { "Cannot be read" }
            p { "These stored rows are left out; everything else goes on. A newer node may read them. Else store the route anew or delete it: an incident and its messages go with their route." }
            ul.needs data-list {
                @for Unreadable { noun, id, problem } in rows {
                    li.need { span.o.o-failed { (noun) } strong { (id) } span { (sentence(problem)) } }
                }
            }
        }
    }
}

fn empty() -> Markup {
    html! {
        div.empty {
            h3 { "Nobody is told of anything yet." }
            p { "A route says who is told of what. The first one is made here, or so:" }
            (copyable("echo '{\"when\": [\"failed\", \"recovered\"], \"to\": [{\"type\": \"mail\", \"to\": [\"ops@example.org\"]}]}' | carillon alert put - --name ops"))
        }
    }
}

fn open(visit: &Visit, incidents: &[Incident]) -> Markup {
    html! {
        ul.needs.troubles data-list {
            @for incident in incidents {
                li.need {
                    span.o.o-failed { (word(incident)) }
                    (subject(visit, incident))
                    span { @if let Some(last) = &incident.last { (last.sentence) } }
                    span.muted { "since " (relative(incident.since, visit.now)) ", route " (incident.key.route) }
                }
            }
        }
    }
}

/// The word for it: that of the newest fact, as the routes name it.
pub(crate) fn word(incident: &Incident) -> String {
    let told = incident.last.as_ref().map(|last| last.when.as_str());
    told.unwrap_or(incident.key.class.as_str()).replace('_', " ")
}

/// The job of an incident, or the part of the cluster.
pub(crate) fn subject(visit: &Visit, incident: &Incident) -> Markup {
    match (&incident.namespace, &incident.job) {
        (Some(namespace), Some(name)) => job_link(visit, &JobKey { namespace: namespace.clone(), name: name.clone() }),
        _ => html! { a href=(visit.links.to("/cluster")) { (incident.part.as_deref().unwrap_or("the cluster")) } },
    }
}

fn table(visit: &Visit, routes: &[&StoredRoute]) -> Markup {
    html! {
        div.scroll { table.routes {
            thead { tr {
                th scope="col" { "Name" } th scope="col" { "When" } th scope="col" { "Of" } th scope="col" { "To" }
                @if visit.may(Role::Operator) { th scope="col" { "Do" } }
            } }
            tbody data-list {
                @for StoredRoute { route, .. } in routes {
                    tr id=(format!("route:{}", route.name)) {
                        th.name scope="row" { (route.name) }
                        td { (whens(route)) }
                        td { (selection(route)) }
                        td { @for target in &route.to { div { (target.kind()) " " span.muted { (place(target)) } } } }
                        @if visit.may(Role::Operator) { td { (actions(visit, route)) } }
                    }
                }
            }
        } }
    }
}

fn actions(visit: &Visit, route: &Route) -> Markup {
    let at = |action: &str| visit.links.to(&format!("/alerts/{}/{action}", encode(&route.name)));
    html! {
        div.row {
            form method="post" action=(at("test")) { (csrf(visit)) button { "Test" span.hidden { " " (route.name) } } }
            @if visit.may(Role::Admin) {
                a.button href=(at("edit")) { "Edit" span.hidden { " " (route.name) } }
                a.button.danger href=(at("delete")) { "Delete" span.hidden { " " (route.name) } }
            }
        }
    }
}

fn whens(route: &Route) -> String {
    let mut text = route.when.iter().map(|when| when.as_str()).collect::<Vec<_>>().join(", ");
    if route.after > 1 {
        text.push_str(&format!("; after {} in a row", route.after));
    }
    if let Some(repeat) = route.repeat {
        text.push_str(&format!("; again every {}", duration::format(repeat)));
    }
    text
}

fn selection(route: &Route) -> String {
    let only = &route.only;
    let labels: Vec<String> = only.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let parts =
        [("namespace", only.namespaces.join(", ")), ("job", only.jobs.join(", ")), ("label", labels.join(", "))];
    let parts: Vec<String> =
        parts.iter().filter(|(_, text)| !text.is_empty()).map(|(noun, text)| format!("{noun} {text}")).collect();
    if parts.is_empty() { "every job, and the cluster".to_owned() } else { parts.join("; ") }
}

/// A target without what lets others post to it.
fn place(target: &Target) -> String {
    match target {
        Target::Mail { to } => to.join(", "),
        Target::Command { command, .. } => command.clone(),
        other => other.host().to_owned(),
    }
}
