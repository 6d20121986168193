//! `/healthz` and `/readyz`: open to anybody, since they tell only whether the node lives and schedules, and its timing.

use std::sync::Arc;

use serde_json::json;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::reply::Response;

use crate::engine::Readiness;
use crate::http::problem::{Problem, json_response};
use crate::http::request::caller::reading;
use crate::http::state::ApiState;
use carillon_json::timing_json;

pub(in crate::http) fn routes(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    healthz().or(readyz(api)).unify().boxed()
}

/// `GET /healthz`: the process answers.
fn healthz() -> BoxedFilter<(Response,)> {
    warp::path!("healthz").and(reading()).map(|| json_response(StatusCode::OK, &json!({"status": "ok"}))).boxed()
}

/// `GET /readyz`: the node schedules; otherwise 503 with the reason.
fn readyz(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let api = Arc::clone(api);
    let ready = move || match api.engine.readiness() {
        Readiness::Ready => {
            let timing = api.timing.as_ref().map(timing_json);
            json_response(StatusCode::OK, &json!({"status": "ready", "timing": timing}))
        }
        Readiness::NotReady(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    };
    warp::path!("readyz").and(reading()).map(ready).boxed()
}
