//! The server's answer: JSON, or a problem (RFC 9457) as a [`CommandFailure`].

use serde_json::Value;
use ureq::http::StatusCode;

use crate::failure::{CommandFailure, FailureKind};
use crate::table::printable;

/// A successful answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The body; `null` when there is none.
    pub body: Value,
}

impl Reply {
    /// Reads an answer; whatever is not a success is the failure that it means.
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Result<Self, CommandFailure> {
        let parsed: Option<Value> = match body.is_empty() {
            true => Some(Value::Null),
            false => serde_json::from_slice(body).ok(),
        };
        match parsed {
            Some(body) if status.is_success() => Ok(Self { body }),
            None if status.is_success() => {
                Err(CommandFailure::failed("the server answered something else than JSON: is it a Carillon server?"))
            }
            body => Err(problem(status, &body.unwrap_or_default())),
        }
    }

    /// Takes the items of a listing or a batch.
    pub fn take_items(&mut self) -> Vec<Value> {
        match self.body["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }
}

fn problem(status: StatusCode, body: &Value) -> CommandFailure {
    let kind = match status.as_u16() {
        400 | 413 | 422 => FailureKind::Usage,
        404 => FailureKind::NotFound,
        409 | 412 => FailureKind::Conflict,
        _ => FailureKind::Failed,
    };
    let detail = body["detail"].as_str().or(body["title"].as_str());
    let mut sentence = detail.map_or_else(|| format!("the server answered {status}"), printable);
    let faults = faults(&body["errors"]);
    if faults.len() > 1 {
        for fault in faults {
            sentence.push_str("\n  ");
            sentence.push_str(&fault);
        }
    }
    CommandFailure { kind, sentence }
}

/// The sentences of `errors`, each with its field.
pub fn faults(errors: &Value) -> Vec<String> {
    let sentence = |error: &Value| match (error["field"].as_str(), error["message"].as_str()) {
        (Some(""), Some(message)) | (None, Some(message)) => printable(message),
        (Some(field), Some(message)) => format!("{}: {}", printable(field), printable(message)),
        (_, None) => printable(&error.to_string()),
    };
    errors.as_array().map(|errors| errors.iter().map(sentence).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_sentence_and_an_exit_code() {
        for (status, body, kind, sentence) in [
            (404, r#"{"detail":"there is no job a"}"#, FailureKind::NotFound, "there is no job a"),
            (409, r#"{"title":"Conflict"}"#, FailureKind::Conflict, "Conflict"),
            (412, "{}", FailureKind::Conflict, "the server answered 412 Precondition Failed"),
            (503, "<html>", FailureKind::Failed, "the server answered 503 Service Unavailable"),
            (302, "", FailureKind::Failed, "the server answered 302 Found"),
            (
                400,
                r#"{"detail":"2 faults were found","errors":[{"field":"a","message":"b"},{"field":"","message":"c\u001b"}]}"#,
                FailureKind::Usage,
                "2 faults were found\n  a: b\n  c\\u{1b}",
            ),
        ] {
            let failure = Reply::read(StatusCode::from_u16(status).unwrap(), body.as_bytes()).unwrap_err();
            assert_eq!((failure.kind, failure.sentence.as_str()), (kind, sentence));
        }
        assert!(Reply::read(StatusCode::OK, b"<html>").is_err());
        assert_eq!(Reply::read(StatusCode::NO_CONTENT, b"").unwrap().body, Value::Null);
    }
}
