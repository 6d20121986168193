//! Takes values out of a section one by one and collects a sentence for every fault, unknown keys included.
//!
//! A sentence names the key, the value, where it came from and what is allowed. Values of secrets are left out.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use carillon_domain::duration;
use config::{File, FileFormat, Map, Source, Value, ValueKind};

const FROM_ENVIRONMENT: &str = "the environment";

/// Keys whose values are never told.
const SECRET: [&str; 2] = ["url", "tokens"];

/// The whole configuration while it is being read.
pub(super) struct Root {
    left: Map<String, Value>,
    file: String,
    faults: Vec<String>,
    known: Vec<&'static str>,
}

/// One section of it. What nobody has taken is refused when the section is dropped.
pub(super) struct Section<'a> {
    name: &'static str,
    left: Map<String, Value>,
    known: Vec<&'static str>,
    root: &'a mut Root,
}

impl Root {
    pub fn new(values: Map<String, Value>, file: &Path) -> Self {
        Self { left: values, file: file.display().to_string(), faults: Vec::new(), known: Vec::new() }
    }

    /// A section, empty where it is not given.
    pub fn section(&mut self, name: &'static str) -> Section<'_> {
        self.known.push(name);
        let left = match self.left.remove(name) {
            None => Map::new(),
            Some(value) => match value.kind {
                ValueKind::Table(left) => left,
                _ => {
                    let from = self.origin(&value, name);
                    self.faults.push(format!("{name} (from {from}) is a section, not a value"));
                    Map::new()
                }
            },
        };
        Section { name, left, known: Vec::new(), root: self }
    }

    /// All faults. Sections that nobody has taken are faults too.
    pub fn finish(mut self) -> Vec<String> {
        let rest: Vec<_> = std::mem::take(&mut self.left).into_iter().collect();
        for (key, value) in rest {
            let from = self.origin(&value, &key);
            let known = self.known.join(", ");
            self.faults.push(format!("{key:?} (from {from}) is not a section; there are: {known}"));
        }
        self.faults.sort();
        self.faults
    }

    fn origin(&self, value: &Value, key: &str) -> String {
        // A table has no origin of its own: what stands in it has.
        if let ValueKind::Table(inner) = &value.kind
            && let Some((name, first)) = inner.iter().next()
        {
            return self.origin(first, &format!("{key}.{name}"));
        }
        match value.origin() {
            None => self.file.clone(),
            Some(FROM_ENVIRONMENT) => {
                format!("the environment variable CARILLON__{}", key.replace('.', "__").to_uppercase())
            }
            Some(other) => other.to_owned(),
        }
    }
}

impl Section<'_> {
    /// Whether nothing of it is given, or all was taken.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Takes a text and lets `read` make something of it; its error is what is allowed.
    pub fn text<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let value = self.take(key)?;
        let ValueKind::String(text) = &value.kind else { return self.refuse(key, &value, "a string") };
        read(text).map_err(|allowed| self.refuse::<T>(key, &value, &allowed)).ok()
    }

    /// As `text`, and the value is never told; the error of `read` is the whole sentence.
    pub fn secret_text<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let value = self.take(key)?;
        let read = match &value.kind {
            ValueKind::String(text) => read(text),
            _ => Err("it must be a string".into()),
        };
        read.map_err(|sentence| {
            let path = self.path_of(key);
            let from = self.root.origin(&value, &path);
            self.sentence(format!("{path} (from {from}): {sentence}"));
        })
        .ok()
    }

    /// Takes a duration.
    pub fn duration(&mut self, key: &'static str, preset: Duration, allowed: RangeInclusive<Duration>) -> Duration {
        let (least, most) = (duration::format(*allowed.start()), duration::format(*allowed.end()));
        let read = |text: &str| match duration::parse(text) {
            Ok(duration) if allowed.contains(&duration) => Ok(duration),
            Ok(_) => Err(format!("a duration from {least} to {most}")),
            Err(error) => Err(format!("a duration from {least} to {most} ({error})")),
        };
        let Some(value) = self.take(key) else { return preset };
        let taken = match &value.kind {
            ValueKind::String(text) => read(text),
            _ => Err(format!("a duration from {least} to {most}, in quotes and with its unit, such as \"30s\"")),
        };
        taken.unwrap_or_else(|allowed| self.refuse(key, &value, &allowed).unwrap_or(preset))
    }

    /// Takes a whole number.
    pub fn integer(&mut self, key: &'static str, preset: u32, allowed: RangeInclusive<u32>) -> u32 {
        let Some(value) = self.take(key) else { return preset };
        let number: Option<i128> = match &value.kind {
            ValueKind::I64(number) => Some((*number).into()),
            ValueKind::U64(number) => Some((*number).into()),
            ValueKind::I128(number) => Some(*number),
            ValueKind::String(text) if is_text_only(&value) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.and_then(|number| u32::try_from(number).ok()).filter(|number| allowed.contains(number));
        let (least, most) = (allowed.start(), allowed.end());
        number.or_else(|| self.refuse(key, &value, &format!("a whole number from {least} to {most}"))).unwrap_or(preset)
    }

    /// Takes a number from 0 to 1.
    pub fn share(&mut self, key: &'static str, preset: f64) -> f64 {
        let Some(value) = self.take(key) else { return preset };
        let number = match &value.kind {
            ValueKind::Float(number) => Some(*number),
            ValueKind::I64(number) => Some(*number as f64),
            ValueKind::String(text) if is_text_only(&value) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| (0.0..=1.0).contains(number));
        number.or_else(|| self.refuse(key, &value, "a number from 0 to 1")).unwrap_or(preset)
    }

    /// Takes `true` or `false`.
    pub fn flag(&mut self, key: &'static str, preset: bool) -> bool {
        let Some(value) = self.take(key) else { return preset };
        let flag = match &value.kind {
            ValueKind::Boolean(flag) => Some(*flag),
            ValueKind::String(text) if is_text_only(&value) => text.parse().ok(),
            _ => None,
        };
        flag.or_else(|| self.refuse(key, &value, "true or false")).unwrap_or(preset)
    }

    /// Takes an array of strings; the environment may also give them with commas between.
    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.array(key, "an array of strings") {
            match item.kind {
                ValueKind::String(text) if !text.is_empty() => texts.push(text),
                _ => drop(self.refuse::<()>(key, &item, "strings that are not empty")),
            }
        }
        texts
    }

    /// Takes an array. The environment gives it as TOML, or with commas between strings.
    pub fn array(&mut self, key: &'static str, allowed: &str) -> Vec<Value> {
        let Some(value) = self.take(key) else { return Vec::new() };
        match &value.kind {
            ValueKind::Array(items) => items.clone(),
            ValueKind::String(text) if is_text_only(&value) => match as_toml(text) {
                Some(items) => items,
                None => self.refuse(key, &value, allowed).unwrap_or_default(),
            },
            _ => self.refuse(key, &value, allowed).unwrap_or_default(),
        }
    }

    /// Takes a table of strings, if there is one.
    pub fn table(&mut self, key: &'static str, allowed: &str) -> Option<Vec<(String, String)>> {
        let value = self.take(key)?;
        let ValueKind::Table(table) = &value.kind else { return self.refuse(key, &value, allowed) };
        let mut entries: Vec<_> = Vec::new();
        for (name, inner) in table {
            match &inner.kind {
                ValueKind::String(text) => entries.push((name.clone(), text.clone())),
                _ => drop(self.refuse::<()>(key, inner, allowed)),
            }
        }
        Some(entries)
    }

    /// Takes a value as it is.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.left.remove(key)
    }

    /// A fault of a key, without its value.
    pub fn fault(&mut self, key: &str, what: &str) {
        let path = self.path_of(key);
        self.sentence(format!("{path}: {what}"));
    }

    /// A fault that no single key has.
    pub fn sentence(&mut self, sentence: String) {
        self.root.faults.push(sentence);
    }

    /// A fault of a value.
    pub fn refuse<T>(&mut self, key: &str, value: &Value, allowed: &str) -> Option<T> {
        let path = self.path_of(key);
        let from = self.root.origin(value, &path);
        let shown: String = match &value.kind {
            _ if SECRET.contains(&key) => "...".into(),
            ValueKind::String(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
            ValueKind::Table(_) => "a table".into(),
            ValueKind::Array(_) => "an array".into(),
            other => other.to_string(),
        };
        self.sentence(format!("{path} = {shown} (from {from}): allowed is {allowed}"));
        None
    }

    fn path_of(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let rest: Vec<_> = std::mem::take(&mut self.left).into_iter().collect();
        for (key, value) in rest {
            let path = self.path_of(&key);
            let from = self.root.origin(&value, &path);
            let known = self.known.join(", ");
            self.sentence(format!("{path} (from {from}) is not known; [{}] has: {known}", self.name));
        }
    }
}

/// Flags and the environment know nothing but text.
fn is_text_only(value: &Value) -> bool {
    value.origin().is_some()
}

fn as_toml(text: &str) -> Option<Vec<Value>> {
    if !text.trim_start().starts_with('[') {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        return Some(items.map(|item| Value::new(None, item)).collect());
    }
    let parsed = File::from_str(&format!("v = {text}"), FileFormat::Toml).collect().ok()?;
    if parsed.len() > 1 {
        return None;
    }
    parsed.into_values().next()?.into_array().ok()
}
