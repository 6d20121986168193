//! Parts of schemas and answers that several tools share.

use serde_json::{Value, json};

use crate::mcp::schema::text;
use carillon_json::schema::{NAME, RUN_ID};

/// How many items a listing has where the caller does not say: a model reads all of them.
pub(super) const FEW: u32 = 50;
/// How many it may have.
pub(super) const MANY: u32 = 200;

pub(super) fn job_name() -> Value {
    json!({"type": "string", "pattern": NAME, "maxLength": 128, "description": "The name of the job."})
}

pub(super) fn namespace() -> Value {
    text("The namespace of the job; the one of this server if it is not given.")
}

pub(super) fn namespaces() -> Value {
    text("One namespace, or * for all; the one of this server if it is not given.")
}

pub(super) fn run_id() -> Value {
    json!({"type": "string", "pattern": RUN_ID, "description": "The id of the run."})
}

pub(super) fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MANY, "default": FEW, "description": "How many at the most."})
}

pub(super) fn cursor() -> Value {
    text("next_cursor of the answer before, for what follows it.")
}

/// A part of an object, by its keys.
pub(super) fn picked(object: &Value, keys: &[&str]) -> Value {
    let fields = keys.iter().map(|key| ((*key).to_owned(), object[*key].clone()));
    Value::Object(fields.collect())
}
