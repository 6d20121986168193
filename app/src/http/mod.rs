//! The HTTP API.
//!
//! One filter function a route, its test beside it. A route answers through [`problem::answer`], so that every error takes
//! the same way to JSON; nothing is rejected once the path and the method match. What may be called by whom is decided in
//! [`call`], before a handler sees the request.

mod fallback;
mod problem;
mod put_loader;
mod request;
mod routes;
mod server;
mod state;

#[cfg(test)]
mod tests;

pub use crate::http::request::access::Tokens;
pub use crate::http::request::hosts::Hosts;
pub use crate::http::request::token_file::{TOKEN_FILE, TokenFileError};
pub use crate::http::server::{BindError, bind, serve};
pub use crate::http::state::ApiState;

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Reply};

/// Every route; what none of them takes is a 404 or 405.
pub fn routes(state: Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let jobs = routes::jobs::routes(&state)
        .or(routes::batch::route(&state))
        .unify()
        .or(routes::listing::routes(&state))
        .unify();
    let runs = routes::runs::routes(&state)
        .or(routes::output::route(&state))
        .unify()
        .or(routes::actions::routes(&state))
        .unify();
    let node = routes::cluster::routes(&state)
        .or(routes::health::routes(&state))
        .unify()
        .or(routes::metrics::route(&state))
        .unify()
        .or(routes::events::route(&state))
        .unify();
    let all = jobs.or(runs).unify().or(node).unify().or(fallback::route(&state)).unify();
    all.map(harden).boxed()
}

/// Headers that every answer carries: browsers neither guess a type nor keep anything.
fn harden(reply: impl Reply) -> Response {
    use warp::http::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
    let mut response = reply.into_response();
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
