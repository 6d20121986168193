//! An entry of the audit log as clients read it. A state of a job is its definition as the API shows it, and its pause.

use carillon_store::{AuditDocument, AuditState, AuditView, AuditedDelivery};
use serde_json::{Value, json};

use super::alerts::route_json;
use super::job::{definition_json, pause_json};

/// An entry.
pub fn audit_json(view: &AuditView) -> Value {
    json!({
        "id": view.id,
        "at": view.at.to_string(),
        "who": view.who,
        "from": view.origin,
        "action": view.action,
        "namespace": view.namespace,
        "job": view.job,
        "run": view.run.map(|run| run.to_string()),
        "before": view.before.as_ref().map(state_json),
        "after": view.after.as_ref().map(state_json),
    })
}

fn state_json(state: &AuditState) -> Value {
    match state {
        AuditState::Known(AuditDocument::Job { definition, pause }) => {
            let mut out = definition_json(definition);
            out["paused"] = json!(pause.is_some());
            out["pause"] = json!(pause.as_ref().map(pause_json));
            out
        }
        AuditState::Known(AuditDocument::RunParams(params)) => {
            json!({"params": serde_json::from_str::<Value>(params).unwrap_or_default()})
        }
        AuditState::Known(AuditDocument::LossWindows(windows)) => {
            json!({"lost_commits": windows.iter().map(window_json).collect::<Vec<_>>()})
        }
        AuditState::Known(AuditDocument::Route(route)) => json!({"alert": route_json(route)}),
        AuditState::Known(AuditDocument::Deliveries(deliveries)) => {
            json!({"deliveries": deliveries.iter().map(delivery_json).collect::<Vec<_>>()})
        }
        AuditState::Unknown(text) => serde_json::from_str(text).unwrap_or_default(),
    }
}

fn delivery_json(delivery: &AuditedDelivery) -> Value {
    let AuditedDelivery { id, route, kind, state } = delivery;
    json!({"id": id, "alert": route, "kind": kind, "state": state})
}

/// A time in which commits were lost.
pub fn window_json(noticed: &carillon_store::RecordedLoss) -> Value {
    json!({
        "from_at": noticed.window.from_at.to_string(),
        "until_at": noticed.window.until_at.to_string(),
        "noticed_at": noticed.window.noticed_at.to_string(),
        "node": noticed.node,
        "session": noticed.session.to_string(),
        "accepted_at": noticed.accepted_at.map(|at| at.to_string()),
    })
}
