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
use crate::page::visit::{Fault, Request, Visit};

/// How many jobs may be selected: a page of them.
const MOST: usize = 100;

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
    let mut refused = Vec::new();
    for key in &keys {
        if let Err(problem) = act_on(&visit, key, form.get("do").unwrap_or_default()).await {
            refused.push(format!("{}: {}", key.name, sentence(&problem.detail)));
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
    Ok(Shown::Response(see_other(&format!("/jobs{}", back.to_query()))))
}

async fn act_on(visit: &Visit, key: &JobKey, action: &str) -> Result<(), Problem> {
    visit.caller.enters(&key.namespace)?;
    let store = &visit.api.store;
    match action {
        "run" => store.trigger(key, visit.api.engine.draw_run_id(), &visit.author).await?,
        "pause" => drop(store.pause(key, None, None, &visit.author).await?),
        "resume" => drop(store.resume(key, &visit.author).await?),
        _ => return Err(Problem::bad("choose run, pause or resume")),
    }
    Ok(())
}

fn key(text: &str) -> Option<JobKey> {
    let (namespace, name) = text.split_once('/')?;
    check_namespace(namespace).ok()?;
    check_job_name(name).ok()?;
    Some(JobKey { namespace: namespace.to_owned(), name: name.to_owned() })
}
