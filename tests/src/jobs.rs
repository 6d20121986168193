//! Jobs and runs as the tests speak of them, through the API alone.

use std::time::Duration;

use carillon_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::chaos::now_us;
use crate::server::{PATIENCE, Server};
use crate::waiting::{wait_for, wait_for_within};

/// Never comes up while a test runs.
pub const NEVER: &str = "@at 2090-01-01T00:00:00Z";

/// A job that runs a shell command; `more` is merged into it.
pub fn job(name: &str, schedule: &str, command: &str, more: Value) -> Value {
    merged(json!({"name": name, "schedule": schedule, "params": {"command": command}}), more)
}

/// The fields of `more` over those of `base`.
pub fn merged(mut base: Value, more: Value) -> Value {
    for (field, value) in more.as_object().expect("more fields stand in an object") {
        base[field] = value.clone();
    }
    base
}

impl Server {
    /// Creates a job.
    pub fn create(&self, job: &Value) -> Value {
        self.post("/v1/jobs", job)
    }

    /// Creates a job that comes up only when it is asked to, runs it now and answers how that run ended.
    pub fn run_once(&self, name: &str, params: Value, more: Value) -> Value {
        self.create(&merged(json!({"name": name, "schedule": NEVER, "params": params}), more));
        self.ended(&self.run_now(name))
    }

    /// Asks for a run now; its id.
    pub fn run_now(&self, name: &str) -> String {
        let (status, answer) = self.call("POST", &format!("/v1/jobs/{name}/run"), Some(&json!({})));
        assert_eq!(status, 202, "{answer}");
        answer["id"].as_str().expect("a run has an id").to_owned()
    }

    /// A run, which must be known.
    pub fn run(&self, id: &str) -> Value {
        self.get(&format!("/v1/runs/{id}"))
    }

    /// A run once it has ended.
    pub fn ended(&self, id: &str) -> Value {
        self.wait_for_run(id, PATIENCE, |run| !matches!(status(run), "waiting" | "running"))
    }

    /// A run once it has started.
    pub fn started(&self, id: &str) -> Value {
        self.wait_for_run(id, PATIENCE, |run| status(run) != "waiting")
    }

    fn wait_for_run(&self, id: &str, patience: Duration, condition: impl Fn(&Value) -> bool) -> Value {
        wait_for_within(patience, &format!("run {id} goes on"), || Some(self.run(id)).filter(&condition))
    }

    /// All records and running runs of a job, newest first.
    pub fn runs(&self, name: &str) -> Vec<Value> {
        self.all(&format!("/v1/jobs/{name}/runs"))
    }

    /// Waits until a job has at least `count` runs for which `condition` holds; all of its runs then, newest first.
    pub fn wait_for_runs(&self, name: &str, count: usize, condition: impl Fn(&Value) -> bool) -> Vec<Value> {
        wait_for(&format!("{name} has {count} such runs"), || {
            let runs = self.runs(name);
            (runs.iter().filter(|run| condition(run)).count() >= count).then_some(runs)
        })
    }

    /// Pauses jobs and waits until nothing of theirs runs; all their runs then, newest first. Each is paused once it has no
    /// backlog: due times that passed while it ran have their records, and a pause would leave the others without.
    pub fn settle(&self, names: &[&str]) -> Vec<Value> {
        for name in names {
            self.wait_until(&format!("the backlog of {name} is worked off"), || !self.has_backlog(name));
            self.post(&format!("/v1/jobs/{name}/pause"), &json!({}));
        }
        self.wait_until("the last runs end", || {
            names.iter().all(|name| self.get(&format!("/v1/jobs/{name}"))["state"] == "idle")
        });
        names.iter().flat_map(|name| self.runs(name)).collect()
    }

    /// Whether due times that passed wait for their start.
    fn has_backlog(&self, name: &str) -> bool {
        let job = self.get(&format!("/v1/jobs/{name}"));
        if job["paused"] == true || job["state"] == "executing" {
            return job["current_run"]["trigger"] == "misfire";
        }
        let next = job["next_due_at"].as_str().and_then(Timestamp::parse_rfc3339);
        next.is_some_and(|next| u64::try_from(next.as_ms()).expect("a time after 1970") <= now_us() / 1_000)
    }
}

/// How a run stands.
pub fn status(run: &Value) -> &str {
    run["status"].as_str().expect("a run has a status")
}

/// A field that must be text.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is no text in {value}"))
}
