//! `http.base_path`: a prefix of all paths, for a proxy that hands a part of its own paths on as they are.
//!
//! It is taken from each request before a route sees it, and put before the places that answers name. So no route knows it.

use warp::Reply;
use warp::http::header::{HeaderValue, LOCATION};
use warp::http::uri::{PathAndQuery, Uri};
use warp::http::{Response, StatusCode};

use crate::http::harden;
use crate::http::problem::Problem;

/// Paths that answer without the prefix too: who probes a node's health does not come through the proxy.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// The prefix: empty, or `/segment...` without a slash at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// Of a checked text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The prefix, to put before a path of this server.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the prefix away. `false` where the path has another one.
    pub(in crate::http) fn enter(&self, uri: &mut Uri) -> bool {
        if self.0.is_empty() || OPEN.contains(&uri.path()) {
            return true;
        }
        let Some(rest) = uri.path().strip_prefix(&self.0) else { return false };
        let path = match rest.chars().next() {
            None => "/",
            Some('/') => rest,
            Some(_) => return false,
        };
        let whole = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        // Parts of a path that was read are a path.
        let Ok(stripped) = PathAndQuery::try_from(whole) else { return false };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(stripped);
        Uri::from_parts(parts).map(|stripped| *uri = stripped).is_ok()
    }

    /// Puts the prefix before the place that an answer names. The page names places with the prefix already.
    pub(in crate::http) fn leave<B>(&self, answer: &mut Response<B>) {
        if self.0.is_empty() {
            return;
        }
        let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let is_bare = |place: &&str| place.starts_with('/') && !place.strip_prefix(&self.0).is_some_and(is_rest);
        let Some(place) = place.filter(is_bare) else { return };
        if let Ok(place) = HeaderValue::from_str(&format!("{}{place}", self.0)) {
            answer.headers_mut().insert(LOCATION, place);
        }
    }

    /// The answer to a request for another path.
    pub(in crate::http) fn outside(&self) -> warp::reply::Response {
        let detail = format!("there is nothing at this path; the paths of this server begin with {}", self.0);
        harden(Problem::new(StatusCode::NOT_FOUND, detail).into_response()).into_response()
    }
}

/// Whether a path goes on so behind the prefix.
fn is_rest(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['/', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(base: &str, uri: &str) -> Option<String> {
        let mut uri: Uri = uri.parse().unwrap();
        BasePath::new(base).enter(&mut uri).then(|| uri.to_string())
    }

    #[test]
    fn the_prefix_is_taken_away_once() {
        for (base, uri, inside) in [
            ("", "/v1/jobs?a=b", Some("/v1/jobs?a=b")),
            ("/cron", "/cron/v1/jobs?a=/cron", Some("/v1/jobs?a=/cron")),
            ("/cron", "/cron/cron/v1", Some("/cron/v1")),
            ("/cron", "/cron", Some("/")),
            ("/cron", "/cron?a", Some("/?a")),
            ("/cron", "/cron/", Some("/")),
            ("/a/b", "https://host:1/a/b/v1/jobs", Some("https://host:1/v1/jobs")),
            ("/cron", "/healthz", Some("/healthz")),
            ("/cron", "/cron/readyz", Some("/readyz")),
            ("/cron", "/v1/jobs", None),
            ("/cron", "/cronjobs", None),
            ("/cron", "/CRON/v1", None),
            ("/cron", "/%63ron/v1", None),
            ("/cron", "/metrics", None),
            ("/cron", "*", None),
        ] {
            assert_eq!(enter(base, uri).as_deref(), inside, "{base} {uri}");
        }
    }

    #[test]
    fn answers_name_places_under_the_prefix() {
        for (base, named, told) in [
            ("", "/v1/runs/1", "/v1/runs/1"),
            ("/cron", "/v1/runs/1", "/cron/v1/runs/1"),
            ("/cron", "https://x/", "https://x/"),
        ] {
            let mut answer = Response::builder().header(LOCATION, named).body(()).unwrap();
            BasePath::new(base).leave(&mut answer);
            assert_eq!(answer.headers()[LOCATION], told);
        }
    }
}
