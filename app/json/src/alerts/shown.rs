//! Deliveries and incidents. Nobody writes them.

use carillon_domain::alert::{DeliveryState, Incident, Notice};
use carillon_domain::time::Timestamp;
use carillon_store::alerts::{DeliveryView, Message};
use serde_json::{Value, json};

/// A delivery: the message, how it stands, and the last answer.
pub fn delivery_json(view: &DeliveryView) -> Value {
    let delivery = &view.delivery;
    let (next_at, settled_at) = match delivery.state {
        DeliveryState::Waiting { next_at } => (Some(next_at), None),
        DeliveryState::Sending { .. } => (None, None),
        DeliveryState::Sent { at } | DeliveryState::Dead { at } => (None, Some(at)),
    };
    let (route, notice, ping) = match &view.message {
        Message::Notice(notice) => (Some(&notice.route), Some(notice_json(notice)), None),
        Message::Ping(call) => {
            let ping = json!({"id": call.id.to_string(), "kind": call.kind.as_str(), "run": call.run.to_string()});
            (None, None, Some(ping))
        }
    };
    json!({
        "id": view.id,
        "route": route,
        "type": view.kind,
        "host": view.host,
        "made_at": view.made_at.to_string(),
        "state": delivery.state.as_str(),
        "tries": delivery.tries,
        "next_at": text(next_at),
        "settled_at": text(settled_at),
        "answer": delivery.answer,
        "notice": notice,
        "ping": ping,
    })
}

fn notice_json(notice: &Notice) -> Value {
    json!({
        "id": notice.id.to_string(),
        "when": notice.when.as_str(),
        "state": notice.state.as_str(),
        "namespace": notice.namespace,
        "job": notice.job,
        "run": notice.run.map(|run| run.to_string()),
        "due_at": text(notice.due_at),
        "at": notice.at.to_string(),
        "sentence": notice.sentence,
        "then": notice.then,
    })
}

/// An open incident, with the words of its newest fact.
pub fn incident_json(incident: &Incident) -> Value {
    let last = incident.last.as_ref();
    json!({
        "route": incident.key.route,
        "class": incident.key.class.as_str(),
        "namespace": incident.namespace,
        "job": incident.job,
        "part": incident.part,
        "since": incident.since.to_string(),
        "count": incident.count,
        "told_at": text(incident.told_at),
        "tellings": incident.tellings,
        "run": last.and_then(|last| last.run).map(|run| run.to_string()),
        "due_at": text(last.and_then(|last| last.due_at)),
        "sentence": last.map(|last| &last.sentence),
        "then": last.map(|last| &last.then),
    })
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
