//! The jobs to store: those of the file, written over the stored ones.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::crontab::{CrontabJob, Line, LineKind};
use serde_json::{Map, Value, json};

use super::LABEL;
use super::report::Row;
use crate::json::ADDED_BY_READING;

/// Jobs as the server shows them, by name.
pub(super) type Stored = BTreeMap<String, Value>;

/// The fate of the lines so far, and the jobs to send.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub rows: Vec<Row>,
    /// Each with the index of its row.
    pub to_send: Vec<(usize, Value)>,
}

impl Plan {
    /// Compares the lines with what is stored; `None` when that is not known.
    pub fn new(lines: &[Line], stored: Option<&Stored>, namespace: &str, stem: &str) -> Self {
        let mut plan = Plan::default();
        for line in lines {
            let mut row = Row::of(line);
            if let LineKind::Job(job) = &line.what {
                let before = stored.and_then(|stored| stored.get(&job.name)).map(definition);
                let after = Value::Object(merged(before.clone(), job, namespace, stem));
                row.change = match (&before, stored) {
                    (_, None) => None,
                    (None, Some(_)) => Some("created".into()),
                    (Some(before), _) if Value::Object(before.clone()) == after => Some("unchanged".into()),
                    (Some(_), _) => Some("updated".into()),
                };
                if row.change.as_deref() != Some("unchanged") {
                    plan.to_send.push((plan.rows.len(), after));
                }
            }
            plan.rows.push(row);
        }
        plan
    }
}

/// The stored job without the fields that reading adds, and without the pause: a crontab has no word for it.
fn definition(job: &Value) -> Map<String, Value> {
    let unsaid: BTreeSet<&str> = ADDED_BY_READING.into_iter().chain(["paused"]).collect();
    let fields = job.as_object().into_iter().flatten().filter(|(key, _)| !unsaid.contains(key.as_str()));
    fields.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn merged(before: Option<Map<String, Value>>, job: &CrontabJob, namespace: &str, stem: &str) -> Map<String, Value> {
    let mut after = before.unwrap_or_default();
    let mut labels = after.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    // The user column may have been imported as a label before.
    labels.remove("user");
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
