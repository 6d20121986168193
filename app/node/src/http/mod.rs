//! The HTTP API.
//!
//! Every call stands in [`openapi::table`], with the function that performs it; a file of [`routes`] has a few of them, with their
//! tests in `tests`. [`dispatch`] finds the call of a request and lets the caller in, before a handler sees the request. Every error
//! takes the same way to JSON, in [`problem`].

mod base_path;
pub(crate) mod connection;
mod dispatch;
mod openapi;
pub(crate) mod problem;
mod protocol;
mod put_loader;
pub(crate) mod request;
pub(crate) mod routes;
mod server;
pub(crate) mod shared_reads;
pub(crate) mod state;
mod tls;

#[cfg(test)]
mod tests;

pub use crate::http::base_path::BasePath;
pub use crate::http::connection::{Connection, Fingerprint};
pub use crate::http::request::access::Tokens;
pub use crate::http::request::hosts::Hosts;
pub use crate::http::request::token_file::{TOKEN_FILE, TokenFileError, has_token_file};
pub use crate::http::server::{BindError, bind, serve};
pub use crate::http::state::ApiState;
pub use crate::http::tls::{Tls, TlsError, TlsLook};

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::http::header::{self, CACHE_CONTROL, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use warp::reply::Response;
use warp::{Filter, Reply};

/// The page and the API; what neither has is a 404 or 405.
pub fn routes(state: Arc<ApiState>) -> BoxedFilter<(Response,)> {
    crate::page::routes(&state).or(dispatch::routes(&state)).unify().map(harden).boxed()
}

/// Everything that a page needs comes from its own server as a file; nothing inline, nothing framed.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     frame-ancestors 'none'; base-uri 'none'",
);

/// Headers that every answer carries: browsers neither guess a type nor run what others wrote, and keep only pages and files.
fn harden(reply: impl Reply) -> Response {
    let mut response = reply.into_response();
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Not no-referrer: with that a browser sends `Origin: null` with a form, and it would be turned away.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
