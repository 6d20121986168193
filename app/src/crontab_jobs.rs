//! Jobs of a crontab, written over the stored ones: for the command line and for the page.

use std::collections::BTreeSet;

use carillon_domain::crontab::{CrontabJob, MAIL_LABEL};
use carillon_domain::schedule::{Options, Schedule};
use serde_json::{Map, Value, json};

use crate::json::ADDED_BY_READING;

/// The label that tells which file a job came from.
pub const LABEL: &str = "crontab";

/// Whether a schedule makes sense; with any name, since names are made from the line.
///
/// # Errors
/// The reason why it does not, as a sentence.
pub fn check_schedule(schedule: &str, timezone: Option<&str>, namespace: &str) -> Result<(), String> {
    let options = Options { timezone, hash_key: namespace, ..Options::default() };
    Schedule::parse(schedule, &options).map(drop).map_err(|error| error.to_string())
}

/// The stored job without the fields that reading adds, and without the pause: a crontab has no word for it.
pub fn definition_of(job: &Value) -> Map<String, Value> {
    let unsaid: BTreeSet<&str> = ADDED_BY_READING.into_iter().chain(["paused"]).collect();
    let fields = job.as_object().into_iter().flatten().filter(|(key, _)| !unsaid.contains(key.as_str()));
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The definition of a line's job. Fields that a crontab cannot say stay as they are `before`. `stem` names the file.
pub fn merged(before: Option<Map<String, Value>>, job: &CrontabJob, namespace: &str, stem: &str) -> Map<String, Value> {
    let mut after = before.unwrap_or_default();
    let mut labels = after.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    // The user column may have been imported as a label before, and whom to mail.
    labels.remove("user");
    labels.remove(MAIL_LABEL);
    labels.extend(job.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    labels.insert(LABEL.into(), json!(stem));
    let fields = [
        ("namespace", json!(namespace)),
        ("name", json!(job.name)),
        ("schedule", json!(job.schedule)),
        ("timezone", json!(job.timezone)),
        ("executor", json!("shell")),
        ("params", params(job)),
        ("labels", Value::Object(labels)),
    ];
    after.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    after
}

/// The shell executor's parameters; without `dir` it starts in the home of its user, as cron does.
fn params(job: &CrontabJob) -> Value {
    let mut params = json!({"command": job.command, "shell": job.shell});
    if !job.env.is_empty() {
        params["env"] = json!(job.env);
    }
    for (key, text) in [("dir", &job.dir), ("stdin", &job.stdin), ("user", &job.user)] {
        if let Some(text) = text {
            params[key] = json!(text);
        }
    }
    params
}
