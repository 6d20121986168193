//! The HTTP API.
//!
//! One filter function a route, its test beside it. A route answers through [`problem::answer`], so that every error takes
//! the same way to JSON; nothing is rejected once the path and the method match. What may be called by whom is decided in
//! [`call`], before a handler sees the request.

mod access;
mod actions;
mod batch;
mod body;
mod call;
mod etag;
mod fallback;
mod gather;
mod health;
mod hosts;
mod jobs;
mod listing;
mod metrics;
mod node;
mod output;
mod passed;
mod problem;
mod query;
mod runs;
mod server;
mod state;
mod token_file;
mod unread;

#[cfg(test)]
mod tests;

pub use access::Tokens;
pub use hosts::Hosts;
pub use server::{BindError, bind, serve};
pub use state::ApiState;
pub use token_file::{TOKEN_FILE, TokenFileError};

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Reply};

/// Every route; what none of them takes is a 404 or 405.
pub fn routes(state: Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let jobs = jobs::routes(&state).or(batch::route(&state)).unify().or(listing::routes(&state)).unify();
    let runs = runs::routes(&state).or(output::route(&state)).unify().or(actions::routes(&state)).unify();
    let node = node::routes(&state).or(health::routes(&state)).unify().or(metrics::route(&state)).unify();
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
