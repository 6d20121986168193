//! From a request to the call of the table that it makes: one filter for the whole API.
//!
//! A path that no call has is answered with 404, a method that its path does not have with 405 and `Allow`. Only callers with a token
//! are told which paths there are.

use std::sync::Arc;

use warp::Filter;
use warp::filters::BoxedFilter;
use warp::http::header::{ALLOW, HeaderMap, HeaderValue};
use warp::http::{Method, StatusCode};
use warp::path::FullPath;
use warp::reply::Response;

use crate::config::Role;
use crate::http::connection::{Connection, connection};
use crate::http::openapi::operation::Handler;
use crate::http::openapi::table::{allowed, find};
use crate::http::problem::{HttpResult, Problem, answer};
use crate::http::request::body;
use crate::http::request::caller::{Call, Incoming};
use crate::http::request::query::raw_query;
use crate::http::state::ApiState;

/// Every call of the API. It takes all that comes.
pub(in crate::http) fn routes(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let api = Arc::clone(api);
    warp::path::full()
        .and(warp::method())
        .and(warp::header::headers_cloned())
        .and(raw_query())
        .and(connection())
        .and(warp::body::stream())
        .then(move |path: FullPath, method: Method, headers: HeaderMap, query: String, connection: Connection, body| {
            let body = body::boxed(body);
            let request = Incoming { api: Arc::clone(&api), method, headers, query, connection, body };
            async move { answer(respond(path.as_str(), request)).await }
        })
        .boxed()
}

async fn respond(path: &str, request: Incoming) -> HttpResult {
    let method = request.method.clone();
    let Some((operation, segment)) = find(&method, path) else {
        Call::admit(request, Role::Viewer, "").await?;
        return Err(not_here(&method, path));
    };
    match operation.handler {
        Handler::Open(handler) => Ok(handler(&request.api)),
        Handler::Admitted(role, handler) => handler(Call::admit(request, role, segment).await?).await,
    }
}

fn not_here(method: &Method, path: &str) -> Problem {
    let Some(allow) = allowed(path) else {
        return Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path");
    };
    let problem =
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible here; possible: {allow}"));
    match HeaderValue::from_str(&allow) {
        Ok(allow) => problem.with_header(ALLOW, allow),
        Err(_) => problem,
    }
}
