//! The trait of an executor, the facts that it gets and the exit that it returns.
//!
//! An executor starts a run and reports its exit. It decides nothing about schedules, retries or rows.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::id::RunId;
use carillon_domain::run::trace::RunTrace;
use carillon_domain::time::Timestamp;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::execution::{DetachedRun, NewRun};

pub use carillon_keeper::{Exit, Live, Outcome, Stop};

/// The facts of one run, the same for every executor.
#[derive(Clone)]
pub struct RunFacts {
    /// Identifies the run everywhere.
    pub run_id: RunId,
    /// Namespace of the job.
    pub namespace: String,
    /// Name of the job.
    pub job: String,
    /// The due time of the firing.
    pub due_at: Timestamp,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Grows with every start of the job; receivers refuse a smaller one than they have seen.
    pub fencing_token: u64,
    /// How long the run may take; `None` for as long as it likes.
    pub timeout: Option<Duration>,
    /// How long after SIGTERM (or the executor's own polite request) the run is killed.
    pub kill_grace: Duration,
    /// Its place in a trace, where runs are traced.
    pub trace: Option<RunTrace>,
    /// The job's `params`.
    pub params: StoredParams,
}

/// A job's `params`, checked by [`Executor::check`] when the job was saved. They stay text until a field is read:
/// a plugin gets them as text, and parsing would cost more than a short run.
#[derive(Clone)]
pub struct StoredParams(String);

impl StoredParams {
    /// As they stand in the store; the error is a sentence.
    pub fn of(text: &str) -> Result<Self, String> {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("the stored params are not JSON: {error}"))?;
        Ok(Self(text.to_owned()))
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// All of them.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// One field, if they have it.
    pub(crate) fn field(&self, name: &str) -> Option<Value> {
        // Only an escape can hide a name from the eye.
        let may_be_there = self.0.contains(name) || self.0.contains('\\');
        may_be_there.then(|| self.value().get_mut(name).map(Value::take))?
    }
}

impl From<Value> for StoredParams {
    fn from(params: Value) -> Self {
        Self(params.to_string())
    }
}

/// The PATH of every run: the one that Debian's login gives to root.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Every system has it, and it reads UTF-8.
pub(crate) const LANG: &str = "C.UTF-8";
/// The place in a trace, as W3C's Trace Context writes it for environment variables.
pub(crate) const TRACEPARENT: &str = "TRACEPARENT";
/// The prefix of variables that only the server sets.
pub(crate) const RESERVED: &str = "CARILLON_";

impl RunFacts {
    /// The variables of every child's environment: the facts of the run, and nothing of the server's own.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &dyn fmt::Display)> {
        let facts: [(&str, &dyn fmt::Display); 8] = [
            ("PATH", &PATH),
            ("LANG", &LANG),
            ("CARILLON_NAMESPACE", &self.namespace),
            ("CARILLON_JOB", &self.job),
            ("CARILLON_RUN_ID", &self.run_id),
            ("CARILLON_DUE_AT", &self.due_at),
            ("CARILLON_ATTEMPT", &self.attempt),
            ("CARILLON_FENCING_TOKEN", &self.fencing_token),
        ];
        let trace = self.trace.as_ref().map(|trace| (TRACEPARENT, trace as &dyn fmt::Display));
        facts.into_iter().chain(trace)
    }
}

/// Without `params`: they may hold secrets, which must not reach a log.
impl fmt::Debug for RunFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFacts")
            .field("run_id", &self.run_id)
            .field("namespace", &self.namespace)
            .field("job", &self.job)
            .field("due_at", &self.due_at)
            .field("attempt", &self.attempt)
            .field("fencing_token", &self.fencing_token)
            .finish_non_exhaustive()
    }
}

/// The description of an executor, for `GET /v1/executors`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorDescription {
    /// Its version; a built-in one has the server's.
    pub version: String,
    /// The plugin ABI that it was built for; `None` for a built-in one.
    pub abi: Option<u32>,
    /// JSON Schema of the params; `None` where only [`Executor::check`] knows them.
    pub params_schema: Option<Value>,
    /// The facts of a plugin; `None` for a built-in executor.
    pub plugin: Option<PluginDescription>,
}

/// The origin of a plugin, and the state of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDescription {
    /// The file that it was loaded from.
    pub file: PathBuf,
    /// Where its code runs.
    pub isolation: Isolation,
    /// How its process fares; `None` if it is in the server's.
    pub host: Option<HostState>,
    /// Why its last process ended, or could not be started, if that was not meant to be.
    pub trouble: Option<String>,
}

/// Where the code of a plugin runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a host process of its own.
    Process,
    /// In the server.
    InProcess,
}

impl Isolation {
    /// As the configuration and the API write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::InProcess => "in_process",
        }
    }
}

/// The state of a plugin's host process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// No run has needed one yet, or the last one is gone.
    NotStarted,
    /// It is being started.
    Starting,
    /// It takes runs.
    Running,
    /// It ended by itself, and waits for its next start.
    BackingOff,
}

impl HostState {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
        }
    }
}

/// A way of running jobs.
#[async_trait]
pub trait Executor: Send + Sync {
    /// The name that a job's `executor` field carries.
    fn name(&self) -> &str;

    /// Its own description.
    fn description(&self) -> ExecutorDescription;

    /// Checks `params` when a job is saved. Errors are `(field, sentence)`, the field as a path below `params`, e.g.
    /// `("params.command", "must be a string")`.
    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>>;

    /// Runs to the end. Output goes to `live` as it comes and, bounded, into the [`Exit`]. `stop` ends the run: politely, then
    /// by force after its `kill_grace`. Never panics; what cannot start is an [`Exit`] that says why.
    async fn run(&self, facts: RunFacts, live: Live, stop: CancellationToken) -> Exit;

    /// Begins a run at once, detached: without a task, which would cost more than a short run. Returns the run if a task is
    /// needed, because it has a timeout, must wait for a place, or takes long to begin.
    fn begin(self: Arc<Self>, run: Box<NewRun>) -> Result<Box<dyn DetachedRun>, Box<NewRun>> {
        Err(run)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_stored_params_is_found_however_its_name_is_written() {
        let field = |text: &str| StoredParams::of(text).unwrap().field("env");
        assert_eq!(field(r#"{"env": {"A": "b"}}"#), Some(json!({"A": "b"})));
        assert_eq!(field(r#"{"\u0065nv": 1}"#), Some(json!(1)));
        for text in [r#"{"envy": 1}"#, r#"{"other": "env"}"#, "{}", r#"["env"]"#] {
            assert_eq!(field(text), None, "{text}");
        }
    }

    #[test]
    fn stored_params_that_are_not_json_are_refused_with_a_sentence() {
        let refused = StoredParams::of("{").err().unwrap();
        assert!(refused.starts_with("the stored params are not JSON: "), "{refused}");
        let params = json!({"b": 1, "a": [null, "\n"]});
        assert_eq!(StoredParams::of(StoredParams::from(params.clone()).text()).unwrap().value(), params);
    }
}
