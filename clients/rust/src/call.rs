//! One call: its path, its query, its headers and its body.

use serde::Serialize;

use crate::Error;

/// A call that is not sent yet.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub method: &'static str,
    /// The path with its query.
    pub target: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Vec<u8>>,
}

impl Call {
    pub fn new(method: &'static str, path: &'static str) -> Self {
        Self { method, target: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// Puts a value in the place of `{key}` in the path.
    pub fn at(mut self, key: &str, value: impl ToString) -> Self {
        self.target = self.target.replacen(&format!("{{{key}}}"), &escaped(&value.to_string()), 1);
        self
    }

    /// Adds a parameter to the query, if there is a value for it.
    pub fn with(mut self, key: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            self.target.push_str(&format!("{key}={}", escaped(&value.to_string())));
        }
        self
    }

    /// Adds a header, if there is a value for it.
    pub fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a body, if there is one.
    pub fn body(mut self, body: Option<&impl Serialize>) -> Result<Self, Error> {
        if let Some(body) = body {
            self.body = Some(serde_json::to_vec(body).map_err(|error| Error::Unsent(error.to_string()))?);
        }
        Ok(self)
    }

    /// Whether doing it twice is the same as doing it once.
    pub fn may_be_repeated(&self) -> bool {
        self.method == "GET"
    }
}

/// Percent-encoded, so that a name can be no step between directories.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'*' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        let call = Call::new("GET", "/v1/jobs/{name}/runs").at("name", "a/../b").with("label", Some("a=b c"));
        let call = call.with("namespace", Some("*")).with("limit", None::<i64>);
        assert_eq!(call.target, "/v1/jobs/a%2F..%2Fb/runs?label=a%3Db%20c&namespace=*");
    }
}
