//! TOML. Its times become text, as JSON has none.

use serde_json::{Map, Number, Value};
use toml::Table;

use super::Fault;
use crate::failure::CommandFailure;

/// Reads text.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| Fault {
        at: error.span().map(|span| place(text, span.start)),
        problem: error.message().replace('\n', ", "),
        remedy: "",
    })?;
    Ok(object(table))
}

/// Writes a value.
pub(super) fn write(value: &Value) -> Result<String, CommandFailure> {
    toml::to_string(&without_nulls(value.clone()))
        .map_err(|error| CommandFailure::failed(format!("it cannot be written as TOML: {error}")))
}

fn object(table: Table) -> Value {
    table.into_iter().map(|(key, value)| (key, json(value))).collect::<Map<String, Value>>().into()
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json).collect::<Vec<Value>>().into(),
        toml::Value::Table(table) => object(table),
    }
}

/// TOML has no null: a field that is not there says the same.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.into_iter().filter(|(_, value)| !value.is_null());
            set.map(|(key, value)| (key, without_nulls(value))).collect::<Map<String, Value>>().into()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect::<Vec<Value>>().into(),
        other => other,
    }
}

/// The line and the column of a byte, each counted from 1.
fn place(text: &str, at: usize) -> (u64, u64) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    (line, column)
}
