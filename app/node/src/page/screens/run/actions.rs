//! The actions on a run.

use crate::config::Role;
use crate::page::answer::see_other;
use crate::page::layout::Shown;
use crate::page::screens::run::visible;
use crate::page::visit::{Fault, Request};

/// `POST /runs/{id}/cancel`
pub(crate) async fn cancel(request: &mut Request, segment: &str) -> Result<Shown, Fault> {
    let (visit, _) = request.form(Role::Operator).await?;
    let run = visible(&visit, segment).await?.id;
    visit.api.store.cancel(run, &visit.author).await?;
    visit.api.engine.cancel(run);
    Ok(Shown::Response(see_other(&format!("/runs/{run}?said=cancelled"))))
}
