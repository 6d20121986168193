//! The newest messages with the answers to them.

use std::time::Duration;

use carillon_domain::alert::{DeliveryState, State};
use carillon_store::JobKey;
use carillon_store::alerts::{DeliveryQuery, DeliveryView, Message, StoredRoute};
use maud::{Markup, html};

use crate::config::Role;
use crate::page::screens::parts::{csrf, job_link, news};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, relative};
use carillon_json::{delivery_cursor, read_delivery_cursor};

/// How many messages a page has.
const ROWS: usize = 30;
/// A message that is sent within so long is waited for.
const SOON: Duration = Duration::from_secs(5);

/// The section. A caller of some namespaces sees the messages of one of its routes.
pub(super) async fn section(visit: &Visit, routes: &[&StoredRoute]) -> Result<Markup, Fault> {
    let known = |name: &str| routes.iter().any(|stored| stored.route.name == name);
    let route = visit.params.get("route").filter(|name| known(name)).map(str::to_owned);
    let state = visit.params.get("state");
    let state = DeliveryState::NAMES.into_iter().find(|name| Some(*name) == state);
    let after = visit.params.get("cursor").and_then(read_delivery_cursor);
    if route.is_none() && visit.caller.namespaces().is_some() {
        return Ok(html! { section.group { h2 { "Messages" } (filter(visit, routes, None, state)) } });
    }
    let page = visit.api.store.deliveries(&DeliveryQuery { route: route.clone(), state, after, limit: ROWS }).await?;
    Ok(html! {
        section.group #messages {
            h2 { "Messages" }
            (filter(visit, routes, route.as_deref(), state))
            @if page.items.is_empty() { p.muted { "No message fits." } } @else {
                @if after.is_none() { (news(&visit.here("cursor", None))) }
                (table(visit, &page.items))
            }
            nav.row aria-label="Pages" {
                @if after.is_some() { a.button href=(visit.here("cursor", None)) { "Newest" } }
                @if let Some(next) = page.next {
                    a.button rel="next" href=(visit.links.with("/alerts", &visit.state().with("cursor", Some(&delivery_cursor(next))))) { "Older" }
                }
            }
        }
    })
}

fn filter(visit: &Visit, routes: &[&StoredRoute], route: Option<&str>, state: Option<&str>) -> Markup {
    html! {
        form.filters method="get" action=(visit.links.to("/alerts")) data-filter {
            select name="route" aria-label="Route" {
                option value="" { "any route" }
                @for stored in routes { option value=(stored.route.name) selected[route == Some(&stored.route.name)] { (stored.route.name) } }
            }
            select name="state" aria-label="State" {
                option value="" { "any state" }
                @for name in DeliveryState::NAMES { option value=(name) selected[state == Some(name)] { (name) } }
            }
            @if let Some(zone) = visit.params.get("zone") { input type="hidden" name="zone" value=(zone); }
            button { "Filter" }
        }
    }
}

fn table(visit: &Visit, items: &[DeliveryView]) -> Markup {
    html! {
        div.scroll { table.messages {
            thead { tr {
                th scope="col" { "When" } th scope="col" { "Message" } th scope="col" { "To" } th scope="col" { "State" } th scope="col" { "Answer" }
            } }
            tbody data-rows="messages" { @for view in items { (row(visit, view)) } }
        } }
    }
}

fn row(visit: &Visit, view: &DeliveryView) -> Markup {
    let resend = matches!(view.delivery.state, DeliveryState::Sent { .. } | DeliveryState::Dead { .. });
    let may = visit.may(Role::Operator) && visit.caller.namespaces().is_none();
    html! {
        tr id=(format!("message:{}", view.id)) {
            td.nowrap { (clock(view.made_at, visit.now, visit.zone)) }
            td { (message(visit, view)) }
            td { (view.kind) " " span.muted { (view.host) } }
            td.nowrap data-again[is_under_way(visit, view)] { (state(visit, view)) }
            td {
                @if let Some(answer) = &view.delivery.answer { (answer) }
                @if resend && may {
                    form method="post" action=(visit.links.to(&format!("/alerts/messages/{}/resend", view.id))) {
                        (csrf(visit)) button.quiet { "Send again" span.hidden { " message " (view.id) } }
                    }
                }
            }
        }
    }
}

/// Whether its answer is near. No event tells that it has come.
fn is_under_way(visit: &Visit, view: &DeliveryView) -> bool {
    match view.delivery.state {
        DeliveryState::Sending { .. } => true,
        DeliveryState::Waiting { next_at } => next_at <= visit.now + SOON,
        DeliveryState::Sent { .. } | DeliveryState::Dead { .. } => false,
    }
}

fn message(visit: &Visit, view: &DeliveryView) -> Markup {
    html! {
        @match &view.message {
            Message::Ping(call) => { "Monitor: " (call.kind.as_str()) " of " a href=(visit.links.run(call.run)) { "run " (call.run) } },
            Message::Notice(notice) => {
                @if let (Some(namespace), Some(name)) = (&notice.namespace, &notice.job) {
                    (job_link(visit, &JobKey { namespace: namespace.clone(), name: name.clone() })) " "
                }
                @if notice.state == State::Recovered { "recovered: " }
                (notice.sentence)
                @if let Some(run) = notice.run { " " a.note href=(visit.links.run(run)) { "run" span.hidden { " " (run) } } }
            }
        }
    }
}

fn state(visit: &Visit, view: &DeliveryView) -> Markup {
    let tries = view.delivery.tries;
    html! {
        @match view.delivery.state {
            DeliveryState::Waiting { next_at } => {
                "waiting"
                @if tries > 0 { br; span.note { "tried " (tries) "×, again " (relative(next_at, visit.now)) } }
            },
            DeliveryState::Sending { .. } => "sending",
            DeliveryState::Sent { at } => { span.o.o-succeeded { "sent" } br; span.note { (relative(at, visit.now)) } },
            DeliveryState::Dead { at } => { span.o.o-failed { "given up" } br; span.note { (relative(at, visit.now)) " after " (tries) " tries" } },
        }
    }
}
