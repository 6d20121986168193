//! Actions on many selected jobs at once.

use carillon_domain::name::{check_job_name, check_namespace};
use carillon_store::JobKey;
use maud::{Markup, html};
use warp::http::StatusCode;

use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::answer::see_other;
use crate::page::layout::{Shown, sentence};
use crate::page::params::Params;
use crate::page::screens::parts::{UNDO_BY, UNDO_OF, csrf, said, said_with_way_back};
use crate::page::visit::{Fault, Request, Visit};

/// How many jobs may be selected: a page of them.
const MOST: usize = 100;
/// The longest query that browsers and proxies surely hand on, in bytes.
const LONGEST_QUERY: usize = 6_000;

/// The buttons. They are there without the script too.
pub(super) fn bar() -> Markup {
    html! {
        div #bulk .row {
            output { "None selected" }
            button name="do" value="run" { "Run now" }
            button name="do" value="pause" { "Pause" }
            button name="do" value="resume" { "Resume" }
        }
    }
}

/// `POST /jobs/do`
pub(crate) async fn act(request: &mut Request) -> Result<Shown, Fault> {
    let (visit, form) = request.form(Role::Operator).await?;
    let keys: Vec<JobKey> = form.all("job").take(MOST).filter_map(key).collect();
    let (mut refused, mut can_go_back) = (Vec::new(), true);
    let action = form.get("do").unwrap_or_default();
    for key in &keys {
        match act_on(&visit, key, action).await {
            Ok(is_back) => can_go_back &= is_back,
            Err(problem) => refused.push(format!("{}: {}", key.name, sentence(&problem.detail))),
        }
    }
    visit.api.engine.look();
    if !refused.is_empty() {
        let done = keys.len() - refused.len();
        let detail = format!("{done} of {} were done. {}", keys.len(), refused.join(" "));
        return Err(Problem::new(StatusCode::CONFLICT, detail).into());
    }
    let said = if keys.is_empty() { "none" } else { "done" };
    let back = Params::parse(form.get("back").unwrap_or_default().trim_start_matches('?')).with("said", Some(said));
    let back = if can_go_back { with_way_back(back, action, &keys) } else { back };
    Ok(Shown::Response(see_other(&format!("/jobs{}", back.to_query()))))
}

/// Does an action on one job; tells whether its opposite leads back to how the job stood.
async fn act_on(visit: &Visit, key: &JobKey, action: &str) -> Result<bool, Problem> {
    visit.caller.enters(&key.namespace)?;
    let store = &visit.api.store;
    match action {
        "run" => {
            store.trigger(key, visit.api.engine.draw_run_id(), &visit.author).await?;
            Ok(false)
        }
        "pause" => {
            let before = store.job(key).await?;
            store.pause(key, None, None, &visit.author).await?;
            Ok(before.pause().is_none())
        }
        "resume" => {
            let before = store.job(key).await?;
            store.resume(key, &visit.author).await?;
            // Pausing many at once knows no reason and no end.
            Ok(before.pause().is_some_and(|pause| pause.until.is_none() && pause.reason.is_none()))
        }
        _ => Err(Problem::bad("choose run, pause or resume")),
    }
}

/// Adds to an address what takes the action back; nothing where it would become too long.
fn with_way_back(back: Params, action: &str, keys: &[JobKey]) -> Params {
    let by = if action == "pause" { "resume" } else { "pause" };
    let names = keys.iter().map(|key| format!("{}/{}", key.namespace, key.name));
    let whole = names.fold(back.clone().with(UNDO_BY, Some(by)), |whole, name| whole.and(UNDO_OF, name));
    if keys.is_empty() || whole.to_query().len() > LONGEST_QUERY { back } else { whole }
}

/// The effect of the action that led here, with the way back where the address holds one.
pub(super) fn notice(visit: &Visit) -> Markup {
    let by = visit.params.get(UNDO_BY).filter(|_| visit.may(Role::Operator));
    let Some(by @ ("pause" | "resume")) = by else { return said(visit) };
    let form = html! {
        form method="post" action=(visit.links.to("/jobs/do")) {
            (csrf(visit))
            @for name in visit.params.all(UNDO_OF).take(MOST) { input type="hidden" name="job" value=(name); }
            input type="hidden" name="back" value=(visit.state().to_query());
            button name="do" value=(by) { "Undo" }
        }
    };
    said_with_way_back(visit, &form)
}

fn key(text: &str) -> Option<JobKey> {
    let (namespace, name) = text.split_once('/')?;
    check_namespace(namespace).ok()?;
    check_job_name(name).ok()?;
    Some(JobKey { namespace: namespace.to_owned(), name: name.to_owned() })
}
