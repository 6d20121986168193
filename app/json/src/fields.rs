//! Takes the fields out of a JSON object one by one and collects every fault on the way.
//!
//! A body with three faults is answered with three sentences, not with the first. Each getter answers `None` for a field that is absent
//! *or* faulty, so the caller can go on. At the end it asks once whether there were faults.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use carillon_domain::{duration, time::Timestamp};
use serde_json::{Map, Value};

/// One fault: which field, and a sentence about it (RFC 9457's `errors`).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// The path of the field, such as `retry.max_attempts`.
    pub field: String,
    /// The fault and the allowed values.
    pub message: String,
}

impl FieldError {
    /// A fault of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// An object that is being read. Objects inside it share its list of faults.
#[derive(Debug)]
pub struct Fields {
    path: String,
    left: Map<String, Value>,
    faults: Rc<RefCell<Vec<FieldError>>>,
}

/// A field that may be written in two ways.
#[derive(Debug)]
pub enum TextOrObject {
    /// A string.
    Text(String),
    /// An object.
    Object(Fields),
}

impl Fields {
    /// The fields of a body, which must be an object.
    ///
    /// # Errors
    /// The fault that it is none; `what` names what was expected.
    pub fn of(body: Value, what: &str) -> Result<Self, Vec<FieldError>> {
        match body {
            Value::Object(left) => Ok(Self { path: String::new(), left, faults: Rc::default() }),
            other => Err(vec![FieldError::new("", format!("{what} is a JSON object, not {}", kind(&other)))]),
        }
    }

    /// Records a fault of a field of this object, or of the object itself if `key` is empty.
    pub fn fault(&self, key: &str, message: impl Into<String>) {
        self.faults.borrow_mut().push(FieldError::new(self.path_of(key), message));
    }

    /// Records faults whose paths are complete already.
    pub fn faults(&self, faults: impl IntoIterator<Item = FieldError>) {
        self.faults.borrow_mut().extend(faults);
    }

    /// Takes a field as it is; `null` counts as absent.
    pub fn any(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key).filter(|value| !value.is_null())
    }

    /// Takes a field and drops it.
    pub fn ignore(&mut self, keys: &[&str]) {
        for key in keys {
            self.left.remove(*key);
        }
    }

    /// Takes a string.
    pub fn text(&mut self, key: &str) -> Option<String> {
        match self.any(key)? {
            Value::String(text) => Some(text),
            other => self.wrong(key, "a string", &other),
        }
    }

    /// Takes a string that must be there.
    pub fn required_text(&mut self, key: &str) -> Option<String> {
        if !self.left.contains_key(key) {
            self.fault(key, "it is required");
        } else if self.left.get(key).is_some_and(Value::is_null) {
            self.fault(key, "it is required: null is not enough");
        }
        self.text(key)
    }

