//! The cluster: can I trust it?

mod accept;
mod losses;

pub(crate) use accept::{accept, confirm};

use std::time::Duration;

use carillon_domain::duration::{self, spoken};
use carillon_domain::id::SessionId;
use carillon_domain::partition::share_of;
use carillon_executors::executor::{ExecutorDescription, HostState};
use carillon_store::{RecordedLoss, SessionState, SessionView};
use maud::{Markup, html};

use crate::engine::Readiness;
use crate::losses::open_loss;
use crate::page::layout::{View, sentence};
use crate::page::outcome::Mark;
use crate::page::params::Params;
use crate::page::screens::parts::{grouped, plural, said};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::relative;

/// A clock that differs by more is told, in milliseconds.
const DRIFT_MS: u64 = 1_000;

/// The screen.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let mut sessions = visit.api.store.sessions().await?;
    sessions.sort_by(|one, next| (&one.node, one.started_at).cmp(&(&next.node, next.started_at)));
    let losses = visit.api.store.recorded_losses().await?;
    let unknown = open_loss(&visit.api, &visit.caller.scope(), &losses, &sessions).await?;
    let troubles = troubles(visit, &sessions, &losses);
    let body = html! {
        h1.hidden { "Cluster" }
        (said(visit))
        (verdict(&sessions, &losses, &troubles))
        (losses::open(visit, &losses, unknown.as_ref()))
        (nodes(visit, &sessions))
        (server(visit))
        (timing(visit))
        (clock(visit))
        (losses::section(visit, &losses))
        (executors(visit))
    };
    let live = Params::default().with("types", Some("session.changed,alert"));
    let view = View::new("Cluster", body).live(live).alerts(troubles.len());
    Ok(view.otherwise("/v1/cluster", "carillon cluster"))
}

/// The reasons not to trust it, as sentences.
fn troubles(visit: &Visit, sessions: &[SessionView], losses: &[RecordedLoss]) -> Vec<String> {
    let mut found = Vec::new();
    if let Readiness::NotReady(why) = visit.api.engine.readiness() {
        found.push(format!("This node does not schedule: {why}."));
    }
    if losses.iter().any(|loss| loss.is_open()) {
        found.push("Commits were lost, and nothing starts until somebody accepts it.".to_owned());
    }
    for session in sessions.iter().filter(|session| session.is_silent(visit.now)) {
        found.push(format!("The node {} has gone silent.", session.node));
    }
    if let Some(trouble) = visit.api.store.server().and_then(|server| server.trouble) {
        found.push(sentence(&trouble));
    }
    let drift_ms = visit.api.engine.counts().clock_offset_ms;
    if drift_ms.unsigned_abs() > DRIFT_MS {
        found.push(format!("The clock of {} {}.", visit.api.engine.node(), drift(drift_ms)));
    }
    found
}

/// The answer to the first question, large.
fn verdict(sessions: &[SessionView], losses: &[RecordedLoss], troubles: &[String]) -> Markup {
    let count = sessions.iter().filter(|session| session.beat.state != SessionState::Ended).count();
    html! {
        @if troubles.is_empty() {
            p.sentence { (count) " " (plural(count, "node schedules", "nodes schedule")) @if losses.is_empty() { ", and nothing was lost." } @else { ". A loss of commits was accepted." } }
        } @else {
            p.sentence { "The cluster needs you." }
            ul.needs data-list { @for trouble in troubles { li.say.bad { (trouble) } } }
        }
    }
}

fn nodes(visit: &Visit, sessions: &[SessionView]) -> Markup {
    let live: Vec<SessionId> =
        sessions.iter().filter(|view| view.beat.state == SessionState::Live).map(|view| view.beat.id).collect();
    html! {
        section.group {
            h2 { "Nodes" }
            div.scroll tabindex="0" role="region" aria-label="Nodes" { table {
                thead { tr {
                    th scope="col" { "Node" } th scope="col" { "State" } th scope="col" { "Heartbeat" }
                    th.n scope="col" { "Prepared" } th.n scope="col" { "Running" } th.n scope="col" { "Partitions" }
                    th scope="col" { "Started" } th scope="col" { "Version" } th scope="col" { "Database server" } th scope="col" { "Address" } th scope="col" { "Session" }
                } }
                tbody data-list { @for session in sessions { (node(visit, session, &live)) } }
            } }
        }
    }
}

