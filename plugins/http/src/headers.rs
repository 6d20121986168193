//! The headers of a call: the facts of the run, and those of the job.

use carillon_plugin::Run;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::params::Params;

/// Only the executor may set headers with this beginning, so that a receiver can rely on them.
const RESERVED: &str = "carillon-";
/// These say how a message is framed, which is the client's to decide.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// By which the receiver knows the firing, refuses who was replaced, and does nothing twice.
pub(crate) fn of_run(run: &Run<'_>) -> Result<HeaderMap, String> {
    let facts = [
        ("carillon-namespace", run.namespace().to_owned()),
        ("carillon-job", run.job().to_owned()),
        ("carillon-due-at", run.due_at_rfc3339()),
        ("carillon-attempt", run.attempt().to_string()),
        ("carillon-run-id", run.run_id().to_owned()),
        ("carillon-fencing-token", run.fencing_token().to_string()),
        ("idempotency-key", run.firing_id()),
        ("user-agent", concat!("carillon-http/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    // The server tells the place in a trace by this variable.
    let trace = run.env().find(|(name, _)| *name == "TRACEPARENT").map(|(_, text)| ("traceparent", text.to_owned()));
    let facts = facts.into_iter().chain(trace);
    facts.map(|(name, text)| Ok((HeaderName::from_static(name), value(name, &text)?))).collect()
}

/// A header of the job. The name of a secret header may be shown, its value never.
pub(crate) fn of_job(params: &Params) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, text) in &params.headers {
        let parsed: HeaderName = name.parse().map_err(|_| format!("{name:?} cannot be the name of a header"))?;
        if parsed.as_str().starts_with(RESERVED) {
            return Err(format!("the header {name} is the executor's to say: nothing that begins with Carillon- is"));
        }
        if FRAMING.contains(&parsed.as_str()) {
            return Err(format!("the header {name} cannot be given: it follows from the body and the connection"));
        }
        if headers.insert(parsed, value(name, text.as_str())?).is_some() {
            return Err(format!("the header {name} is given twice, in capital and in small letters"));
        }
    }
    if let Some(content_type) = content_type(params) {
        headers.entry("content-type").or_insert(HeaderValue::from_static(content_type));
    }
    Ok(headers)
}

fn content_type(params: &Params) -> Option<&'static str> {
    match (&params.json, &params.body) {
        (Some(_), _) => Some("application/json"),
        (None, Some(_)) => Some("text/plain; charset=utf-8"),
        (None, None) => None,
    }
}

/// A line break in a value would begin another header, or another request.
fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    let refused = |_| format!("the value of the header {name} holds a line break or another control character");
    HeaderValue::from_bytes(text.as_bytes()).map_err(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(given: serde_json::Value) -> Result<HeaderMap, String> {
        of_job(&serde_json::from_value(json!({"url": "http://a", "headers": given})).unwrap())
    }

    #[test]
    fn what_would_break_out_of_its_header_is_refused() {
        for value in ["a\r\nX: y", "a\nb", "a\rb", "a\0b", "a\u{7f}"] {
            let error = headers(json!({"X-A": value})).unwrap_err();
            assert_eq!(error, "the value of the header X-A holds a line break or another control character");
        }
        for name in ["X A", "X:A", "X\r\nA", "", "Ä"] {
            assert!(headers(json!({name: "v"})).unwrap_err().ends_with("cannot be the name of a header"), "{name}");
        }
        for name in ["Carillon-Job", "CARILLON-FENCING-TOKEN", "carillon-x"] {
            assert!(headers(json!({name: "v"})).unwrap_err().contains("is the executor's to say"), "{name}");
        }
        for name in ["Content-Length", "Transfer-Encoding", "Connection"] {
            assert!(headers(json!({name: "1"})).unwrap_err().contains("cannot be given"), "{name}");
        }
        assert!(headers(json!({"X-A": "1", "x-a": "2"})).unwrap_err().contains("twice"));
    }

    #[test]
    fn what_is_harmless_goes_out() {
        let sent = headers(json!({"X-A": "ü\t!", "Host": "b", "Idempotency-Key": {"value": "k", "secret": true}}));
        assert_eq!(sent.unwrap().len(), 3);
    }
}
