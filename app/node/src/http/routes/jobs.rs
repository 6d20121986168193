//! `/v1/jobs` and `/v1/jobs/{name}`: create, replace, read, delete.

use carillon_domain::store::Refusal;
use carillon_store::{Change, ControlError, JobKey, JobView, PutIf, PutJob, Saved};
use serde_json::Value;
use warp::http::StatusCode;
use warp::http::header::{ETAG, LOCATION};
use warp::reply::Response;

use crate::http::problem::{HttpResult, Problem, json_response, set_header};
use crate::http::request::body::ORDINARY;
use crate::http::request::caller::{Call, job_name};
use crate::http::request::etag::{Condition, etag};
use carillon_json::{Definition, DefinitionContext, definition, is_redacted, job_json};

/// How often a put without a condition is tried again when the job changed under it.
const TRIES: usize = 5;

/// `POST /v1/jobs`
pub(in crate::http) async fn create(mut call: Call) -> HttpResult {
    let namespace = call.namespace_only()?;
    let body = call.json(ORDINARY).await?;
    let saved = save(&call, body, namespace, None, Condition::Absent).await?;
    Ok(saved_response(&saved))
}

/// `PUT /v1/jobs/{name}`
pub(in crate::http) async fn replace(mut call: Call) -> HttpResult {
    let name = job_name(&call.segment)?;
    let namespace = call.namespace_only()?;
    let condition = Condition::of(&call.headers)?;
    let body = call.json(ORDINARY).await?;
    let saved = save(&call, body, namespace, Some(&name), condition).await.map_err(|error| match error {
        // The condition of the request did not hold.
        Unsaved::Control(
            error @ (ControlError::Refused(Refusal::NameTaken(_)) | ControlError::Refused(Refusal::NoJob(_))),
        ) => Problem::new(StatusCode::PRECONDITION_FAILED, error.to_string()),
        other => other.into(),
    })?;
    Ok(saved_response(&saved))
}

/// `GET /v1/jobs/{name}`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    let view = call.api.store.job(&call.job_key()?).await?;
    Ok(job_response(StatusCode::OK, &view))
}

/// `DELETE /v1/jobs/{name}`
pub(in crate::http) async fn delete(call: Call) -> HttpResult {
    let key = call.job_key()?;
    let if_generation = match Condition::of(&call.headers)? {
        Condition::None | Condition::Present => None,
        Condition::Generation(generation) => Some(generation),
        Condition::Absent => return Err(Problem::bad("a job that is not there cannot be deleted")),
    };
    call.api.store.delete_job(&key, if_generation, &call.author).await?;
    call.api.engine.look();
    let mut response = Response::new("".into());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Why a definition was not stored.
enum Unsaved {
    Problem(Problem),
    Control(ControlError),
}

impl From<Problem> for Unsaved {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Unsaved> for Problem {
    fn from(unsaved: Unsaved) -> Self {
        match unsaved {
            Unsaved::Problem(problem) => problem,
            Unsaved::Control(error) => error.into(),
        }
    }
}

/// Reads a definition and stores it. If a condition or a secret without its value needs the stored one, that is read first. If that changes
/// before the write and the caller set no generation, everything is done again.
async fn save(
    call: &Call,
    body: Value,
    namespace: Option<String>,
    name: Option<&str>,
    condition: Condition,
) -> Result<Saved, Unsaved> {
    let target = target_namespace(&body, namespace.as_deref());
    call.caller.enters(&target)?;
    let must_look = condition == Condition::Present || (name.is_some() && is_redacted(&body));
    for _ in 0..TRIES {
        let stored = match name.filter(|_| must_look) {
            Some(name) => stored(call, &target, name).await.map_err(Unsaved::Control)?,
            None => None,
        };
        let when = match (condition, &stored) {
            (Condition::Absent, _) => PutIf::Absent,
            (Condition::Generation(generation), _) => PutIf::Generation(generation),
            (Condition::None | Condition::Present, Some(stored)) => PutIf::Generation(stored.state.generation),
            (Condition::None, None) => PutIf::Any,
            (Condition::Present, None) => {
                let name = name.unwrap_or_default().to_owned();
                return Err(Unsaved::Control(ControlError::Refused(Refusal::NoJob(JobKey {
                    namespace: target,
                    name,
                }))));
            }
        };
        let executors = call.api.engine.executors();
        let place = DefinitionContext {
            namespace: namespace.as_deref(),
            name,
            executors: Some(&executors),
            stored: stored.as_ref().map(|stored| stored.job.as_ref()),
        };
        let Definition { job, paused } = definition(body.clone(), &place).map_err(Problem::fields)?;
        match call.api.puts.put(PutJob { job, paused, when, author: call.author.clone() }).await {
            Ok(saved) => {
                call.api.engine.look();
                return Ok(saved);
            }
            Err(ControlError::Refused(Refusal::Stale { .. }) | ControlError::Refused(Refusal::NoJob(_)))
                if !matches!(condition, Condition::Generation(_)) => {}
            Err(error) => return Err(Unsaved::Control(error)),
        }
    }
    Err(Problem::new(StatusCode::CONFLICT, "the job is being changed by others; try again").into())
}

/// The stored job of that name, if there is one.
pub(in crate::http) async fn stored(call: &Call, namespace: &str, name: &str) -> Result<Option<JobView>, ControlError> {
    let key = JobKey { namespace: namespace.to_owned(), name: name.to_owned() };
    match call.api.store.job(&key).await {
        Ok(view) => Ok(Some(view)),
        Err(ControlError::Refused(Refusal::NoJob(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a definition belongs, before it is read: whether the caller may go there is asked first.
pub(in crate::http) fn target_namespace(body: &Value, of_query: Option<&str>) -> String {
    let of_body = body.get("namespace").and_then(Value::as_str);
    of_query.or(of_body).unwrap_or("default").to_owned()
}

/// A job with its entity tag.
pub(in crate::http) fn job_response(status: StatusCode, view: &JobView) -> Response {
    let mut response = json_response(status, &job_json(view));
    set_header(&mut response, ETAG, &etag(view.state.generation));
    response
}

fn saved_response(saved: &Saved) -> Response {
    let created = saved.change == Change::Created;
    let mut response = job_response(if created { StatusCode::CREATED } else { StatusCode::OK }, &saved.view);
    if created {
        let job = &saved.view.job;
        let location = format!("/v1/jobs/{}?namespace={}", job.name, job.namespace);
        set_header(&mut response, LOCATION, &location);
    }
    response
}
