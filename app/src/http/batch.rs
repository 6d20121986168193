//! `POST /v1/jobs:batch`: up to 10,000 jobs, created or replaced in one transaction per 1,000.
//!
//! Each item has an answer of its own; a faulty one does not hold up the others. Reading so many definitions takes a
//! while, so it is done beside the threads that answer requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carillon_adapters::store::{ControlError, JobKey, PutIf, PutJob, Saved, StoreError};
use carillon_domain::job::Job;
use serde_json::{Value, json};
use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::reply::Response;
use warp::{Filter, path};

use super::body::BATCH;
use super::call::{Admitted, Call, call};
use super::jobs::target_namespace;
use super::problem::{Answer, Problem, answer, json_response};
use super::state::ApiState;
use crate::config::Role;
use crate::wire::{FieldError, Fields, Place, definition, is_redacted};

const MOST_ITEMS: usize = 10_000;
const IN_ONE_TRANSACTION: usize = 1_000;

/// The stored definitions that items need for their secrets, with their generations.
type Stored = BTreeMap<usize, (Arc<Job>, u64)>;

/// `POST /v1/jobs:batch`
pub(super) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = path!("v1" / "jobs:batch").and(warp::post()).and(call(api, Role::Admin));
    let handler = async |admitted: Admitted| -> Answer {
        let mut call = admitted?;
        let namespace = call.namespace_only()?;
        let items = items(call.json(BATCH).await?)?;
        let stored = stored(&call, &items, namespace.as_deref()).await?;
        let batch = read(&call, items, namespace, stored).await?;
        let outcomes = write(&call, batch).await?;
        Ok(json_response(StatusCode::OK, &json!({"items": outcomes})))
    };
    route.then(move |call| answer(handler(call))).boxed()
}

/// An item that was read: what to store, or its faults.
struct Item {
    namespace: String,
    name: String,
    put: Result<Box<PutJob>, Vec<FieldError>>,
}

fn items(body: Value) -> Result<Vec<Value>, Problem> {
    let mut fields = Fields::of(body, "a batch").map_err(Problem::fields)?;
    let items = match fields.any("items") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(Problem::field("items", "it must be an array of jobs")),
        None => return Err(Problem::field("items", "it is required")),
    };
    fields.finish().map_err(Problem::fields)?;
    if items.len() > MOST_ITEMS {
        let told = format!("a batch has at most {MOST_ITEMS} items, not {}", items.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, told));
    }
    Ok(items)
}

async fn stored(call: &Call, items: &[Value], namespace: Option<&str>) -> Result<Stored, Problem> {
    let mut stored = Stored::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_redacted(item)) {
        let namespace = target_namespace(item, namespace);
        let Some(name) = item.get("name").and_then(Value::as_str) else { continue };
        if !call.caller.sees(&namespace) {
            continue;
        }
        match call.api.store.job(&JobKey { namespace, name: name.to_owned() }).await {
            Ok(view) => drop(stored.insert(index, (view.job, view.state.generation))),
            Err(ControlError::NoJob { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stored)
}

async fn read(call: &Call, items: Vec<Value>, namespace: Option<String>, stored: Stored) -> Result<Vec<Item>, Problem> {
    let (engine, caller) = (call.api.engine.clone(), call.caller.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let (mut seen, executors) = (BTreeSet::new(), engine.executors());
        let read = items.into_iter().enumerate().map(|(index, body)| {
            let stored = stored.get(&index);
            let place = Place {
                namespace: namespace.as_deref(),
                name: None,
                executors: &executors,
                stored: stored.map(|(job, _)| job.as_ref()),
            };
            let target = target_namespace(&body, place.namespace);
            let name = body.get("name").and_then(Value::as_str).unwrap_or_default().chars().take(128).collect();
            let when = stored.map_or(PutIf::Any, |(_, generation)| PutIf::Generation(*generation));
            let put = caller.enters(&target).map_err(Problem::into_errors).and_then(|()| definition(body, &place));
            let put = put.and_then(|read| match seen.insert(read.job.key()) {
                true => Ok(Box::new(PutJob { job: read.job, paused: read.paused, when })),
                false => Err(vec![FieldError::new("name", "this job stands in the batch before")]),
            });
            Item { namespace: target, name, put }
        });
        read.collect()
    });
    reading
        .await
        .map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending; nothing was applied"))
}

/// Stores what can be stored, a transaction per 1,000. Once one failed the rest is not tried; if nothing was stored by
/// then, the whole request failed.
async fn write(call: &Call, batch: Vec<Item>) -> Result<Vec<Value>, Problem> {
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut puts = Vec::new();
    for (index, item) in batch.into_iter().enumerate() {
        let mut outcome = json!({"namespace": item.namespace, "name": item.name, "status": "error", "errors": []});
        match item.put {
            Ok(put) => puts.push((index, *put)),
            Err(faults) => outcome["errors"] = json!(faults),
        }
        outcomes.push(outcome);
    }
    let mut failed: Option<StoreError> = None;
    for (nth, chunk) in puts.chunks(IN_ONE_TRANSACTION).enumerate() {
        let (places, jobs): (Vec<usize>, Vec<PutJob>) = chunk.iter().cloned().unzip();
        let results = match failed {
            Some(_) => Err(StoreError::Retryable("an earlier part of the batch failed".into())),
            None => call.api.store.put_jobs(&jobs).await,
        };
        match results {
            Ok(results) => {
                call.api.engine.look();
                places.iter().zip(results).for_each(|(place, result)| tell(&mut outcomes[*place], result));
            }
            Err(error) if nth == 0 => return Err(error.into()),
            Err(error) => {
                for place in &places {
                    tell(&mut outcomes[*place], Err(error.clone().into()));
                }
                failed = Some(error);
            }
        }
    }
    Ok(outcomes)
}

fn tell(outcome: &mut Value, result: Result<Saved, ControlError>) {
    match result {
        Ok(saved) => {
            outcome["status"] = json!(saved.change.as_str());
            outcome["generation"] = json!(saved.view.state.generation);
        }
        Err(error) => {
            let problem = Problem::from(error);
            if let Some(told) = problem.outcome {
                outcome["outcome"] = json!(told);
            }
            outcome["errors"] = json!(problem.into_errors());
        }
    }
}
