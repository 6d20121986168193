//! The state of what was changed as a JSON document, without the values of secrets.
//!
//! A job's definition is written as table `job` keeps it. So an entry can be read as long as a stored job can.

use carillon_domain::firing::Pause;
use carillon_domain::id::SessionId;
use carillon_domain::job::Job;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::store::{AuditDocument, AuditedDelivery};
use carillon_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::AuditState;
use super::redact::redacted_text;
use crate::alerts::document::{route_from, route_redacted, route_text};
use crate::definition::Document;
use crate::{JobKey, RecordedLoss, StoreError, StoreResult};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Stored {
    Job {
        definition: Box<Document>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pause: Option<StoredPause>,
    },
    RunParams(String),
    LossWindows(Vec<StoredWindow>),
    Route {
        name: String,
        document: String,
    },
    Deliveries(Vec<StoredDelivery>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDelivery {
    id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    kind: String,
    state: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPause {
    since_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredWindow {
    from_ms: i64,
    until_ms: i64,
    noticed_ms: i64,
    session: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_ms: Option<i64>,
}

/// The document of a state.
pub(crate) fn to_text(document: &AuditDocument) -> StoreResult<String> {
    let stored = match document {
        AuditDocument::Job { definition, pause } => Stored::Job {
            definition: Box::new(Document::of(definition, redacted_text(&definition.params))),
            pause: pause.as_ref().map(store_pause),
        },
        AuditDocument::RunParams(params) => Stored::RunParams(redacted_text(params)),
        AuditDocument::LossWindows(windows) => Stored::LossWindows(windows.iter().map(store_window).collect()),
        AuditDocument::Route(route) => {
            Stored::Route { name: route.name.clone(), document: route_text(&route_redacted(route)) }
        }
        AuditDocument::Deliveries(deliveries) => Stored::Deliveries(deliveries.iter().map(store_delivery).collect()),
    };
    let failed = |error| StoreError::Permanent(format!("an entry of the audit log cannot be written: {error}"));
    serde_json::to_string(&stored).map_err(failed)
}

/// Reads a document back; one of a newer binary is answered as it is.
pub(crate) fn from_text(key: Option<&JobKey>, text: String) -> AuditState {
    let known = match serde_json::from_str(&text) {
        Ok(Stored::Job { definition, pause }) => key.and_then(|key| read_job(key, *definition, pause)),
        Ok(Stored::RunParams(params)) => Some(AuditDocument::RunParams(params.into())),
        Ok(Stored::LossWindows(windows)) => {
            Some(AuditDocument::LossWindows(windows.into_iter().map(read_window).collect()))
        }
        Ok(Stored::Route { name, document }) => {
            route_from(&name, &document).ok().map(|route| AuditDocument::Route(route.into()))
        }
        Ok(Stored::Deliveries(deliveries)) => {
            Some(AuditDocument::Deliveries(deliveries.into_iter().map(read_delivery).collect()))
        }
        Err(_) => None,
    };
    known.map_or(AuditState::Unknown(text), AuditState::Known)
}

/// The same state without the values of secrets.
pub(super) fn redacted(document: AuditDocument) -> AuditDocument {
    match document {
        AuditDocument::Job { definition, pause } => {
            let params = redacted_text(&definition.params);
            AuditDocument::Job { definition: Job { params, ..(*definition).clone() }.into(), pause }
        }
        AuditDocument::RunParams(params) => AuditDocument::RunParams(redacted_text(&params).into()),
        AuditDocument::Route(route) => AuditDocument::Route(route_redacted(&route).into()),
        open @ (AuditDocument::LossWindows(_) | AuditDocument::Deliveries(_)) => open,
    }
}

fn store_delivery(delivery: &AuditedDelivery) -> StoredDelivery {
    let AuditedDelivery { id, route, kind, state } = delivery.clone();
    StoredDelivery { id, route, kind, state }
}

fn read_delivery(stored: StoredDelivery) -> AuditedDelivery {
    let StoredDelivery { id, route, kind, state } = stored;
    AuditedDelivery { id, route, kind, state }
}

fn store_pause(pause: &Pause) -> StoredPause {
    StoredPause {
        since_ms: pause.since.as_ms(),
        until_ms: pause.until.map(Timestamp::as_ms),
        reason: pause.reason.clone(),
    }
}

fn read_job(key: &JobKey, definition: Document, pause: Option<StoredPause>) -> Option<AuditDocument> {
    let definition = definition.read(&key.namespace, &key.name).ok()?.into();
    let pause = pause.map(|pause| Pause {
        since: Timestamp::from_ms(pause.since_ms),
        until: pause.until_ms.map(Timestamp::from_ms),
        reason: pause.reason,
    });
    Some(AuditDocument::Job { definition, pause })
}

fn store_window(loss: &RecordedLoss) -> StoredWindow {
    let LossWindow { from_at, until_at, noticed_at } = loss.window;
    StoredWindow {
        from_ms: from_at.as_ms(),
        until_ms: until_at.as_ms(),
        noticed_ms: noticed_at.as_ms(),
        session: loss.session.as_u64(),
        node: loss.node.clone(),
        accepted_ms: loss.accepted_at.map(Timestamp::as_ms),
    }
}

fn read_window(stored: StoredWindow) -> RecordedLoss {
    let [from_at, until_at, noticed_at] = [stored.from_ms, stored.until_ms, stored.noticed_ms].map(Timestamp::from_ms);
    RecordedLoss {
        window: LossWindow { from_at, until_at, noticed_at },
        session: SessionId::from_random(stored.session),
        node: stored.node,
        accepted_at: stored.accepted_ms.map(Timestamp::from_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> JobKey {
        JobKey { namespace: "default".into(), name: "backup".into() }
    }

    fn job(params: &str) -> AuditDocument {
        let pause = Some(Pause { since: Timestamp::from_ms(7), until: None, reason: Some("holiday".into()) });
        AuditDocument::Job { definition: Job::new(("default", "backup"), "@every 60s", params).into(), pause }
    }

    #[test]
    fn a_state_survives_its_document_without_its_secrets() {
        let secret = job(r#"{"command":"x","env":{"P":{"secret":true,"value":"hush"}}}"#);
        let text = to_text(&secret).unwrap();
        assert!(!text.contains("hush"), "{text}");
        assert_eq!(from_text(Some(&key()), text), AuditState::Known(redacted(secret)));
        let params = AuditDocument::RunParams(r#"{"env":{"P":{"secret":true,"value":"hush"}}}"#.into());
        let text = to_text(&params).unwrap();
        assert!(!text.contains("hush"), "{text}");
        assert_eq!(from_text(Some(&key()), text), AuditState::Known(redacted(params)));
        let garbled = to_text(&job(r#"{"value":"hush","secret":true"#)).unwrap();
        assert!(!garbled.contains("hush"), "{garbled}");
    }

    #[test]
    fn a_state_of_a_newer_binary_is_answered_as_it_is() {
        for text in [r#"{"calendar":{"name":"holidays"}}"#, r#"{"job":{"definition":{"colour":"red"}}}"#, "nonsense"] {
            assert_eq!(from_text(Some(&key()), text.to_owned()), AuditState::Unknown(text.to_owned()));
        }
    }
}
