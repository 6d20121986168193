// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Nodes, events, the audit log, and how a node stands.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub action: String,
    pub after: Option<serde_json::Map<String, serde_json::Value>>,
    pub at: String,
    pub before: Option<serde_json::Map<String, serde_json::Value>>,
    pub from: String,
    pub id: i64,
    pub job: Option<String>,
    pub namespace: Option<String>,
    pub run: Option<String>,
    pub who: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPage {
    pub items: Vec<AuditEntry>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    pub database: Option<DatabaseServer>,
    pub items: Vec<Session>,
    pub lost_commits: Vec<LossWindow>,
    pub still_unknown: Option<StillUnknown>,
    pub timing: Option<Timing>,
    pub timing_misfits: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatabaseServer {
    pub changes: i64,
    pub identity: String,
    pub place: String,
    pub topology: String,
    pub trouble: Option<String>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Executors {
    pub items: Vec<ExecutorsItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutorsItem {
    pub abi: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    pub name: String,
    pub params_schema: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    pub version: String,
}

/// One fault: the path of a field, and a sentence about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub field: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Any JSON; `null` where it is not set.
    pub after: serde_json::Value,
    /// Any JSON; `null` where it is not set.
    pub before: serde_json::Value,
    pub field: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub status: HealthStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

choice! { HealthStatus {
    Ok = "ok",
    Ready = "ready",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossWindow {
    pub accepted_at: Option<String>,
    pub from_at: String,
    pub node: Option<String>,
    pub noticed_at: String,
    pub session: String,
    pub until_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostCommits {
    pub lost_commits: Vec<LossWindow>,
}

/// Why a request was not done, as RFC 9457 has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    pub detail: String,
    pub errors: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<BatchResultItemOutcome>,
    pub status: i64,
    pub title: String,
    pub r#type: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub address: String,
    pub dead_after: Option<String>,
    pub executing: i64,
    pub expire_after: Option<String>,
    pub heartbeat_at: String,
    pub id: String,
    pub node: String,
    pub partitions: Option<Vec<i64>>,
    pub prepared: i64,
    pub server: Option<String>,
    pub started_at: String,
    pub state: SessionState,
    pub version: String,
}

choice! { SessionState {
    Live = "live",
    Draining = "draining",
    Ended = "ended",
} }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignInLink {
    pub expires_in: String,
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StillUnknown {
    pub jobs: Vec<StillUnknownJob>,
    pub more_jobs: bool,
    pub nodes: Vec<String>,
    pub until: Option<String>,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StillUnknownJob {
    pub due_at: Option<String>,
    pub name: String,
    pub namespace: String,
    pub on_lost: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub expire_after: String,
    pub heartbeat: String,
    pub self_kill_after: String,
    pub source: String,
}
