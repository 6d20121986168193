//! The actions on routes and messages: test, delete, send again.

use maud::html;

use crate::config::Role;
use crate::http::problem::Problem;
use crate::http::routes::alerts::visible;
use crate::page::answer::see_other;
use crate::page::layout::{Shown, View};
use crate::page::screens::parts::csrf;
use crate::page::visit::{Fault, Request, Visit};

/// An action on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Test,
    Delete,
}

impl Deed {
    /// By the last segment of the path.
    pub fn of(segment: &str) -> Option<Self> {
        match segment {
            "test" => Some(Deed::Test),
            "delete" => Some(Deed::Delete),
            _ => None,
        }
    }

    const fn needs(self) -> Role {
        match self {
            Deed::Test => Role::Operator,
            Deed::Delete => Role::Admin,
        }
    }
}

/// Does it, and leads to the page that shows its effect.
pub(crate) async fn act(request: &mut Request, name: &str, deed: Deed) -> Result<Shown, Fault> {
    let (visit, form) = request.form(deed.needs()).await?;
    visible(&visit.caller, &visit.api.store.route(name).await?.route)?;
    let said = match deed {
        Deed::Test => {
            visit.api.store.test_route(name, &visit.author).await?;
            visit.api.alerts.wake();
            "tested"
        }
        Deed::Delete => {
            let version = form.get("version").and_then(|text| text.parse().ok());
            let version = version.ok_or_else(|| Problem::bad("the form is not complete: open it again"))?;
            visit.api.store.delete_route(name, Some(version), &visit.author).await?;
            "route-deleted"
        }
    };
    Ok(Shown::Response(see_other(&visit.links.to(&format!("/alerts?said={said}")))))
}

/// The page before a route is deleted.
pub(crate) async fn confirm_delete(visit: &Visit, name: &str) -> Result<View, Fault> {
    let stored = visit.api.store.route(name).await?;
    visible(&visit.caller, &stored.route)?;
    let body = html! {
        p { a href=(visit.links.to("/alerts")) { "← Alerts" } }
        h1 { "Delete the route " (name) }
        form.stack.narrow method="post" {
            (csrf(visit))
            p { "Nobody is told by it any more. What it has not sent yet is dropped; what it has sent stays in the list of messages until it expires." }
            input type="hidden" name="version" value=(stored.version);
            button.danger { "Delete " (name) }
        }
    };
    Ok(View::new(format!("Delete {name}"), body))
}

/// Sends a message again.
pub(crate) async fn resend(request: &mut Request, id: u64) -> Result<Shown, Fault> {
    let (visit, _) = request.form(Role::Operator).await?;
    visit.caller.enters_all()?;
    visit.api.store.resend_delivery(id, &visit.author).await?;
    visit.api.alerts.wake();
    Ok(Shown::Response(see_other(&visit.links.to("/alerts?said=resent"))))
}
