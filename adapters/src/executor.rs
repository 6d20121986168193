//! What every executor gets and what it answers.
//!
//! An executor starts what a job asks for and tells how it ended. It decides nothing about schedules, retries or rows.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::id::RunId;
use carillon_domain::time::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

/// The facts of one run, the same for every executor (SPEC section 4).
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
    /// The job's `params`, already checked by [`Executor::check`] when the job was saved.
    pub params: Value,
}

/// What a program finds on its PATH: as Debian's login gives it to root, for everybody.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Every system has it, and it reads UTF-8.
pub(crate) const LANG: &str = "C.UTF-8";
/// What begins so is the server's to say.
pub(crate) const RESERVED: &str = "CARILLON_";

impl RunFacts {
    /// What every child's environment holds (SPEC section 4): the facts of the run, and nothing of the server's own.
    pub(crate) fn variables(&self) -> [(&'static str, Cow<'_, str>); 8] {
        [
            ("PATH", PATH.into()),
            ("LANG", LANG.into()),
            ("CARILLON_NAMESPACE", self.namespace.as_str().into()),
            ("CARILLON_JOB", self.job.as_str().into()),
            ("CARILLON_RUN_ID", self.run_id.to_string().into()),
            ("CARILLON_DUE_AT", self.due_at.to_string().into()),
            ("CARILLON_ATTEMPT", self.attempt.to_string().into()),
            ("CARILLON_FENCING_TOKEN", self.fencing_token.to_string().into()),
        ]
    }
}

/// Without `params`: they may hold secrets, and whoever logs a run must not log those (SPEC section 7).
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

/// Where what a run prints goes while it runs.
#[derive(Clone)]
pub struct Live(Option<Arc<Take>>);

type Take = dyn Fn(&[u8]) + Send + Sync;

impl Live {
    /// To a function, which is called with each part, in order, by whoever reads for all runs: it must not block.
    pub fn to(take: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(take)))
    }

    /// Nowhere.
    pub const fn unheard() -> Self {
        Self(None)
    }

    /// The run has printed this.
    pub(crate) fn printed(&self, bytes: &[u8]) {
        if let Some(take) = &self.0 {
            take(bytes);
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Live(heard)" } else { "Live(unheard)" })
    }
}

/// Why somebody wants a run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Keep going.
    No,
    /// End politely, then by force after `kill_grace`.
    Politely,
    /// End by force, at once.
    Now,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// What happened.
    pub how: Ended,
    /// Exit code of the process, where there was one.
    pub exit_code: Option<i32>,
    /// Signal that ended the process, where one did.
    pub signal: Option<i32>,
    /// A sentence for people where `how` alone does not tell all (why it could not start, why it was lost).
    pub reason: Option<String>,
    /// stdout and stderr in order: the first and last 32 KiB.
    pub output: Vec<u8>,
    /// Whether something between the first and the last part was left out.
    pub output_truncated: bool,
}

impl Exit {
    /// The exit of a run that never had a process, and why.
    pub fn without_process(how: Ended, reason: impl Into<String>) -> Self {
        let (exit_code, signal, output, output_truncated) = (None, None, Vec::new(), false);
        Self { how, exit_code, signal, reason: Some(reason.into()), output, output_truncated }
    }
}

/// The ways in which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Exit code 0, or the executor's own idea of success.
    Succeeded,
    /// Any other end of its own, or it could not be started.
    Failed,
    /// Ended because its timeout passed.
    TimedOut,
    /// Ended because [`Stop`] asked for it.
    Cancelled,
    /// Killed by a fence: the node did not answer the keeper in time, or the keeper died.
    Lost,
}

/// What an executor says of itself, for `GET /v1/executors`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorDescription {
    /// Its version; a built-in one has the server's.
    pub version: String,
    /// The plugin ABI that it was built for; `None` for a built-in one.
    pub abi: Option<u32>,
    /// JSON Schema of the params; `None` where only [`Executor::check`] knows them.
    pub params_schema: Option<Value>,
    /// What is particular to a plugin; `None` for a built-in one.
    pub plugin: Option<PluginDescription>,
}

/// Where a plugin came from, and how it fares.
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

/// How the host process of a plugin fares.
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

    /// What it says of itself.
    fn description(&self) -> ExecutorDescription;

    /// Checks `params` when a job is saved. Errors are `(field, sentence)`, the field as a path below `params`, e.g.
    /// `("params.command", "must be a string")`.
    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>>;

    /// Runs to the end. Output goes to `live` as it comes and, bounded, into the [`Exit`]. A change of `stop` ends the run. Never panics; what cannot start is an [`Exit`]
    /// that says why.
    async fn run(&self, facts: RunFacts, live: Live, stop: watch::Receiver<Stop>) -> Exit;
}
