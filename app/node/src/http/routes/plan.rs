//! `POST /v1/jobs/{name}/plan`: what a put of this body would change. Nothing is stored.
//!
//! The body is read and checked as a put does it. So the put of a plan without a fault is taken, unless somebody else is faster.

use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_store::{ControlError, JobKey, JobView, PutIf};
use serde_json::{Value, json};
use warp::http::StatusCode;

use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::body::ORDINARY;
use crate::http::request::caller::{Call, job_name};
use crate::http::request::etag::Condition;
use crate::http::routes::jobs::{stored, target_namespace};
use carillon_json::{Definition, DefinitionContext, changed_fields, definition, definition_json};

/// How many due times a plan tells.
const DUE_TIMES: usize = 10;

pub(in crate::http) async fn plan(mut call: Call) -> HttpResult {
    let name = job_name(&call.segment)?;
    let namespace = call.namespace_only()?;
    let condition = Condition::of(&call.headers)?;
    let body = call.json(ORDINARY).await?;
    let target = target_namespace(&body, namespace.as_deref());
    call.caller.enters(&target)?;
    let before = stored(&call, &target, &name).await?;
    meets(condition, before.as_ref(), &JobKey { namespace: target, name: name.clone() })?;
    let executors = call.api.engine.executors();
    let place = DefinitionContext {
        namespace: namespace.as_deref(),
        name: Some(&name),
        executors: Some(&executors),
        stored: before.as_ref().map(|before| before.job.as_ref()),
    };
    let put = definition(body, &place).map_err(Problem::fields)?;
    let now = call.api.store.now().await?;
    Ok(json_response(StatusCode::OK, &plan_json(&put, before.as_ref(), now)?))
}

/// Whether the condition of the put holds, in the words of the put.
fn meets(condition: Condition, before: Option<&JobView>, key: &JobKey) -> Result<(), Problem> {
    let stored = before.map(|view| view.state.generation);
    let checked = match condition {
        Condition::Present if stored.is_none() => Err(Refusal::NoJob(key.clone())),
        Condition::None | Condition::Present => Ok(()),
        Condition::Absent => PutIf::Absent.check(key, stored),
        Condition::Generation(expected) => PutIf::Generation(expected).check(key, stored),
    };
    checked.map_err(|refusal| Problem::new(StatusCode::PRECONDITION_FAILED, ControlError::Refused(refusal).to_string()))
}

/// The definition before and after, without values of secrets, the fields that differ, and the due times from now on.
fn plan_json(put: &Definition, before: Option<&JobView>, now: Timestamp) -> Result<Value, Problem> {
    let is_paused = before.is_some_and(|view| view.pause().is_some());
    let shown = |job, paused: bool| {
        let mut shown = definition_json(job);
        shown["paused"] = json!(paused);
        shown
    };
    let was = before.map_or(Value::Null, |view| shown(&view.job, is_paused));
    let will_be = shown(&put.job, put.paused.unwrap_or(is_paused));
    // Of a new job all would differ, which nobody wants to read.
    let changes = if before.is_some() { changed_fields(&was, &will_be) } else { Vec::new() };
    let change = match before {
        None => "created",
        // A secret may change, which the shown definitions do not tell.
        Some(view) if changes.is_empty() && *view.job == put.job => "unchanged",
        Some(_) => "updated",
    };
    let next = match before.filter(|view| !put.job.timing_differs(&view.job)) {
        Some(view) => due_times(view.timeline.after(now)),
        None => {
            let timeline = put.job.timeline(now).map_err(|error| Problem::field("schedule", error.to_string()))?;
            due_times(timeline.after(now))
        }
    };
    let changes: Vec<Value> = changes
        .into_iter()
        .map(|field| json!({"field": field.path, "before": field.before, "after": field.after}))
        .collect();
    Ok(json!({
        "change": change,
        "generation": before.map(|view| view.state.generation),
        "before": was,
        "after": will_be,
        "changes": changes,
        "next_before": before.map(|view| due_times(view.timeline.after(now))),
        "next": next,
    }))
}

fn due_times(times: impl Iterator<Item = Timestamp>) -> Vec<String> {
    times.take(DUE_TIMES).map(|due| due.to_string()).collect()
}
