//! `POST /v1/jobs:batch`: up to 10,000 jobs, created or replaced in one transaction per 1,000.
//!
//! Each item has an answer of its own; a faulty one does not hold up the others. Reading so many definitions takes a
//! while. So it runs outside the threads that answer requests, and while the thousand before is written to the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use carillon_domain::job::Job;
use carillon_domain::store::Refusal;
use carillon_store::{Author, ControlError, JobKey, PutIf, PutJob, Saved, StoreError};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use warp::http::StatusCode;

use crate::engine::EngineHandle;
use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::access::Caller;
use crate::http::request::body::BATCH;
use crate::http::request::caller::Call;
use crate::http::routes::jobs::target_namespace;
use crate::http::state::ApiState;
use carillon_json::{DefinitionContext, FieldError, Fields, definition, is_redacted};

const MOST_ITEMS: usize = 10_000;
const IN_ONE_TRANSACTION: usize = 1_000;
/// How many transactions of one batch are on their way at once.
const ON_THE_WAY: usize = 2;

/// The stored definitions that items need for their secrets, with their generations.
type Stored = BTreeMap<usize, (Arc<Job>, u64)>;

/// `POST /v1/jobs:batch`
pub(in crate::http) async fn put_all(mut call: Call) -> HttpResult {
    let namespace = call.namespace_only()?;
    let items = items(call.json(BATCH).await?)?;
    let stored = stored(&call, &items, namespace.as_deref()).await?;
    let written = write_all(Reader::new(&call, namespace, stored), Writer::new(&call), parts(items)).await?;
    let outcomes = outcomes(written)?;
    Ok(json_response(StatusCode::OK, &json!({"items": outcomes})))
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
            Err(ControlError::Refused(Refusal::NoJob(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stored)
}

/// A thousand items, and where they begin in the batch.
type Part = (usize, Vec<Value>);

fn parts(items: Vec<Value>) -> Vec<Part> {
    let (mut parts, mut items) = (Vec::new(), items.into_iter().enumerate().peekable());
    while let Some((first, _)) = items.peek() {
        let first = *first;
        parts.push((first, items.by_ref().take(IN_ONE_TRANSACTION).map(|(_, item)| item).collect()));
    }
    parts
}

/// Reads the definitions, part by part.
struct Reader(Arc<Mutex<Reading>>);

struct Reading {
    engine: EngineHandle,
    caller: Caller,
    author: Author,
    namespace: Option<String>,
    stored: Stored,
    seen: BTreeSet<String>,
}

impl Reader {
    fn new(call: &Call, namespace: Option<String>, stored: Stored) -> Self {
        let (engine, caller, author) = (call.api.engine.clone(), call.caller.clone(), call.author.clone());
        Self(Arc::new(Mutex::new(Reading { engine, caller, author, namespace, stored, seen: BTreeSet::new() })))
    }

    async fn read(&self, part: Part) -> Result<Vec<Item>, StoreError> {
        let reading = Arc::clone(&self.0);
        let read = move || reading.lock().unwrap_or_else(PoisonError::into_inner).read(part);
        let ending = |_| StoreError::Retryable("the server is ending".to_owned());
        tokio::task::spawn_blocking(read).await.map_err(ending)
    }
}

impl Reading {
    fn read(&mut self, (first, items): Part) -> Vec<Item> {
        let executors = self.engine.executors();
        let read = items.into_iter().enumerate().map(|(nth, body)| {
            let stored = self.stored.get(&(first + nth));
            let place = DefinitionContext {
                namespace: self.namespace.as_deref(),
                name: None,
                executors: Some(&executors),
                stored: stored.map(|(job, _)| job.as_ref()),
            };
            let target = target_namespace(&body, place.namespace);
            let name = body.get("name").and_then(Value::as_str).unwrap_or_default().chars().take(128).collect();
            let when = stored.map_or(PutIf::Any, |(_, generation)| PutIf::Generation(*generation));
            let put = self.caller.enters(&target).map_err(Problem::into_errors).and_then(|()| definition(body, &place));
            let put = put.and_then(|read| match self.seen.insert(read.job.key()) {
                true => Ok(Box::new(PutJob { job: read.job, paused: read.paused, when, author: self.author.clone() })),
                false => Err(vec![FieldError::new("name", "this job stands in the batch before")]),
            });
            Item { namespace: target, name, put }
        });
        read.collect()
    }
}

/// The outcome of a part: one for each of its items, and the reason where its transaction failed.
struct Written {
    outcomes: Vec<Value>,
    applied: Result<(), StoreError>,
}

/// Reads and stores part by part: while some are on their way to the database, the next is read.
async fn write_all(reader: Reader, writer: Arc<Writer>, parts: Vec<Part>) -> Result<Vec<Written>, Problem> {
    let (lanes, mut on_the_way) = (Arc::new(Semaphore::new(ON_THE_WAY)), Vec::new());
    for part in parts {
        let read = reader.read(part).await;
        let (writer, lane) = (writer.clone(), lanes.clone().acquire_owned().await);
        on_the_way.push(tokio::spawn(async move {
            let written = writer.write(read).await;
            drop(lane);
            written
        }));
    }
    let mut written = Vec::with_capacity(on_the_way.len());
    for part in on_the_way {
        let ending = |_| StoreError::Unknown("the server is ending".to_owned());
        written.push(part.await.map_err(ending)?);
    }
    Ok(written)
}

/// Stores what can be stored, a transaction for each part. Once one is known to have failed, the rest is not tried.
struct Writer {
    api: Arc<ApiState>,
    failed: AtomicBool,
}

impl Writer {
    fn new(call: &Call) -> Arc<Self> {
        Arc::new(Self { api: call.api.clone(), failed: AtomicBool::new(false) })
    }

    async fn write(&self, part: Result<Vec<Item>, StoreError>) -> Written {
        let (mut outcomes, mut places, mut puts) = (Vec::new(), Vec::new(), Vec::new());
        let mut applied = part.as_ref().map(|_| ()).map_err(Clone::clone);
        for item in part.unwrap_or_default() {
            let mut outcome = json!({"namespace": item.namespace, "name": item.name, "status": "error", "errors": []});
            match item.put {
                Ok(put) => {
                    places.push(outcomes.len());
                    puts.push(*put);
                }
                Err(faults) => outcome["errors"] = json!(faults),
            }
            outcomes.push(outcome);
        }
        if !puts.is_empty() {
            match self.put(&puts).await {
                Ok(results) => {
                    places.iter().zip(results).for_each(|(place, result)| tell(&mut outcomes[*place], result))
                }
                Err(error) => {
                    places.iter().for_each(|place| tell(&mut outcomes[*place], Err(error.clone().into())));
                    applied = Err(error);
                }
            }
        }
        if applied.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        Written { outcomes, applied }
    }

    async fn put(&self, puts: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(StoreError::Retryable("another part of the batch failed".into()));
        }
        let results = self.api.store.put_jobs(puts).await?;
        self.api.engine.look();
        Ok(results)
    }
}

/// The outcomes of all items, in order. If nothing was stored at all, the whole request failed.
fn outcomes(written: Vec<Written>) -> Result<Vec<Value>, Problem> {
    let any_applied = written.iter().any(|part| part.applied.is_ok());
    let mut failures = written.iter().filter_map(|part| part.applied.as_ref().err());
    let unknown = failures.clone().find(|error| matches!(error, StoreError::Unknown(_)));
    match unknown.or_else(|| failures.next()) {
        Some(error) if !any_applied => Err(error.clone().into()),
        _ => Ok(written.into_iter().flat_map(|part| part.outcomes).collect()),
    }
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
