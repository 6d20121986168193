//! `/healthz` and `/readyz`: open to anybody, since what they tell is only whether the node lives and schedules.

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
        Readiness::Ready => json_response(StatusCode::OK, &json!({"status": "ready"})),
        Readiness::NotReady(reason) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    };
    warp::path!("readyz").and(reading()).map(ready).boxed()
}
