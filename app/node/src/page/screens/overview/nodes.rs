//! The nodes of the cluster, in short.

use carillon_store::SessionView;
use maud::{Markup, html};

use crate::page::screens::cluster::state;
use crate::page::screens::parts::grouped;
use crate::page::visit::Visit;
use crate::page::zone::relative;

pub(super) fn section(visit: &Visit, sessions: &[SessionView]) -> Markup {
    let mut sorted: Vec<&SessionView> = sessions.iter().collect();
    sorted.sort_by(|one, next| (&one.node, one.started_at).cmp(&(&next.node, next.started_at)));
    html! {
        section.group {
            h2 { "Nodes" }
            div.scroll tabindex="0" role="region" aria-label="Nodes" { table.nodes {
                thead { tr {
                    th scope="col" { "Node" } th scope="col" { "State" } th scope="col" { "Heartbeat" }
                    th.n scope="col" { "Prepared" } th.n scope="col" { "Running" } th scope="col" { "Started" } th scope="col" { "Version" } th scope="col" { "Address" }
                } }
                tbody data-list { @for session in sorted {
                    tr {
                        td { (session.node) @if session.beat.id == visit.api.engine.session() { span.muted { " (this one)" } } }
                        td { (state(visit, session)) }
                        td.nowrap { (relative(session.heartbeat_at, visit.now)) }
                        td.n { (grouped(session.prepared)) }
                        td.n { (grouped(session.executing)) }
                        td.nowrap { (relative(session.started_at, visit.now)) }
                        td { (session.version) }
                        td { code { (session.address) } }
                    }
                } }
            } }
        }
    }
}
