//! Jobs, runs and outputs as resources, each under an address.
//!
//! A list has the jobs of one namespace and its newest runs. Older runs, and jobs elsewhere, are read by the templates.

use carillon_domain::id::RunId;
use carillon_domain::name::{check_job_name, check_namespace};
use rmcp::model::{ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use super::surroundings::Surroundings;
use crate::client::Call;
use crate::failure::{CommandFailure, FailureKind};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const PAGE: &str = "100";
/// The cursor of the page of runs, which follows the jobs. Cursors of jobs begin otherwise.
const RUNS: &str = "runs";
const OF_JOBS: &str = "jobs:";

/// How resources are addressed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, title: &str, description: &str, media_type: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_description(description).with_mime_type(media_type)
    };
    vec![
        template(
            "carillon://jobs/{namespace}/{name}",
            "job",
            "A job",
            "The definition of a job and how it stands.",
            JSON,
        ),
        template("carillon://runs/{id}", "run", "A run", "A run, with the output that is kept of it.", JSON),
        template("carillon://runs/{id}/output", "output", "An output", "The output that is kept of a run.", TEXT),
    ]
}

/// A page of the list: pages of jobs, then one of runs.
pub(super) fn page(surroundings: &Surroundings, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    match cursor {
        Some(RUNS) => runs(surroundings).map_err(|failure| told(&failure)),
        cursor => {
            let of_jobs = cursor.map(|cursor| {
                let unknown =
                    || ErrorData::invalid_params("the cursor is not one of this list: use nextCursor as it was", None);
                cursor.strip_prefix(OF_JOBS).ok_or_else(unknown)
            });
            jobs(surroundings, of_jobs.transpose()?).map_err(|failure| told(&failure))
        }
    }
}

fn jobs(surroundings: &Surroundings, cursor: Option<&str>) -> Result<ListResourcesResult, CommandFailure> {
    let call = Call::get("/v1/jobs")
        .with("namespace", surroundings.namespace.as_ref())
        .with("limit", PAGE)
        .with_some("cursor", cursor);
    let mut reply = surroundings.client.call(call)?;
    let resource = |job: &Value| {
        let (namespace, name, schedule) = (text(job, "namespace"), text(job, "name"), text(job, "schedule"));
        Resource::new(format!("carillon://jobs/{namespace}/{name}"), name)
            .with_title(format!("Job {namespace}/{name}"))
            .with_description(format!("A job, due {schedule}"))
            .with_mime_type(JSON)
    };
    let mut page = ListResourcesResult::with_all_items(reply.take_items().iter().map(resource).collect());
    let next = reply.body["next_cursor"].as_str().map(|next| format!("{OF_JOBS}{next}"));
    page.next_cursor = Some(next.unwrap_or_else(|| RUNS.to_owned()));
    Ok(page)
}

fn runs(surroundings: &Surroundings) -> Result<ListResourcesResult, CommandFailure> {
    let call = Call::get("/v1/runs").with("namespace", surroundings.namespace.as_ref()).with("limit", PAGE);
    let runs = surroundings.client.call(call)?.take_items();
    let resource = |run: &Value| {
        let (id, job) = (text(run, "id"), text(run, "job"));
        Resource::new(format!("carillon://runs/{id}"), id)
            .with_title(format!("Run of {job}, {}", text(run, "status")))
            .with_description(format!("A run of job {job} that was due at {}", text(run, "due_at")))
            .with_mime_type(JSON)
    };
    Ok(ListResourcesResult::with_all_items(runs.iter().map(resource).collect()))
}

/// The resource of an address.
pub(super) fn read(surroundings: &Surroundings, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || {
        let ways = "carillon://jobs/NAMESPACE/NAME, carillon://runs/ID or carillon://runs/ID/output";
        ErrorData::resource_not_found(format!("{uri:?} is not the address of a resource: it must be {ways}"), None)
    };
    let parts: Vec<&str> = uri.strip_prefix("carillon://").ok_or_else(unknown)?.split('/').collect();
    let call = match parts.as_slice() {
        ["jobs", namespace, name] if check_namespace(namespace).is_ok() && check_job_name(name).is_ok() => {
            Call::get(format!("/v1/jobs/{name}")).with("namespace", *namespace)
        }
        ["runs", id] | ["runs", id, "output"] if id.parse::<RunId>().is_ok() => Call::get(format!("/v1/runs/{id}")),
        _ => return Err(unknown()),
    };
    let body = surroundings.client.call(call).map_err(|failure| told(&failure))?.body;
    let (text, media_type) = match parts.last() {
        Some(&"output") if parts[0] == "runs" => (text(&body, "output").to_owned(), TEXT),
        _ => (format!("{body:#}"), JSON),
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media_type)]))
}

/// A failure of the API as one of the protocol, which has no other for resources.
fn told(failure: &CommandFailure) -> ErrorData {
    match failure.kind {
        FailureKind::NotFound => ErrorData::resource_not_found(failure.sentence.clone(), None),
        FailureKind::Usage => ErrorData::invalid_params(failure.sentence.clone(), None),
        _ => ErrorData::internal_error(failure.sentence.clone(), None),
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}
