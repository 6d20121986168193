//! Accepting a loss of commits: a page that says the meaning, and the action.

use carillon_store::RecordedLoss;
use maud::html;
use tracing::warn;
use warp::http::StatusCode;

use super::losses;
use crate::config::Role;
use crate::http::problem::Problem;
use crate::losses::{open_loss, patience};
use crate::page::answer::see_other;
use crate::page::layout::{Shown, View, sentence};
use crate::page::screens::parts::csrf;
use crate::page::visit::{Fault, Request, Visit};

/// The page before it.
pub(crate) async fn confirm(visit: &Visit) -> Result<View, Fault> {
    visit.caller.enters_all()?;
    let losses = visit.api.store.recorded_losses().await?;
    let sessions = visit.api.store.sessions().await?;
    let unknown = open_loss(&visit.api, &visit.caller.scope(), &losses, &sessions).await?;
    let loss = losses.into_iter().find(|loss| loss.is_open());
    let body = html! {
        p { a href=(visit.links.to("/cluster")) { "← Cluster" } }
        h1 { "Accept the lost commits" }
        @match &loss {
            None => p { "There is nothing to accept." },
            Some(loss) => {
                (losses::window(visit, loss))
                div.group.narrow {
                    p { "The database went back in time. Changes of jobs and ends of runs of this time may be gone." }
                    p { "When you accept this, claims and starts go on within one heartbeat:" }
                    ul.bullets {
                        li { "A job with " code { "on_lost = skip" } " does not start again for a due time of this window. The due time is recorded as lost." }
                        li { "A job with " code { "on_lost = rerun" } " starts again, perhaps for the second time." }
                        li { "Jobs that were created, changed or deleted in this window are as they were before. Look through them first." }
                    }
                    @if let Some(unknown) = &unknown {
                        @if let Some(still) = &unknown.still {
                            p.say.bad { (sentence(&format!("It cannot be accepted yet: {still}"))) }
                        }
                        (losses::jobs(visit, unknown))
                    }
                    p.say.warn { "Wait if the database may still get its commits back. This cannot be undone." }
                    form.stack method="post" {
                        (csrf(visit))
                        input type="hidden" name="until" value=(loss.window.until_at.as_ms());
                        button.danger { "Accept, and go on" }
                    }
                }
            }
        }
    };
    Ok(View::new("Accept the lost commits", body))
}

/// Accepts the loss that the page showed. One that has grown since then is shown again.
pub(crate) async fn accept(request: &mut Request) -> Result<Shown, Fault> {
    let (visit, form) = request.form(Role::Admin).await?;
    visit.caller.enters_all()?;
    let shown = form.get("until").and_then(|text| text.parse::<i64>().ok());
    match open(&visit).await? {
        Some(loss) if shown != Some(loss.window.until_at.as_ms()) => {
            let detail = "more was lost since this page was made: open it again and look at the time";
            Err(Problem::new(StatusCode::CONFLICT, detail).into())
        }
        _ => {
            for RecordedLoss { window, .. } in
                visit.api.store.accept_losses(patience(&visit.api), &visit.author).await?
            {
                warn!("accepted: {window}");
            }
            Ok(Shown::Response(see_other(&visit.links.to("/cluster?said=accepted"))))
        }
    }
}

async fn open(visit: &Visit) -> Result<Option<RecordedLoss>, Fault> {
    let losses = visit.api.store.recorded_losses().await?;
    Ok(losses.into_iter().find(|loss| loss.is_open()))
}
