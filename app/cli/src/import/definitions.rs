//! Files of definitions: an export in JSON, YAML or TOML, a list of jobs, or one job.
//!
//! Such a file says everything about its jobs: a field that it leaves out has its default. Only a pause stays where the file does not speak of
//! it. The file is taken for all jobs of the namespaces that its jobs are in, and `--prune` deletes the others there.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::plan::{Plan, Stored};
use super::report::Row;
use crate::client::{Call, Client};
use crate::document::Format;
use crate::failure::CommandFailure;
use carillon_json::crontab_jobs::definition_of;
use carillon_json::{DefinitionContext, as_written, definition, definition_json, fill_secrets};

/// The definitions in a file.
pub(super) fn read(format: Format, text: Vec<u8>, file: &str) -> Result<Vec<Value>, CommandFailure> {
    let text = String::from_utf8(text)
        .map_err(|error| CommandFailure::usage(format!("{file}: this is not text in UTF-8: {error}")))?;
    match format.read(&text, file, "a file of jobs")? {
        Value::Array(items) => Ok(items),
        Value::Object(mut fields) => match fields.remove("items") {
            Some(Value::Array(items)) if fields.is_empty() => Ok(items),
            Some(_) => Err(CommandFailure::usage(format!("{file}: items must be a list of jobs, and stand alone"))),
            None => Ok(vec![Value::Object(fields)]),
        },
        _ => Err(CommandFailure::usage(format!("{file}: this is not a file of jobs: write items, a list of jobs"))),
    }
}

/// The jobs of a file, and the rows of those that need no server to be refused.
pub(super) fn plan(items: Vec<Value>, namespace: &str) -> Plan {
    let (mut plan, mut seen) = (Plan::default(), BTreeSet::new());
    for (nth, item) in items.into_iter().enumerate() {
        let read = job(item, namespace);
        let mut row = Row::of_job(read.as_ref().unwrap_or(&Map::new()));
        match read {
            Err(problem) => row.fail(&format!("item {}: {problem}", nth + 1)),
            Ok(job) if !seen.insert(key(&job)) => row.fail("this job stands in the file before"),
            Ok(job) => plan.to_send.push((plan.rows.len(), Value::Object(job))),
        }
        plan.rows.push(row);
    }
    plan
}

/// An item as a definition. A namespace in the file counts unless the arguments name another than the default.
fn job(item: Value, namespace: &str) -> Result<Map<String, Value>, &'static str> {
    let Value::Object(mut job) = item else {
        return Err("this is not a job: write its fields, such as name and schedule");
    };
    if !job.get("name").is_some_and(Value::is_string) {
        return Err("the job has no name");
    }
    as_written(&mut job);
    if namespace != "default" || !job.contains_key("namespace") {
        job.insert("namespace".into(), json!(namespace));
    }
    Ok(job)
}

/// The namespace and the name of a job as one text.
pub(super) fn key(job: &Map<String, Value>) -> String {
    let text = |key: &str| job.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// The stored jobs of the namespaces that the file's jobs are in.
pub(super) fn stored(client: &Client, plan: &Plan) -> Result<Stored, CommandFailure> {
    let of_file: BTreeSet<&str> = plan.to_send.iter().filter_map(|(_, job)| job["namespace"].as_str()).collect();
    let mut stored = Stored::new();
    for namespace in of_file {
        client.each(&Call::get("/v1/jobs").with("namespace", namespace), None, |job| {
            // Asked again here: what is deleted must not depend on how a server reads a filter.
            if job["namespace"] == namespace {
                stored.extend(job.as_object().map(key).map(|key| (key, job)));
            }
            Ok(())
        })?;
    }
    Ok(stored)
}

/// Tells in each row what would change, without sending anything.
pub(super) fn compare(plan: &mut Plan, stored: Option<&Stored>) {
    for (row, job) in std::mem::take(&mut plan.to_send) {
        let before = stored.and_then(|stored| stored.get(&job.as_object().map(key).unwrap_or_default()));
        match would_change(job, before) {
            Err(faults) => plan.rows[row].fail(&faults),
            Ok(change) => plan.rows[row].change = stored.map(|_| change.to_owned()),
        }
    }
}

fn would_change(mut job: Value, before: Option<&Value>) -> Result<&'static str, String> {
    if before.is_some() {
        // Nobody is shown a secret: one without its value is taken for the stored one, as the server takes it.
        fill_secrets(&mut job["params"]);
    }
    let place = DefinitionContext { namespace: None, name: None, executors: None, stored: None };
    let read = definition(job, &place).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
        faults.join("; ")
    })?;
    let Some(before) = before else { return Ok("created") };
    let same = Value::Object(definition_of(before)) == definition_json(&read.job)
        && read.paused.is_none_or(|paused| before["paused"] == paused);
    Ok(if same { "unchanged" } else { "updated" })
}
