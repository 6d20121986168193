//! Requests that no route takes: 404 for an unknown path, 405 with `Allow` for a method that the path does not have.

use std::sync::Arc;

use warp::Filter;
use warp::filters::BoxedFilter;
use warp::http::header::{ALLOW, HeaderValue};
use warp::http::{Method, StatusCode};
use warp::path::FullPath;
use warp::reply::Response;

use crate::config::Role;
use crate::http::openapi::table::allowed;
use crate::http::problem::{HttpResult, Problem, answer};
use crate::http::request::caller::{Admitted, call};
use crate::http::state::ApiState;

/// Takes everything. Only callers with a token are told which paths there are.
pub(in crate::http) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = warp::path::full().and(warp::method()).and(call(api, Role::Viewer));
    let handler = async |path: FullPath, method: Method, admitted: Admitted| -> HttpResult {
        admitted?;
        let Some(allow) = allowed(path.as_str()) else {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path"));
        };
        let problem =
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible here; possible: {allow}"));
        Err(match HeaderValue::from_str(&allow) {
            Ok(allow) => problem.with_header(ALLOW, allow),
            Err(_) => problem,
        })
    };
    route.then(move |path, method, call| answer(handler(path, method, call))).boxed()
}
