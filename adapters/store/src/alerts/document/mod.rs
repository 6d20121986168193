//! Routes, facts, incidents, messages and the cursor as JSON documents, the form in which every database keeps them.
//!
//! A document outlives the binary that wrote it. A field that is not there takes its default, if it has one. A value that this binary
//! does not know makes the document unreadable.

mod cursor;
mod fact;
mod incident;
mod message;
mod route;

use std::time::Duration;

use carillon_domain::id::{JobId, RunId};
use carillon_domain::time::Timestamp;
use serde_json::Value;

pub(crate) use cursor::Cursor;
pub(crate) use fact::{StoredFact, StoredSubject, StoredWhat};
pub(crate) use incident::{held_calls_from, held_calls_text, incident_from, incident_text, storm_from, storm_value};
pub(crate) use message::{message_from, message_text};
pub(crate) use route::{route_from, route_redacted, route_text};

use crate::{StoreError, StoreResult};

/// The part of a document that cannot be read.
pub(crate) type Read<T> = Result<T, String>;

/// Reads a document.
pub(crate) fn parse<T>(noun: &str, text: &str, read: impl FnOnce(&Fields<'_>) -> Read<T>) -> StoreResult<T> {
    let value: Result<Value, String> = serde_json::from_str(text).map_err(|error| error.to_string());
    value.and_then(|value| read(&Fields(&value))).map_err(|problem| {
        StoreError::Permanent(format!(
            "{noun} cannot be read ({problem}); it may have been written by a newer Carillon"
        ))
    })
}

/// A row that cannot be read, or whose route cannot, is looked at again so much later.
pub(crate) const UNREADABLE_LATER: Duration = Duration::from_secs(60);

/// The fault of a document without the words of a failed statement: the database did its part.
pub(crate) fn problem_of(error: StoreError) -> String {
    match error {
        StoreError::Permanent(problem) => problem,
        other => other.to_string(),
    }
}

/// An object of a document.
pub(crate) struct Fields<'a>(pub &'a Value);

impl<'a> Fields<'a> {
    /// The value of a field; `None` if it is not there or null.
    pub fn maybe(&self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn must(&self, field: &str) -> Read<&'a Value> {
        self.maybe(field).ok_or_else(|| format!("{field} is missing"))
    }

    pub fn object(&self, field: &str) -> Read<Fields<'a>> {
        self.must(field).map(Fields)
    }

    pub fn maybe_object(&self, field: &str) -> Option<Fields<'a>> {
        self.maybe(field).map(Fields)
    }

    pub fn list(&self, field: &str) -> &'a [Value] {
        self.maybe(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn texts(&self, field: &str) -> Vec<String> {
        self.list(field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub fn text(&self, field: &str) -> Read<&'a str> {
        self.must(field)?.as_str().ok_or_else(|| format!("{field} is no text"))
    }

    pub fn owned(&self, field: &str) -> Read<String> {
        self.text(field).map(str::to_owned)
    }

    pub fn maybe_text(&self, field: &str) -> Option<String> {
        self.maybe(field).and_then(Value::as_str).map(str::to_owned)
    }

    pub fn flag(&self, field: &str) -> bool {
        self.maybe(field).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn signed(&self, field: &str) -> Read<i64> {
        self.must(field)?.as_i64().ok_or_else(|| format!("{field} is no number"))
    }

    pub fn number(&self, field: &str) -> Read<u64> {
        self.must(field)?.as_u64().ok_or_else(|| format!("{field} is no number"))
    }

    pub fn small(&self, field: &str) -> Read<u32> {
        self.number(field)?.try_into().map_err(|_| format!("{field} is too large"))
    }

    pub fn at(&self, field: &str) -> Read<Timestamp> {
        self.signed(field).map(Timestamp::from_ms)
    }

    pub fn maybe_at(&self, field: &str) -> Option<Timestamp> {
        self.maybe(field).and_then(Value::as_i64).map(Timestamp::from_ms)
    }

    pub fn duration(&self, field: &str) -> Read<Duration> {
        self.number(field).map(Duration::from_millis)
    }

    pub fn job(&self, field: &str) -> Read<JobId> {
        self.number(field).map(JobId)
    }

    pub fn run(&self, field: &str) -> Read<RunId> {
        self.text(field)?.parse().map_err(|error| format!("{field}: {error}"))
    }

    pub fn maybe_run(&self, field: &str) -> Read<Option<RunId>> {
        self.maybe(field).map_or(Ok(None), |_| self.run(field).map(Some))
    }

    /// A value by its name.
    pub fn named<T>(&self, field: &str, from: impl Fn(&str) -> Option<T>) -> Read<T> {
        let name = self.text(field)?;
        from(name).ok_or_else(|| format!("{field} {name} is not known"))
    }
}

/// The number of milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The milliseconds of an instant that may not be there.
pub(crate) fn maybe_ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_ms)
}
