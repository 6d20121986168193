//! `/healthz` and `/readyz`: open to anybody, since they tell only whether the node lives and schedules, and its timing.

use serde_json::json;
use warp::http::StatusCode;
use warp::reply::Response;

use crate::engine::Readiness;
use crate::http::problem::{Problem, json_response};
use crate::http::state::ApiState;
use carillon_json::timing_json;

/// `GET /healthz`: the process answers.
pub(in crate::http) fn is_alive(_: &ApiState) -> Response {
    json_response(StatusCode::OK, &json!({"status": "ok"}))
}

/// `GET /readyz`: the node schedules; otherwise 503 with the reason.
pub(in crate::http) fn is_ready(api: &ApiState) -> Response {
    match api.engine.readiness() {
        Readiness::Ready => {
            let timing = api.timing.as_ref().map(timing_json);
            json_response(StatusCode::OK, &json!({"status": "ready", "timing": timing}))
        }
        Readiness::NotReady(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    }
}
