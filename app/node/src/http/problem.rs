//! Errors as the API tells them: RFC 9457 `application/problem+json`, made in one place.
//!
//! A database that is away is a 503, which says whether the request was applied: `"outcome"` is `not_applied` or
//! `unknown`. Nothing is ever a 500.

use std::future::Future;

use carillon_domain::firing::Rejected;
use carillon_domain::store::Refusal;
use carillon_store::alerts::AlertError;
use carillon_store::{ControlError, StoreError};
use serde_json::{Value, json};
use warp::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use warp::http::{Response as HttpResponse, StatusCode};
use warp::reply::Response;

use carillon_json::FieldError;

/// The answer of a handler.
pub(crate) type HttpResult = Result<Response, Problem>;

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub status: StatusCode,
    pub detail: String,
    pub errors: Vec<FieldError>,
    pub outcome: Option<&'static str>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Problem {
    /// A problem with a sentence about it.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new(), outcome: None, header: None }
    }

    /// Bad input that no single field is to blame for.
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Bad input: a sentence for each field.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] if one.field.is_empty() => one.message.clone(),
            [one] => format!("{}: {}", one.field, one.message),
            many => format!("{} faults were found", many.len()),
        };
        Self { errors, ..Self::bad(detail) }
    }

    /// Bad input in one field.
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Self::fields(vec![FieldError::new(field, message)])
    }

    /// Adds a header to the answer.
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { header: Some(Box::new((name, value))), ..self }
    }

    /// The answer for each item of a batch.
    pub fn into_errors(self) -> Vec<FieldError> {
        if self.errors.is_empty() { vec![FieldError::new("", self.detail)] } else { self.errors }
    }

    /// The one way from an error to JSON.
    pub fn into_response(self) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "errors": self.errors,
        });
        if let Some(outcome) = self.outcome {
            body["outcome"] = json!(outcome);
        }
        let mut response = HttpResponse::new(body.to_string().into());
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(header) = self.header {
            response.headers_mut().insert(header.0, header.1);
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (outcome, again) = match error {
            StoreError::Retryable(_) => ("not_applied", true),
            StoreError::Unknown(_) => ("unknown", false),
            StoreError::Permanent(_) | StoreError::LockMissing(_) => ("not_applied", false),
        };
        let told = match outcome {
            "unknown" => format!("{error}; look before you try again"),
            _ => format!("the request was not applied: {error}"),
        };
        let problem = Self { outcome: Some(outcome), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, told) };
        if again { problem.with_header(RETRY_AFTER, HeaderValue::from_static("1")) } else { problem }
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        match &rejected {
            Rejected::NeverFires | Rejected::BadSchedule(_) => {
                let schedule = Self::field("schedule", rejected.to_string());
                Self { status: StatusCode::UNPROCESSABLE_ENTITY, ..schedule }
            }
            Rejected::NothingDue
            | Rejected::AlreadyHeld(_)
            | Rejected::NotHeld(_)
            | Rejected::Early(_)
            | Rejected::ManualWaiting(_)
            | Rejected::Deleted => Self::new(StatusCode::CONFLICT, rejected.to_string()),
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let status = match error {
            ControlError::Store(error) => return error.into(),
            ControlError::Refused(Refusal::Rejected(rejected)) => return rejected.into(),
            ControlError::Refused(Refusal::NoJob(_)) | ControlError::Refused(Refusal::NoRun(_)) => {
                StatusCode::NOT_FOUND
            }
            ControlError::Refused(Refusal::RunEnded(_) | Refusal::NameTaken(_) | Refusal::StillUnknown(_)) => {
                StatusCode::CONFLICT
            }
            ControlError::Refused(Refusal::Stale { .. }) => StatusCode::PRECONDITION_FAILED,
        };
        Self::new(status, error.to_string())
    }
}

impl From<AlertError> for Problem {
    fn from(error: AlertError) -> Self {
        let status = match error {
            AlertError::Store(error) => return error.into(),
            AlertError::NoRoute(_) | AlertError::NoDelivery(_) => StatusCode::NOT_FOUND,
            AlertError::Unreadable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            AlertError::Stale { .. } => StatusCode::PRECONDITION_FAILED,
            AlertError::Refused(_) => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

/// Runs a handler to its end; every route answers through here.
pub(crate) async fn answer(handler: impl Future<Output = HttpResult>) -> Response {
    handler.await.unwrap_or_else(Problem::into_response)
}

/// A JSON answer.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut response = HttpResponse::new(body.to_string().into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds a header whose value is made of checked names and numbers.
pub(in crate::http) fn set_header(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_fails_says_whether_the_request_was_applied() {
        for (error, outcome, again) in [
            (StoreError::Retryable("busy".into()), "not_applied", true),
            (StoreError::Permanent("full".into()), "not_applied", false),
            (StoreError::Unknown("cut".into()), "unknown", false),
        ] {
            let response = Problem::from(error).into_response();
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), again, "{outcome}");
            assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        }
    }

    #[test]
    fn one_fault_is_told_in_the_detail_too() {
        let problem = Problem::field("timeout", "it is negative");
        assert_eq!(problem.detail, "timeout: it is negative");
        assert_eq!(problem.errors.len(), 1);
        let two = Problem::fields(vec![FieldError::new("a", "x"), FieldError::new("b", "y")]);
        assert_eq!(two.detail, "2 faults were found");
    }
}
