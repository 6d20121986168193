//! The query of a request: read as strictly as a body, with the same sentences.

use carillon_domain::name::check_namespace;
use carillon_domain::time::Timestamp;
use serde_json::{Map, Value};
use warp::Filter;
use warp::filters::BoxedFilter;

use crate::http::problem::Problem;
use carillon_json::{Fields, read_time};

/// How many items a page has where the caller does not say.
const PAGE: u32 = 100;
/// How many it may have.
const LARGEST_PAGE: u32 = 1_000;

/// The query as it stands in the address; empty where there is none.
pub(crate) fn raw_query() -> BoxedFilter<(String,)> {
    warp::query::raw().or(warp::any().map(String::new)).unify().boxed()
}

/// The parameters of a query while they are being read.
pub(crate) struct Query(Fields);

/// Which namespaces a listing is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespaces {
    One(String),
    All,
}

impl Query {
    /// Takes a raw query apart: percent-encoded UTF-8, no parameter twice.
    pub fn parse(raw: &str) -> Result<Self, Problem> {
        let mut given = Map::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| {
                decode(&text.replace('+', " ")).ok_or_else(|| Problem::bad("the query is not percent-encoded UTF-8"))
            };
            let (key, value) = (plain(key)?, plain(value)?);
            if given.contains_key(&key) {
                return Err(Problem::field(&shortened(&key), "it stands twice in the query"));
            }
            given.insert(key, Value::String(value));
        }
        Fields::of(Value::Object(given), "a query").map(Self).map_err(Problem::fields)
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        self.0.text(key)
    }

    pub fn choice<T: Copy>(&mut self, key: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Option<T> {
        self.0.choice(key, all, name)
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.0.choice(key, &[true, false], |flag| if flag { "true" } else { "false" })
    }

    pub fn integer(&mut self, key: &str, least: u32, most: u32) -> Option<u32> {
        let text = self.0.text(key)?;
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.0.fault(key, format!("it must be a whole number from {least} to {most}"));
        }
        number
    }

    pub fn time(&mut self, key: &str) -> Option<Timestamp> {
        // The plus sign of an offset, which means a blank where it was not encoded.
        let text = self.0.text(key)?.replace(' ', "+");
        read_time(&text).map_err(|message| self.0.fault(key, message)).ok()
    }

    /// How many items a page may have.
    pub fn limit(&mut self) -> usize {
        self.integer("limit", 1, LARGEST_PAGE).unwrap_or(PAGE) as usize
    }

    /// Where a page begins, read by `read`.
    pub fn cursor<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.0.text("cursor")?;
        let cursor = read(&text);
        if cursor.is_none() {
            self.0.fault("cursor", "it is not a cursor of this listing: use next_cursor as it was answered");
        }
        cursor
    }

    /// One namespace, if it is given.
    pub fn namespace(&mut self) -> Option<String> {
        let name = self.0.text("namespace")?;
        check_namespace(&name).map_err(|error| self.0.fault("namespace", error.to_string())).ok()?;
        Some(name)
    }

    /// The namespaces of a listing: `*` for all, `default` where nothing is given.
    pub fn namespaces(&mut self) -> Namespaces {
        self.namespaces_or(Namespaces::One("default".into()))
    }

    /// The namespaces of a listing: `*` for all, `preset` where nothing is given.
    pub fn namespaces_or(&mut self, preset: Namespaces) -> Namespaces {
        match self.0.text("namespace") {
            None => preset,
            Some(all) if all == "*" => Namespaces::All,
            Some(name) => {
                if let Err(error) = check_namespace(&name) {
                    self.0.fault("namespace", error.to_string());
                }
                Namespaces::One(name)
            }
        }
    }

    pub fn fault(&self, key: &str, message: impl Into<String>) {
        self.0.fault(key, message);
    }

    /// Refuses parameters that nobody has taken, and whatever was wrong with the others.
    pub fn finish(self) -> Result<(), Problem> {
        self.0.finish().map_err(Problem::fields)
    }
}

/// Percent-decoding, strict: a broken escape or text that is not UTF-8 is nothing.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

fn shortened(key: &str) -> String {
    key.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(raw: &str, read: impl Fn(&mut Query)) -> Option<String> {
        let mut query = match Query::parse(raw) {
            Ok(query) => query,
            Err(problem) => return Some(problem.detail),
        };
        read(&mut query);
        query.finish().err().map(|problem| problem.detail)
    }

    #[test]
    fn what_is_asked_is_read() {
        let mut query = Query::parse("a=x%20y+z&n=7&t=2027-01-01T00:00:00+01:00&f=true&&namespace=*&limit=5").unwrap();
        assert_eq!(query.text("a").as_deref(), Some("x y z"));
        assert_eq!(query.integer("n", 1, 9), Some(7));
        assert_eq!(query.time("t"), Timestamp::parse_rfc3339("2026-12-31T23:00:00Z"));
        assert_eq!((query.flag("f"), query.namespaces(), query.limit()), (Some(true), Namespaces::All, 5));
        assert_eq!(query.finish(), Ok(()));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let nothing = |_: &mut Query| {};
        for (raw, said) in [
            ("%zz=1", "percent-encoded"),
            ("a=%ff", "percent-encoded"),
            ("a=%4", "percent-encoded"),
            ("a=1&%61=2", "a: it stands twice"),
            ("namespce=x", "namespce: there is no such field"),
        ] {
            assert!(detail(raw, nothing).unwrap().contains(said), "{raw}");
        }
        for raw in ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=", "limit=99999999999999999999"] {
            assert!(detail(raw, |query| assert_eq!(query.limit(), 100)).unwrap().contains("from 1 to 1000"), "{raw}");
        }
        assert!(
            detail("cursor=zz", |query| assert!(query.cursor(|_| None::<String>).is_none()))
                .unwrap()
                .contains("next_cursor")
        );
        assert!(detail("namespace=a/b", |query| drop(query.namespaces())).unwrap().contains("namespace"));
        assert!(detail("f=yes", |query| assert_eq!(query.flag("f"), None)).unwrap().contains("one of true, false"));
    }
}
