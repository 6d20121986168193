// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Jobs and schedules.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Batch {
    pub items: Vec<JobDefinition>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchResult {
    pub items: Vec<BatchResultItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchResultItem {
    pub errors: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    pub name: String,
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<BatchResultItemOutcome>,
    pub status: BatchResultItemStatus,
}

choice! { BatchResultItemOutcome {
    NotApplied = "not_applied",
    Unknown = "unknown",
} }

choice! { BatchResultItemStatus {
    Created = "created",
    Updated = "updated",
    Unchanged = "unchanged",
    Error = "error",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DueTimes {
    pub next: Vec<String>,
}

/// A job and how it stands. It may be put back as it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub created_at: String,
    pub current_run: Option<Run>,
    /// At changes of the clock.
    pub dst: JobDst,
    /// Not due after.
    pub end_at: Option<String>,
    /// `shell` for commands, or a plugin.
    pub executor: String,
    pub expect: Option<JobExpect>,
    pub generation: i64,
    /// Each due time is later by a part of this, always the same.
    pub jitter: String,
    /// From SIGTERM to SIGKILL.
    pub kill_grace: String,
    pub labels: std::collections::BTreeMap<String, String>,
    pub last_run: Option<Run>,
    /// For due times that no node started within the grace.
    pub misfire: JobMisfire,
    pub name: String,
    pub namespace: String,
    pub next_due_at: Option<String>,
    pub node: Option<String>,
    /// For a run whose node died.
    pub on_lost: JobOnLost,
    /// For a firing that comes due while a run lives.
    pub overlap: JobOverlap,
    pub params: Option<serde_json::Map<String, serde_json::Value>>,
    pub pause: Option<JobPause>,
    pub paused: bool,
    pub ping: Option<serde_json::Value>,
    pub previous_due_at: Option<String>,
    /// Attempts of a firing whose run failed.
    pub retry: JobRetry,
    /// A cron expression, `@every`, `@at` or a descriptor such as `@daily`.
    pub schedule: String,
    /// Not due before.
    pub start_at: Option<String>,
    pub state: JobState,
    /// How long a run may take; any time if it is null.
    pub timeout: Option<String>,
    /// A zone of the IANA database; UTC if it is null.
    pub timezone: Option<String>,
    pub updated_at: String,
}

/// A job. The name may stand in the path instead.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<JobDefinitionDst>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<JobDefinitionExpect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_grace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<JobDefinitionMisfire>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_lost: Option<JobOnLost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<JobOverlap>,
    /// As the executor's params_schema says; at most 64 deep.
    pub params: serde_json::Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<JobDefinitionRetry>,
    /// A cron expression, `@every`, `@at` or a descriptor such as `@daily`.
    pub schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// At changes of the clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinitionDst {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<JobDstGap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<JobDstOverlap>,
}

/// How soon each due time should have started and succeeded, from the due time on: 1s to 7d.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinitionExpect {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_within: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<String>,
}

/// For due times that no node started within the grace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinitionMisfire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<JobMisfirePolicy>,
}

/// Attempts of a firing whose run failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinitionRetry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<String>,
}

/// At changes of the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobDst {
    pub gap: JobDstGap,
    pub overlap: JobDstOverlap,
}

choice! { JobDstGap {
    After = "after",
    Skip = "skip",
} }

choice! { JobDstOverlap {
    First = "first",
    Both = "both",
} }

/// How soon each due time should have started and succeeded, from the due time on: 1s to 7d.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobExpect {
    /// A time of day in the job's zone, such as 06:00.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_within: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<String>,
}

/// For due times that no node started within the grace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobMisfire {
    pub grace: String,
    pub policy: JobMisfirePolicy,
}

choice! { JobMisfirePolicy {
    Skip = "skip",
    FireOnce = "fire_once",
    CatchUp = "catch_up",
} }

choice! { JobOnLost {
    Skip = "skip",
    Rerun = "rerun",
} }

choice! { JobOverlap {
    Skip = "skip",
    Delay = "delay",
    Replace = "replace",
    Allow = "allow",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPage {
    pub items: Vec<Job>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPause {
    pub reason: Option<String>,
    pub since: String,
    pub until: Option<String>,
}

/// The changes that a put would make. A secret of which only the value changes makes it `updated` without a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The definition as it would be.
    pub after: serde_json::Map<String, serde_json::Value>,
    /// The stored definition, without values of secrets.
    pub before: Option<serde_json::Map<String, serde_json::Value>>,
    pub change: JobPlanChange,
    /// The fields that differ; none where the job is new.
    pub changes: Vec<FieldChange>,
    /// Of the stored job: to be put with `If-Match`.
    pub generation: Option<i64>,
    pub next: Vec<String>,
    pub next_before: Option<Vec<String>>,
}

choice! { JobPlanChange {
    Created = "created",
    Updated = "updated",
    Unchanged = "unchanged",
} }

/// Attempts of a firing whose run failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRetry {
    pub backoff: String,
    pub max_attempts: i64,
    pub max_backoff: String,
}

choice! { JobState {
    Idle = "idle",
    Prepared = "prepared",
    Executing = "executing",
} }

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PauseRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleAnswer {
    pub description: String,
    pub next: Vec<String>,
    pub schedule: String,
    pub timezone: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScheduleQuestion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}
