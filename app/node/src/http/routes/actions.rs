//! The actions on a job or a run: pause, resume, run now, cancel.

use std::sync::Arc;

use carillon_domain::time::Timestamp;
use carillon_store::RunStage;
use serde_json::{Value, json};
use warp::http::StatusCode;
use warp::http::header::LOCATION;

use crate::config::Role;
use crate::http::problem::{HttpResult, Problem, json_response, set_header};
use crate::http::request::caller::Call;
use crate::http::routes::jobs::job_response;
use crate::http::routes::runs::visible_run;
use carillon_json::{Fields, checked_run_params, run_json, run_params};

/// The longest reason of a pause, in characters.
const LONGEST_REASON: usize = 1_000;

/// `POST /v1/jobs/{name}/pause`
pub(in crate::http) async fn pause(mut call: Call) -> HttpResult {
    let key = call.job_key()?;
    let (until, reason) = pause_of(call.optional_json().await?)?;
    if let Some(until) = until
        && until <= call.api.store.now().await?
    {
        return Err(Problem::field("until", format!("{until} has passed")));
    }
    let view = call.api.store.pause(&key, until, reason, &call.author).await?;
    call.api.engine.look();
    Ok(job_response(StatusCode::OK, &view))
}

fn pause_of(body: Value) -> Result<(Option<Timestamp>, Option<String>), Problem> {
    let mut fields = Fields::of(body, "a pause").map_err(Problem::fields)?;
    let (until, reason) = (fields.time("until"), fields.text("reason"));
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
        fields.fault("reason", format!("it is longer than {LONGEST_REASON} characters"));
    }
    if reason.as_ref().is_some_and(|reason| reason.chars().any(char::is_control)) {
        fields.fault("reason", "it holds characters that cannot be printed");
    }
    fields.finish().map_err(Problem::fields)?;
    Ok((until, reason))
}

/// `POST /v1/jobs/{name}/resume`
pub(in crate::http) async fn resume(mut call: Call) -> HttpResult {
    let key = call.job_key()?;
    call.nothing_more().await?;
    let view = call.api.store.resume(&key, &call.author).await?;
    call.api.engine.look();
    Ok(job_response(StatusCode::OK, &view))
}

/// `POST /v1/jobs/{name}/run`
pub(in crate::http) async fn run_now(mut call: Call) -> HttpResult {
    let key = call.job_key()?;
    let params = match run_params(call.optional_json().await?).map_err(Problem::fields)? {
        None => None,
        Some(params) => {
            // Params may be a command, so whoever gives them must be allowed to change the definition.
            call.caller.needs(Role::Admin)?;
            let job = call.api.store.job(&key).await?.job;
            let checked = checked_run_params(params, &job, &call.api.engine.executors());
            Some(checked.map_err(Problem::fields)?)
        }
    };
    let run = call.api.engine.draw_run_id();
    call.api.store.trigger_with(&key, run, params.map(Arc::from), &call.author).await?;
    call.api.engine.look();
    let mut response = json_response(StatusCode::ACCEPTED, &json!({"id": run.to_string()}));
    set_header(&mut response, LOCATION, &format!("/v1/runs/{run}"));
    Ok(response)
}

/// `POST /v1/runs/{id}/cancel`: 202 while the run is ending, 200 where it never started.
pub(in crate::http) async fn cancel(mut call: Call) -> HttpResult {
    call.no_query()?;
    call.nothing_more().await?;
    let run = visible_run(&call).await?.id;
    let view = call.api.store.cancel(run, &call.author).await?;
    call.api.engine.cancel(run);
    let ending = matches!(view.stage, RunStage::Running { .. });
    Ok(json_response(if ending { StatusCode::ACCEPTED } else { StatusCode::OK }, &run_json(&view)))
}
