//! Requests that no route takes: 404 for an unknown path, 405 with `Allow` for a method that the path does not have.

use std::sync::Arc;

use warp::Filter;
use warp::filters::BoxedFilter;
use warp::http::header::{ALLOW, HeaderValue};
use warp::http::{Method, StatusCode};
use warp::path::FullPath;
use warp::reply::Response;

use crate::config::Role;
use crate::http::problem::{HttpResult, Problem, answer};
use crate::http::request::caller::{Admitted, call};
use crate::http::state::ApiState;

/// Every path with its methods; `*` stands for one segment. A test holds it against the routes.
pub(in crate::http) const RESOURCES: [(&str, &str); 20] = [
    ("/v1/jobs", "GET, HEAD, POST"),
    ("/v1/jobs:batch", "POST"),
    ("/v1/jobs/*", "GET, HEAD, PUT, DELETE"),
    ("/v1/jobs/*/pause", "POST"),
    ("/v1/jobs/*/resume", "POST"),
    ("/v1/jobs/*/run", "POST"),
    ("/v1/jobs/*/runs", "GET, HEAD"),
    ("/v1/jobs/*/next", "GET, HEAD"),
    ("/v1/runs", "GET, HEAD"),
    ("/v1/runs/*", "GET, HEAD"),
    ("/v1/runs/*/output", "GET, HEAD"),
    ("/v1/runs/*/cancel", "POST"),
    ("/v1/cluster", "GET, HEAD"),
    ("/v1/cluster/accept", "POST"),
    ("/v1/executors", "GET, HEAD"),
    ("/v1/events", "GET, HEAD"),
    ("/v1/schedules/explain", "POST"),
    ("/healthz", "GET, HEAD"),
    ("/readyz", "GET, HEAD"),
    ("/metrics", "GET, HEAD"),
];

/// Takes everything. Only callers with a token are told which paths there are.
pub(in crate::http) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = warp::path::full().and(warp::method()).and(call(api, Role::Viewer));
    let handler = async |path: FullPath, method: Method, admitted: Admitted| -> HttpResult {
        admitted?;
        let known = RESOURCES.iter().find(|(pattern, _)| matches(pattern, path.as_str()));
        match known {
            Some((_, allow)) => {
                let detail = format!("{method} is not possible here; possible: {allow}");
                let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
                Err(problem.with_header(ALLOW, HeaderValue::from_static(allow)))
            }
            None => Err(Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path")),
        }
    };
    route.then(move |path, method, call| answer(handler(path, method, call))).boxed()
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    let one = |(expected, found): (&&str, &&str)| expected == found || (*expected == "*" && !found.is_empty());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(one)
}