fn node(visit: &Visit, session: &SessionView, live: &[SessionId]) -> Markup {
    let id = session.beat.id;
    let own = id == visit.api.engine.session();
    let partitions = match (own, visit.api.partitions) {
        (true, _) => Some(visit.api.engine.counts().partitions.len()),
        (false, Some(partitions)) => Some(share_of(id, live, partitions).len()),
        (false, None) => None,
    };
    html! {
        tr id=(format!("session:{id}")) {
            td.nowrap { strong { (session.node) } @if own { span.muted { " (this one)" } } }
            td { (state(visit, session)) }
            td.nowrap { (relative(session.heartbeat_at, visit.now)) }
            td.n { (grouped(session.prepared)) }
            td.n { (grouped(session.executing)) }
            td.n {
                @match partitions { Some(count) => (count), None => "–" }
                @if let Some(all) = visit.api.partitions { span.muted { " of " (all) } }
            }
            td.nowrap { (relative(session.started_at, visit.now)) }
            td { (session.version) }
            td { @match &session.server { Some(server) => code { (server) }, None => "–" } }
            td.nowrap { code { (session.address) } }
            td { code.muted { (id) } }
        }
    }
}

/// The state of a session, and whether its node has fallen silent.
pub(crate) fn state(visit: &Visit, session: &SessionView) -> Markup {
    match session.beat.state {
        SessionState::Ended => html! { span.o.o-lost { (Mark::Lost.icon()) "ended" } },
        _ if session.is_silent(visit.now) => html! { span.o.o-timed_out { (Mark::TimedOut.icon()) "silent" } },
        SessionState::Draining => html! { span.o.o-waiting { (Mark::Waiting.icon()) "draining" } },
        SessionState::Live => html! { span.o.o-succeeded { (Mark::Succeeded.icon()) "live" } },
    }
}

/// The server of a shared database; an embedded file has none.
fn server(visit: &Visit) -> Markup {
    let Some(server) = visit.api.store.server() else { return html! {} };
    html! {
        section.group {
            h2 { "Database server of " (visit.api.engine.node()) }
            p {
                code { (server.identity) } ", named " code { (server.place) } ": " (server.topology) ". "
                span.muted { (sentence(&server.why)) }
            }
        }
    }
}

/// How long a node lives without a heartbeat, and where that comes from.
fn timing(visit: &Visit) -> Markup {
    let Some(report) = &visit.api.timing else { return html! {} };
    let timing = &report.chosen.timing;
    html! {
        section.group {
            h2 { "Session timing of " (visit.api.engine.node()) }
            p {
                "Ends itself " (duration::format(timing.self_kill_after)) " after its last heartbeat, and takes over from others after "
                (duration::format(timing.expire_after)) ". "
                span.muted { (sentence(&report.chosen.source.to_string())) }
            }
            @for misfit in &report.misfits { p { (sentence(misfit)) } }
        }
    }
}

fn clock(visit: &Visit) -> Markup {
    let drift_ms = visit.api.engine.counts().clock_offset_ms;
    html! {
        section.group {
            h2 { "Clock" }
            p {
                "The clock of " strong { (visit.api.engine.node()) } " " (drift(drift_ms)) ", as its last heartbeat showed. "
                span.muted { "Due times follow the database's clock. Each node knows its own difference only." }
            }
        }
    }
}

fn drift(drift_ms: i64) -> String {
    match drift_ms {
        0 => "agrees with the database's".to_owned(),
        _ => {
            let side = if drift_ms > 0 { "behind" } else { "ahead of" };
            format!("is {} {side} the database's", spoken(Duration::from_millis(drift_ms.unsigned_abs())))
        }
    }
}

/// The executors of this node, with the troubles of plugins.
fn executors(visit: &Visit) -> Markup {
    let executors = visit.api.engine.executors();
    html! {
        section.group {
            h2 { "Executors of " (visit.api.engine.node()) }
            div.scroll tabindex="0" role="region" aria-label="Executors" { table {
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Version" } th scope="col" { "Isolation" } th scope="col" { "State" }
                } }
                tbody data-list { @for (name, executor) in executors.iter() {
                    @let ExecutorDescription { version, plugin, .. } = executor.description();
                    tr {
                        td { (name) }
                        td { (version) }
                        td { @match &plugin { Some(plugin) => (plugin.isolation.as_str()), None => "built in" } }
                        td {
                            @match &plugin {
                                Some(plugin) if plugin.trouble.is_some() => span.fault { (sentence(plugin.trouble.as_deref().unwrap_or_default())) },
                                Some(plugin) => (plugin.host.map_or("", HostState::as_str)),
                                None => "ready",
                            }
                        }
                    }
                } }
            } }
        }
    }
}
