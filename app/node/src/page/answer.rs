//! Pages on their way: entity tags, compression, redirects, cookies.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use warp::http::StatusCode;
use warp::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
    LOCATION, VARY,
};
use warp::reply::Response;

/// Shorter bodies are sent as they are.
const WORTH_COMPRESSING: usize = 1_024;
/// Fast enough that compressing costs less than sending would.
const LEVEL: u32 = 4;

/// A page. A browser that has the same one is told so with 304.
///
/// The page holds a CSRF token and may repeat parts of the query, which compression could give away (BREACH). The attack needs requests
/// with the cookie from another site, and the cookie is SameSite=Strict.
pub(crate) fn html(status: StatusCode, headers: &HeaderMap, text: String) -> Response {
    let hash: String = Sha256::digest(&text).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    // Weak: the compressed page is the same page.
    let tag = format!("W/\"{hash}\"");
    let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    let known = status.is_success() && known.split(',').any(|one| one.trim() == tag);
    let mut response = if known {
        let mut response = Response::new("".into());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        body(status, headers, text)
    };
    let out = response.headers_mut();
    out.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    out.insert(VARY, HeaderValue::from_static("accept-encoding, cookie"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        out.insert(ETAG, tag);
    }
    response
}

fn body(status: StatusCode, headers: &HeaderMap, text: String) -> Response {
    let gzip = text.len() >= WORTH_COMPRESSING && takes_gzip(headers);
    let body = if gzip { compress(text.as_bytes(), LEVEL) } else { text.into_bytes() };
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Leads the browser to another page by GET. The path is one inside this server: the server puts the prefix before it.
pub(crate) fn see_other(address: &str) -> Response {
    let mut response = Response::new("".into());
    *response.status_mut() = StatusCode::SEE_OTHER;
    // An address is made of encoded parts; one that is no header leads to the first page.
    let address = HeaderValue::from_str(address).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, address);
    response
}

/// Whether a client takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

/// Compresses bytes in memory.
pub(crate) fn compress(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(level));
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_to_those_who_take_it() {
        let takes = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(text));
            takes_gzip(&headers)
        };
        assert!(takes("gzip") && takes("deflate, GZip;q=0.5, br"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes_gzip(&HeaderMap::new()));
    }
}
