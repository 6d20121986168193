//! Reading a request's body within bounds: size, time and type are checked before anything is parsed.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use warp::Buf;
use warp::http::StatusCode;
use warp::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use warp::hyper::body::Bytes;

use crate::http::problem::Problem;
use carillon_json::parse_json;

/// The longest body of an ordinary request, in bytes.
pub(crate) const ORDINARY: usize = 1024 * 1024;
/// The longest body of a batch, in bytes.
pub(crate) const BATCH: usize = 16 * 1024 * 1024;
/// How long a body may take to arrive; nobody without a token gets as far as sending one.
const ARRIVES_WITHIN: Duration = Duration::from_secs(120);

/// A body as it comes in.
pub(crate) type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send + Sync>>;

/// Boxes the body that warp hands out.
pub(crate) fn boxed(body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + Sync + 'static) -> BodyStream {
    Box::pin(body.map(|chunk| chunk.map(|mut chunk| chunk.copy_to_bytes(chunk.remaining()))))
}

/// Reads a body that must be JSON; an empty one counts as `{}` where `may_be_empty`.
pub(crate) async fn json(
    headers: &HeaderMap,
    body: BodyStream,
    limit: usize,
    may_be_empty: bool,
) -> Result<Value, Problem> {
    check_type(headers)?;
    let mut announced = headers.get_all(CONTENT_LENGTH).iter().filter_map(|length| length.to_str().ok()?.parse().ok());
    if announced.any(|length: u64| length > limit as u64) {
        return Err(too_large(limit));
    }
    let read = tokio::time::timeout(ARRIVES_WITHIN, collect(body, limit)).await;
    let text = read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"))??;
    if text.is_empty() && may_be_empty {
        return Ok(json!({}));
    }
    parse_json(&text).map_err(|error| Problem::bad(error.to_string()))
}

pub(crate) async fn collect(mut body: BodyStream, limit: usize) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|_| Problem::bad("the body broke off"))?;
        if text.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported = |detail: &str| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return unsupported("the body is compressed: send it as it is");
    }
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    unsupported("writes need the header Content-Type: application/json")
}

fn too_large(limit: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {limit} bytes"))
}
