// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Runs and their output.

use serde::{Deserialize, Serialize};

use super::*;

/// Why a due time ran, did not, or has not yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub due_at: String,
    pub next_due_at: Option<String>,
    pub run: Option<Run>,
    pub sentence: String,
    pub state: ExplanationState,
}

choice! { ExplanationState {
    Ran = "ran",
    Running = "running",
    Skipped = "skipped",
    Lost = "lost",
    Waiting = "waiting",
    Upcoming = "upcoming",
    Paused = "paused",
    Unrecorded = "unrecorded",
    NotDue = "not_due",
} }

/// A run, wherever it stands; a range of due times that did not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub attempt: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelling: Option<bool>,
    /// When its node claimed it: known of runs that ended.
    pub claimed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// The CPU time, user and system, of a command that ended.
    pub cpu_ms: Option<i64>,
    pub due_at: String,
    pub exit_code: Option<i64>,
    pub fencing_token: Option<i64>,
    pub finished_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_due_at: Option<String>,
    pub id: String,
    pub job: String,
    pub lag_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<String>,
    pub namespace: String,
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_truncated: Option<bool>,
    /// The peak of resident memory of its largest process.
    pub peak_memory_bytes: Option<i64>,
    pub reason: Option<String>,
    pub session: Option<String>,
    pub signal: Option<i64>,
    pub started_at: Option<String>,
    pub status: RunStatus,
    pub trigger: RunTrigger,
}

/// The id under which the run will be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAsked {
    pub id: String,
}

/// A run with its output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDetails {
    pub attempt: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelling: Option<bool>,
    /// When its node claimed it: known of runs that ended.
    pub claimed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// The CPU time, user and system, of a command that ended.
    pub cpu_ms: Option<i64>,
    pub due_at: String,
    pub exit_code: Option<i64>,
    pub fencing_token: Option<i64>,
    pub finished_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_due_at: Option<String>,
    pub id: String,
    pub job: String,
    pub lag_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<String>,
    pub namespace: String,
    pub node: Option<String>,
    pub output: Option<String>,
    pub output_truncated: bool,
    /// The params that were given for this run alone, without secrets.
    pub params: Option<serde_json::Map<String, serde_json::Value>>,
    /// The peak of resident memory of its largest process.
    pub peak_memory_bytes: Option<i64>,
    pub reason: Option<String>,
    pub session: Option<String>,
    pub signal: Option<i64>,
    pub started_at: Option<String>,
    pub status: RunStatus,
    pub trigger: RunTrigger,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPage {
    pub items: Vec<Run>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<serde_json::Map<String, serde_json::Value>>,
}

choice! { RunStatus {
    Running = "running",
    Succeeded = "succeeded",
    Failed = "failed",
    TimedOut = "timed_out",
    Cancelled = "cancelled",
    Lost = "lost",
    Skipped = "skipped",
    Waiting = "waiting",
} }

choice! { RunTrigger {
    Schedule = "schedule",
    Manual = "manual",
    Misfire = "misfire",
} }
