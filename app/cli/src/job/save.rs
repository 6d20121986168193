//! `job add` and `job update`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Map, Value, json};

use super::definition::{DefinitionArgs, inside};
use super::{path, short};
use crate::args::{PlaceArgs, job_name};
use crate::client::{Call, Client};
use crate::document;
use crate::failure::CommandFailure;
use crate::out::Out;
use crate::shell::names;
use carillon_json::as_written;

/// Arguments of `job add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The job's name; with --file it may stand there
    #[arg(value_parser = job_name, required_unless_present = "file")]
    pub name: Option<String>,
    /// Its fields.
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// Where to put it.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `job update`.
#[derive(Debug, Args)]
pub struct UpdateArgs {
    /// The job
    #[arg(value_parser = job_name, add = ArgValueCompleter::new(names::jobs))]
    pub name: String,
    /// The fields to change.
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// Take an environment variable back; may be repeated
    #[arg(long, value_name = "NAME")]
    pub no_env: Vec<String>,
    /// Take a label back; may be repeated
    #[arg(long, value_name = "KEY")]
    pub no_label: Vec<String>,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `carillon job add`
pub fn add(args: &AddArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let mut job = file(&args.definition)?.unwrap_or_default();
    if let Some(name) = &args.name {
        job.insert("name".into(), json!(name));
    }
    args.definition.apply(&mut job)?;
    for (field, option) in
        [("name", "NAME"), ("schedule", "--schedule"), ("params", "--command, a program after --, --params")]
    {
        if job.get(field).is_none_or(Value::is_null) {
            return Err(CommandFailure::usage(format!("the job has no {field}: give {option}, or --file with one")));
        }
    }
    // A namespace in the file counts unless the arguments name another than the default.
    if args.place.namespace != "default" || !job.contains_key("namespace") {
        job.insert("namespace".into(), json!(args.place.namespace));
    }
    let reply = Client::new(&args.place.server)?.call(Call::post("/v1/jobs").body(Value::Object(job)))?;
    tell(&reply.body, "is added", &args.place, out)
}

/// `carillon job update`: reads, changes, and puts back unless somebody else was faster.
pub fn update(args: &UpdateArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let client = Client::new(&args.place.server)?;
    let from_file = file(&args.definition)?;
    let at = || path(&args.name, "");
    let read = client.call(Call::get(at()).with("namespace", &args.place.namespace))?.body;
    let generation = read["generation"].clone();
    let mut job = definition_of(read)?;
    job.extend(from_file.unwrap_or_default());
    args.definition.apply(&mut job)?;
    for name in &args.no_env {
        let params = inside(&mut job, "params")?;
        inside(params, "env")?.remove(name);
    }
    for key in &args.no_label {
        inside(&mut job, "labels")?.remove(key);
    }
    let call = Call::put(at()).with("namespace", &args.place.namespace).if_match(&generation);
    let reply = client.call(call.body(Value::Object(job)))?;
    let unchanged = reply.body["generation"] == generation && !args.definition.paused;
    tell(&reply.body, if unchanged { "is as it was" } else { "is updated" }, &args.place, out)
}

/// The definition of a job that was read. A pause is no part of it: it stays as it is unless somebody speaks of it.
pub(crate) fn definition_of(read: Value) -> Result<Map<String, Value>, CommandFailure> {
    let Value::Object(mut job) = read else {
        return Err(CommandFailure::failed("the server answered something else than a job"));
    };
    as_written(&mut job);
    job.remove("paused");
    Ok(job)
}

pub(super) fn tell(job: &Value, told: &str, place: &PlaceArgs, out: &mut Out) -> Result<(), CommandFailure> {
    if place.server.json {
        return out.json(job);
    }
    let name = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
    let next = match (job["next_due_at"].as_str(), job["paused"].as_bool()) {
        (_, Some(true)) => "; it is paused".into(),
        (Some(due), _) => format!("; next due at {}", short(due)),
        (None, _) => "; it is never due again".into(),
    };
    out.line(&format!("{}/{} {told}{next}", name("namespace"), name("name")))
}

/// The definition of `--file`.
fn file(args: &DefinitionArgs) -> Result<Option<Map<String, Value>>, CommandFailure> {
    let Some(path) = &args.file else { return Ok(None) };
    let mut job = object(document::read(path, "a job")?, path)?;
    as_written(&mut job);
    Ok(Some(job))
}

/// A definition is an object, whatever else a file may hold.
pub(super) fn object(value: Value, file: &str) -> Result<Map<String, Value>, CommandFailure> {
    match value {
        Value::Object(job) => Ok(job),
        _ => Err(CommandFailure::usage(format!(
            "{file}: this is not a job: write its fields, such as name and schedule"
        ))),
    }
}
