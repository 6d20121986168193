//! `carillon export`: all jobs of a namespace as a crontab, or complete as definitions, which `carillon import` reads.

use std::collections::BTreeMap;

use carillon_domain::crontab::{self, CrontabJob, Executor, ExportJob, Form, MAIL_LABEL};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::args::PlacesArgs;
use super::client::{Call, Client};
use super::document;
use super::failure::CommandFailure;
use super::out::{Out, note};
use super::table::cell;
use carillon_json::as_written;
use carillon_json::crontab_jobs::{LABEL, MailRoute};

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// As what; `--json` means `json`
    #[arg(long, value_enum, default_value_t = Format::Crontab, conflicts_with = "json")]
    pub format: Format,
    /// Whose jobs.
    #[command(flatten)]
    pub place: PlacesArgs,
}

/// The form of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A crontab; what one cannot say becomes a comment.
    Crontab,
    /// A body for `POST /v1/jobs:batch`, one job a line.
    Json,
    /// The same as YAML.
    Yaml,
    /// The same as TOML.
    Toml,
}

/// The defaults of a job, as the API shows them.
const DEFAULTS: [(&str, &str); 10] = [
    ("overlap", "\"skip\""),
    ("misfire", r#"{"grace":"30s","policy":"fire_once"}"#),
    ("timeout", "null"),
    ("kill_grace", "\"10s\""),
    ("retry", r#"{"backoff":"10s","max_attempts":1,"max_backoff":"5m"}"#),
    ("on_lost", "\"skip\""),
    ("jitter", "\"0s\""),
    ("dst", r#"{"gap":"after","overlap":"first"}"#),
    ("expect", "null"),
    ("ping", "null"),
];

/// `carillon export`
pub fn export(args: &ExportArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get("/v1/jobs").with("namespace", &args.place.namespace);
    let client = Client::new(&args.place.server)?;
    let jobs = client.all(&call, None)?;
    let secret = jobs.iter().filter(|job| job["params"].to_string().contains("\"secret\":true")).count();
    if secret > 0 {
        let jobs = if secret == 1 { "one job" } else { &format!("{secret} jobs") };
        note(&format!("the secrets of {jobs} are left out: the server shows them to nobody"));
    }
    match args.format {
        _ if args.place.server.json => return write_json(&jobs, out),
        Format::Json => return write_json(&jobs, out),
        Format::Yaml => return write_document(document::Format::Yaml, &jobs, out),
        Format::Toml => return write_document(document::Format::Toml, &jobs, out),
        Format::Crontab => {}
    }
    let mails = if jobs.iter().any(has_mail) { mail_routes(&client)? } else { BTreeMap::new() };
    let exports: Vec<ExportJob> = jobs.iter().map(|job| export_job(job, &mails)).collect();
    out.bytes(crontab::write(&exports, Form::fitting(&exports)).as_bytes())
}

/// Whether an import gave a job a label for its `MAILTO=`.
fn has_mail(job: &Value) -> bool {
    job["labels"][MAIL_LABEL].is_string()
}

/// The stored routes, by name.
fn mail_routes(client: &Client) -> Result<BTreeMap<String, Value>, CommandFailure> {
    let answer = client.call(Call::get("/v1/alerts"))?;
    let items = answer.body["items"].as_array().into_iter().flatten();
    Ok(items.map(|route| (cell(&route["name"]), route.clone())).collect())
}

fn write_json(jobs: &[Value], out: &mut Out) -> Result<(), CommandFailure> {
    out.line("{\"items\":[")?;
    for (at, job) in jobs.iter().enumerate() {
        let comma = if at + 1 < jobs.len() { "," } else { "" };
        out.line(&format!("{}{comma}", definition(job)))?;
    }
    out.line("]}")
}

fn write_document(format: document::Format, jobs: &[Value], out: &mut Out) -> Result<(), CommandFailure> {
    let items: Vec<Value> = jobs.iter().map(definition).collect();
    out.bytes(format.write(&json!({"items": items}))?.as_bytes())
}

/// A job without the fields that reading adds.
fn definition(job: &Value) -> Value {
    let mut fields = job.as_object().cloned().unwrap_or_default();
    as_written(&mut fields);
    fields.into()
}

/// A job of the API in the words of the crontab writer. Its `MAILTO=` comes back where a route still mails to these addresses.
fn export_job(job: &Value, routes: &BTreeMap<String, Value>) -> ExportJob {
    let params = &job["params"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut unsaid = unsaid(job);
    let env = env(&params["env"], &mut unsaid);
    let argv = params["argv"].as_array().map(|argv| argv.iter().map(cell).collect());
    let executor = match (job["executor"].as_str().unwrap_or("shell"), argv) {
        ("shell", Some(argv)) => Executor::Argv(argv),
        ("shell", None) => Executor::Shell,
        (other, _) => Executor::Other(other.to_owned()),
    };
    let labels = job["labels"].as_object().into_iter().flatten();
    let labels = labels.filter(|(key, _)| *key != LABEL).map(|(key, value)| (key.clone(), cell(value)));
    let mut labels: BTreeMap<String, String> = labels.collect();
    if let Some(label) = labels.get(MAIL_LABEL) {
        let route = MailRoute::of(&cell(&job["namespace"]), label);
        if !routes.get(&route.name).is_some_and(|stored| route.is_done_by(stored)) {
            unsaid.push(format!("label {MAIL_LABEL}={label}, to which no route mails"));
            labels.remove(MAIL_LABEL);
        }
    }
    ExportJob {
        job: CrontabJob {
            name: cell(&job["name"]),
            schedule: cell(&job["schedule"]),
            timezone: text(&job["timezone"]),
            command: cell(&params["command"]),
            stdin: text(&params["stdin"]).filter(|stdin| !stdin.is_empty()),
            dir: text(&params["dir"]),
            env,
            shell: shell(params["shell"].as_str()),
            user: text(&params["user"]),
            // An import writes that label anew.
            labels,
        },
        executor,
        paused: job["paused"] == true,
        unsaid,
    }
}

/// A crontab needs the shell's path; the executor's default is bash.
fn shell(given: Option<&str>) -> String {
    match given {
        None => "/bin/bash".into(),
        Some(path) if path.contains('/') => path.to_owned(),
        Some(name) => format!("/bin/{name}"),
    }
}

/// Values that differ from the defaults and have no place in a crontab.
fn unsaid(job: &Value) -> Vec<String> {
    let default_of = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let differs = DEFAULTS.into_iter().filter(|(key, default)| job[*key] != default_of(default));
    let mut unsaid: Vec<String> = differs.map(|(key, _)| format!("{key} {}", cell(&job[key]))).collect();
    for key in ["start_at", "end_at"] {
        unsaid.extend(job[key].as_str().map(|time| format!("{key} {time}")));
    }
    unsaid
}

/// The variables; one that is secret is left out and told.
fn env(env: &Value, unsaid: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut plain = BTreeMap::new();
    for (name, value) in env.as_object().into_iter().flatten() {
        match value.as_str().or(value["value"].as_str()) {
            Some(value) => drop(plain.insert(name.clone(), value.to_owned())),
            None => unsaid.push(format!("the secret variable {name}")),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_with_the_defaults_says_everything_in_its_line() {
        let mut job = json!({"name": "a", "schedule": "@daily", "executor": "shell", "params": {"command": "x"}});
        for (key, default) in DEFAULTS {
            job[key] = serde_json::from_str(default).unwrap();
        }
        assert_eq!(export_job(&job, &BTreeMap::new()).unsaid, Vec::<String>::new());
        job["timeout"] = json!("1h");
        job["params"]["env"] = json!({"A": "1", "B": {"secret": true}});
        let export = export_job(&job, &BTreeMap::new());
        assert_eq!(export.unsaid, ["timeout 1h", "the secret variable B"]);
        assert_eq!(export.job.env, BTreeMap::from([("A".to_owned(), "1".to_owned())]));
        assert_eq!(export.job.shell, "/bin/bash");
    }
}
