//! A run as clients read it.
//!
//! A run that was requested or is prepared, and has not started, has the status `waiting`. So the id that `/run` answers can be looked
//! up at once.

mod params;

pub use params::{checked_run_params, run_params, shown_run_params};

use carillon_domain::firing::Held;
use carillon_domain::run::{RunRecord, Status};
use carillon_store::{JobKey, RunStage, RunView};
use serde_json::{Value, json};

/// A run, wherever it stands.
pub fn run_json(view: &RunView) -> Value {
    let mut out = match &view.stage {
        RunStage::Waiting { due_at, trigger, attempt, session } => {
            let mut out = empty(&view.key);
            out["id"] = json!(view.id.to_string());
            out["due_at"] = json!(due_at.to_string());
            out["attempt"] = json!(attempt);
            out["trigger"] = json!(trigger.as_str());
            out["status"] = json!("waiting");
            out["session"] = json!(session.map(|session| session.to_string()));
            out
        }
        RunStage::Running { held, cancelling } => {
            let mut out = held_json(&view.key, held, None);
            out["cancelling"] = json!(cancelling);
            out
        }
        RunStage::Recorded { record, output_truncated } => {
            let mut out = recorded_json(&view.key, record, None);
            out["output_truncated"] = json!(output_truncated);
            out
        }
    };
    out["node"] = json!(view.node);
    out
}

/// A run that is held and has started.
pub(super) fn held_json(key: &JobKey, held: &Held, node: Option<&str>) -> Value {
    let mut out = empty(key);
    let lag_ms = held.started_at.map(|started_at| started_at.as_ms() - held.firing.start_at.as_ms());
    out["id"] = json!(held.run.to_string());
    out["due_at"] = json!(held.firing.due_at.to_string());
    out["attempt"] = json!(held.firing.attempt);
    out["trigger"] = json!(held.firing.trigger.as_str());
    out["status"] = json!(Status::Running.as_str());
    out["started_at"] = json!(held.started_at.map(|at| at.to_string()));
    out["lag_ms"] = json!(lag_ms);
    out["node"] = json!(node);
    out["session"] = json!(held.session.to_string());
    out["fencing_token"] = json!(held.fencing_token);
    out
}

/// A run that ended, or due times that did not run.
pub fn recorded_json(key: &JobKey, record: &RunRecord, node: Option<&str>) -> Value {
    let mut out = empty(key);
    out["id"] = json!(record.id.to_string());
    out["due_at"] = json!(record.due_at.to_string());
    out["attempt"] = json!(record.attempt);
    out["trigger"] = json!(record.trigger.as_str());
    out["status"] = json!(record.status.as_str());
    out["reason"] = json!(record.reason.as_ref().map(ToString::to_string));
    out["exit_code"] = json!(record.exit_code);
    out["signal"] = json!(record.signal);
    out["started_at"] = json!(record.started_at.map(|at| at.to_string()));
    out["finished_at"] = json!(record.finished_at.to_string());
    out["lag_ms"] = json!(record.lag_ms);
    out["claimed_at"] = json!(record.claimed_at().map(|at| at.to_string()));
    out["cpu_ms"] = json!(record.usage.cpu_ms);
    out["peak_memory_bytes"] = json!(record.usage.peak_memory_kib.map(|kib| kib.saturating_mul(1_024)));
    out["node"] = json!(node);
    out["session"] = json!(record.session.map(|session| session.to_string()));
    out["fencing_token"] = json!(record.fencing_token);
    out["count"] = json!(record.count);
    out["first_due_at"] = json!(record.first_due_at.to_string());
    out["last_due_at"] = json!(record.due_at.to_string());
    out
}

/// Every field that a run always has, so that clients find `null` and not nothing.
fn empty(key: &JobKey) -> Value {
    json!({
        "id": null, "namespace": key.namespace, "job": key.name, "due_at": null, "attempt": null, "trigger": null,
        "status": null, "reason": null, "exit_code": null, "signal": null, "claimed_at": null, "started_at": null,
        "finished_at": null, "lag_ms": null, "cpu_ms": null, "peak_memory_bytes": null, "node": null, "session": null, "fencing_token": null,
    })
}