    /// Takes `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        match self.any(key)? {
            Value::Bool(flag) => Some(flag),
            other => self.wrong(key, "true or false", &other),
        }
    }

    /// Takes a whole number within bounds.
    pub fn integer(&mut self, key: &str, allowed: RangeInclusive<u32>) -> Option<u32> {
        let value = self.any(key)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        if let Some(number) = number.filter(|number| allowed.contains(number)) {
            return Some(number);
        }
        let shown = if value.is_number() { value.to_string() } else { kind(&value).to_owned() };
        let (least, most) = allowed.into_inner();
        self.fault(key, format!("it must be a whole number from {least} to {most}, not {shown}"));
        None
    }

    /// Takes a duration within bounds.
    pub fn duration(&mut self, key: &str, allowed: RangeInclusive<Duration>) -> Option<Duration> {
        let text = match self.any(key)? {
            Value::String(text) => text,
            other => return self.wrong(key, "a duration such as \"90s\"", &other),
        };
        let (least, most) = (duration::format(*allowed.start()), duration::format(*allowed.end()));
        match duration::parse(&text) {
            Ok(duration) if allowed.contains(&duration) => return Some(duration),
            Ok(duration) => {
                let shown = duration::format(duration);
                self.fault(key, format!("{shown} is out of bounds: allowed are {least} to {most}"));
            }
            Err(error) => self.fault(key, error.to_string()),
        }
        None
    }

    /// Takes an RFC 3339 time.
    pub fn time(&mut self, key: &str) -> Option<Timestamp> {
        let text = self.text(key)?;
        match read_time(&text) {
            Ok(time) => Some(time),
            Err(message) => {
                self.fault(key, message);
                None
            }
        }
    }

    /// Takes one of some names.
    pub fn choice<T: Copy>(&mut self, key: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Option<T> {
        let text = self.text(key)?;
        let found = all.iter().copied().find(|value| name(*value) == text);
        if found.is_none() {
            let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
            self.fault(key, format!("it must be one of {}, not {}", names.join(", "), quoted(&text)));
        }
        found
    }

    /// Takes an object whose fields are read like these.
    pub fn object(&mut self, key: &str) -> Option<Fields> {
        match self.any(key)? {
            Value::Object(left) => Some(self.inner(key, left)),
            other => self.wrong(key, "an object", &other),
        }
    }

    /// Takes an array of strings.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        match self.any(key)? {
            Value::Array(items) if items.iter().all(Value::is_string) => {
                Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            other => self.wrong(key, "an array of strings", &other),
        }
    }

    /// Takes an array of objects; `expected` names it. One that is no object is a fault of its place.
    pub fn objects(&mut self, key: &str, expected: &str) -> Option<Vec<Fields>> {
        let items = match self.any(key)? {
            Value::Array(items) => items,
            other => return self.wrong(key, expected, &other),
        };
        let mut objects = Vec::with_capacity(items.len());
        for (place, item) in items.into_iter().enumerate() {
            let key = format!("{key}[{place}]");
            match item {
                Value::Object(left) => objects.push(self.inner(&key, left)),
                other => drop(self.wrong::<()>(&key, "an object", &other)),
            }
        }
        Some(objects)
    }

    /// Takes a string or an object; `expected` names both.
    pub fn text_or_object(&mut self, key: &str, expected: &str) -> Option<TextOrObject> {
        match self.any(key)? {
            Value::String(text) => Some(TextOrObject::Text(text)),
            Value::Object(left) => Some(TextOrObject::Object(self.inner(key, left))),
            other => self.wrong(key, expected, &other),
        }
    }

    /// Whether a field of this object has a fault already.
    pub fn is_faulty(&self) -> bool {
        let inside = format!("{}.", self.path);
        self.faults.borrow().iter().any(|fault| self.path.is_empty() || fault.field.starts_with(&inside))
    }

    /// The keys of this object that nobody has taken.
    pub fn take_rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.left)
    }

    /// Refuses what nobody has taken, by name.
    pub fn refuse_rest(self) {
        for key in self.left.keys() {
            let shown: String = key.chars().take(64).collect();
            self.fault(&shown, "there is no such field");
        }
    }

    /// Refuses what nobody has taken and answers whether there was any fault in the whole body.
    ///
    /// # Errors
    /// All faults, in the order in which they were found.
    pub fn finish(self) -> Result<(), Vec<FieldError>> {
        let faults = Rc::clone(&self.faults);
        self.refuse_rest();
        match faults.take() {
            none if none.is_empty() => Ok(()),
            some => Err(some),
        }
    }

    /// Records that a field has the wrong type.
    pub fn wrong<T>(&self, key: &str, expected: &str, found: &Value) -> Option<T> {
        self.fault(key, format!("it must be {expected}, not {}", kind(found)));
        None
    }

    fn inner(&self, key: &str, left: Map<String, Value>) -> Fields {
        Fields { path: self.path_of(key), left, faults: Rc::clone(&self.faults) }
    }

    fn path_of(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }
}

/// Reads an RFC 3339 time of the years 1970 to 9999.
///
/// # Errors
/// A sentence for the sender.
pub fn read_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).ok_or_else(|| {
        let shown = quoted(text);
        format!("{shown} is not an RFC 3339 time of the years 1970 to 9999, such as 2027-01-01T00:00:00Z")
    })
}

/// Text of a stranger between quotes, escaped and cut.
pub(super) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(64).collect();
    format!("{shown:?}")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
