//! The HTTP API seen from the command line: one call at a time, and every fault as a sentence.

mod answer;
mod connect;
mod reason;
mod suggest;
mod trust;

use std::io::Read;

use serde_json::Value;
use ureq::http::{Method, Request, Response, Uri};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

pub use self::answer::{Reply, faults};
use self::connect::{MOST_ANSWER, agent, base_of, hasty_agent, token};
use self::reason::Reason;
use super::args::ServerArgs;
use super::failure::{CommandFailure, FailureKind};

/// The largest page that the API hands out.
const PAGE: usize = 1_000;

/// A server, and what to tell it.
pub struct Client {
    agent: Agent,
    /// Such as `http://127.0.0.1:7650`, without a slash at the end.
    base: String,
    token: Option<String>,
}

/// A call of the API.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    method: Method,
    path: String,
    query: Vec<(&'a str, String)>,
    body: Option<Value>,
    /// A condition on the stored object: the header and its value.
    condition: Option<(&'static str, String)>,
}

impl<'a> Call<'a> {
    /// A call that reads. The path begins with a slash and needs no escaping: names and ids have been checked.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// A call that does something.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// A call that replaces.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    /// A call that deletes.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a parameter to the query.
    pub fn with(mut self, key: &'a str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }

    /// Adds a parameter if there is a value for it.
    pub fn with_some(self, key: &'a str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(key, value.to_string()),
            None => self,
        }
    }

    /// Adds a body.
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Applies only to this generation.
    pub fn if_match(mut self, generation: &Value) -> Self {
        self.condition = Some(("If-Match", format!("\"{generation}\"")));
        self
    }

    /// Applies only if there is nothing of that name.
    pub fn if_none_match(mut self) -> Self {
        self.condition = Some(("If-None-Match", "*".to_owned()));
        self
    }

    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: Vec::new(), body: None, condition: None }
    }
}

impl Client {
    /// A way to the server that the arguments name. Nothing is sent yet.
    pub fn new(args: &ServerArgs) -> Result<Self, CommandFailure> {
        Self::with(agent, args)
    }

    /// As [`Client::new`], for a person who waits with a finger on a key: it gives up soon.
    pub fn in_haste(args: &ServerArgs) -> Result<Self, CommandFailure> {
        Self::with(hasty_agent, args)
    }

    fn with(agent: fn(&Uri, TlsConfig) -> Agent, args: &ServerArgs) -> Result<Self, CommandFailure> {
        let (base, uri) = base_of(&args.server)?;
        let token = token(args.cert.is_some())?;
        Ok(Self { agent: agent(&uri, trust::config(args)?), base, token })
    }

