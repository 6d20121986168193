//! The query of a page's address, which holds all of its state, and the addresses of the same page in other states.

use crate::http::request::query::decode;

/// Longer queries are cut: a page has no use for them.
const MOST_PAIRS: usize = 32;

/// The parameters in their order; empty ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query or the body of a form. A broken escape makes its pair disappear; of a name that stands twice the first counts, unless
    /// [`Params::all`] is asked.
    pub fn parse(raw: &str) -> Self {
        let plain = |text: &str| decode(&text.replace('+', " "));
        let pairs = raw.split('&').take(MOST_PAIRS * 8).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((plain(key)?, plain(value)?)).filter(|(key, value)| !key.is_empty() && !value.is_empty())
        });
        Self(pairs.collect())
    }

    /// These pairs, but for empty values.
    pub fn of(pairs: Vec<(String, String)>) -> Self {
        Self(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// The value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The same with another value; `None` takes the parameter away.
    pub fn with(&self, key: &str, value: Option<&str>) -> Self {
        let mut pairs: Vec<_> = self.0.iter().filter(|(name, _)| name != key).cloned().collect();
        pairs.extend(value.map(|value| (key.to_owned(), value.to_owned())));
        Self(pairs)
    }

    /// The same without the parameters of some names.
    pub fn without(&self, goes: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| !goes(name)).cloned().collect())
    }

    /// The same with one more value of a parameter.
    pub fn and(mut self, key: &str, value: impl Into<String>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// The same with only these parameters.
    pub fn only(&self, keys: &[&str]) -> Self {
        Self(self.0.iter().filter(|(name, _)| keys.contains(&name.as_str())).take(MOST_PAIRS).cloned().collect())
    }

    /// The pairs.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// `?a=b&c=d`, percent-encoded; empty where there is nothing.
    pub fn to_query(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.0 {
            text.push(if text.is_empty() { '?' } else { '&' });
            encode_into(&mut text, key);
            text.push('=');
            encode_into(&mut text, value);
        }
        text
    }
}

/// A segment of a path or a part of a query, percent-encoded.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::new();
    encode_into(&mut out, text);
    out
}

fn encode_into(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_page_goes_round() {
        let params = Params::parse("q=a%26b+c&state=&x=%zz&label=a%3Db&label=c");
        assert_eq!((params.get("q"), params.get("state"), params.get("x")), (Some("a&b c"), None, None));
        assert_eq!(params.all("label").collect::<Vec<_>>(), ["a=b", "c"]);
        assert_eq!(Params::parse(&params.to_query()[1..]), params);
        assert_eq!(params.with("q", Some("\"<é>")).only(&["q"]).to_query(), "?q=%22%3C%C3%A9%3E");
        assert_eq!(params.with("q", None).with("label", None).to_query(), "");
    }
}