    /// The address of a path of this server.
    pub fn address_of(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Calls and reads the whole answer; anything but a success is a [`CommandFailure`].
    pub fn call(&self, call: Call<'_>) -> Result<Reply, CommandFailure> {
        let mut response = self.exchange(&call)?;
        let body = response.body_mut().with_config().limit(MOST_ANSWER).read_to_vec();
        let body = body.map_err(|error| self.broken(&error))?;
        Reply::read(response.status(), &body).map_err(|failure| {
            let mut failure = self.with_advice(failure, response.status().as_u16());
            if failure.kind == FailureKind::NotFound
                && let Some(name) = suggest::meant(self, &call)
            {
                failure.sentence.push_str(&format!("; did you mean {name}?"));
            }
            failure
        })
    }

    /// Calls and hands out what a run printed as it comes, and whether the server kept only the beginning and the end.
    pub fn stream(&self, call: Call<'_>) -> Result<(impl Read + use<>, bool), CommandFailure> {
        let mut response = self.exchange(&call)?;
        let status = response.status();
        if !status.is_success() {
            let body = response.body_mut().with_config().limit(MOST_ANSWER).read_to_vec().unwrap_or_default();
            let failure = Reply::read(status, &body).err();
            let failure = failure.unwrap_or_else(|| CommandFailure::failed(format!("the server answered {status}")));
            return Err(self.with_advice(failure, status.as_u16()));
        }
        // A bound of its own would cut a run that prints for days.
        let truncated = response.headers().get("carillon-output-truncated").is_some_and(|told| told == "true");
        Ok((response.into_body().into_with_config().limit(u64::MAX).reader(), truncated))
    }

    /// The items of a listing, up to `most`.
    pub fn all(&self, call: &Call<'_>, most: Option<usize>) -> Result<Vec<Value>, CommandFailure> {
        let mut items = Vec::new();
        self.each(call, most, |item| {
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }

    /// Hands over the items of a listing, page by page, up to `most`.
    pub fn each(
        &self,
        call: &Call<'_>,
        most: Option<usize>,
        mut take: impl FnMut(Value) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let mut left = most.unwrap_or(usize::MAX);
        let mut cursor: Option<String> = None;
        while left > 0 {
            let page = call.clone().with("limit", left.min(PAGE).to_string()).with_some("cursor", cursor.as_ref());
            let mut reply = self.call(page)?;
            for item in reply.take_items().into_iter().take(left) {
                left -= 1;
                take(item)?;
            }
            let next = reply.body["next_cursor"].as_str().map(str::to_owned);
            if next.is_none() {
                break;
            }
            if next == cursor {
                return Err(CommandFailure::failed(
                    "the server answered the same page twice; the listing is not complete",
                ));
            }
            cursor = next;
        }
        Ok(())
    }

    fn exchange(&self, call: &Call<'_>) -> Result<Response<Body>, CommandFailure> {
        let url = format!("{}{}{}", self.base, call.path, query_text(&call.query));
        let mut request = Request::builder().method(call.method.clone()).uri(url);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some((header, value)) = &call.condition {
            request = request.header(*header, value);
        }
        if call.method != Method::GET {
            request = request.header("Content-Type", "application/json");
        }
        let mut body = call.body.as_ref().map(Value::to_string);
        if call.method == Method::POST {
            // Without a body ureq would announce a chunked one that is empty, where a length of 0 says it all.
            body.get_or_insert_default();
        }
        let sent = match body {
            Some(body) => request.body(body).map_err(ureq::Error::Http).and_then(|request| self.agent.run(request)),
            None => request.body(()).map_err(ureq::Error::Http).and_then(|request| self.agent.run(request)),
        };
        sent.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &ureq::Error) -> CommandFailure {
        let (base, reason) = (&self.base, Reason::of(error));
        CommandFailure::failed(format!("cannot reach the server at {base}: {}; {}", reason.what, reason.advice))
    }

    fn broken(&self, error: &ureq::Error) -> CommandFailure {
        let base = &self.base;
        CommandFailure::failed(format!(
            "the answer of {base} broke off: {}; look before you try again",
            Reason::of(error).what
        ))
    }

    /// The remedy for a refusal, where it is not the same for everybody.
    fn with_advice(&self, mut failure: CommandFailure, status: u16) -> CommandFailure {
        let advice = match (status, &self.token) {
            (401, None) => "\nset CARILLON_TOKEN, or run this where the server keeps its carillon.token",
            (401, Some(_)) => "\nthe token is not one of this server: look at CARILLON_TOKEN and at ./carillon.token",
            _ => "",
        };
        failure.sentence.push_str(advice);
        failure
    }
}

/// `?a=b&c=d`, percent-encoded.
fn query_text(query: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (key, value) in query {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(key);
        text.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'*' => {
                    text.push(char::from(byte))
                }
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    text
}

/// Whether a server is this machine itself, which no proxy leads to.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        let query = [("label", "a=b c".to_owned()), ("namespace", "*".to_owned())];
        assert_eq!(query_text(&query), "?label=a%3Db%20c&namespace=*");
        assert_eq!(query_text(&[]), "");
    }

    #[test]
    fn loopback_is_known_by_its_addresses() {
        for (uri, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
