//! JSON Schemas of everything that the API reads and answers, under the names that the OpenAPI document gives them.
//!
//! They stand beside the functions that write the JSON. The tests of the API hold every answer against them, so a field that
//! is added in one place only is found.

mod alert;
mod job;
mod node;
mod run;

use serde_json::{Map, Value, json};

use crate::MAX_DEPTH;

/// The pattern of names of jobs, namespaces and labels. URLs read `.` and `..` as steps between directories.
pub const NAME: &str = r"^(?!\.{1,2}$)[A-Za-z0-9._-]+$";
/// The pattern of a run's id.
pub const RUN_ID: &str = "^[0-9a-f]{16}-[0-9a-f]{1,16}$";
/// The states by which jobs are listed.
pub const STATES: [&str; 3] = ["idle", "prepared", "executing"];
/// The statuses by which runs are listed.
pub const STATUSES: [&str; 7] = ["running", "succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"];

/// All schemas by name.
pub fn components() -> Map<String, Value> {
    let mut all = Map::new();
    for (name, schema) in
        job::schemas().into_iter().chain(alert::schemas()).chain(run::schemas()).chain(node::schemas()).chain(general())
    {
        all.insert(name.to_owned(), schema);
    }
    all
}

fn general() -> Vec<(&'static str, Value)> {
    let fault = object(&[("field", json!({"type": "string"})), ("message", json!({"type": "string"}))], &[]);
    let problem = object(
        &[
            ("type", json!({"type": "string"})),
            ("title", json!({"type": "string"})),
            ("status", json!({"type": "integer", "minimum": 400, "maximum": 599})),
            ("detail", json!({"type": "string", "minLength": 1})),
            ("errors", array(&reference("Fault"))),
        ],
        &[("outcome", json!({"enum": ["not_applied", "unknown"]}))],
    );
    vec![
        ("Fault", described(fault, "One fault: the path of a field, and a sentence about it.")),
        ("Problem", described(problem, "Why a request was not done, as RFC 9457 has it.")),
        ("Nothing", json!({"type": "object", "additionalProperties": false})),
        ("Document", json!({"type": "object", "required": ["openapi", "info", "paths", "components"]})),
    ]
}

/// An object with these fields and no others: those that are always there, and those that may be.
fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn array(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A page of a listing.
fn page(items: &str) -> Value {
    object(&[("items", array(&reference(items))), ("next_cursor", or_null(json!({"type": "string"})))], &[])
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// RFC 3339, in answers always in UTC with milliseconds.
fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn name() -> Value {
    json!({"type": "string", "pattern": NAME, "minLength": 1, "maxLength": 128})
}

/// Such as `90s` or `1h30m`.
fn duration() -> Value {
    let pattern = "^(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
    json!({"type": "string", "pattern": pattern, "examples": ["90s", "1h30m"]})
}

/// The params of an executor, whose own schema says more. No value may stand deeper than the parser goes.
fn params() -> Value {
    json!({"type": "object", "description": format!("As the executor's params_schema says; at most {MAX_DEPTH} deep.")})
}

#[cfg(test)]
mod tests {
    use carillon_domain::run::Status;

    use super::*;

    #[test]
    fn statuses_are_those_of_the_domain() {
        assert_eq!(STATUSES, Status::ALL.map(Status::as_str));
    }

    #[test]
    fn names_and_durations_are_as_the_domain_reads_them() {
        let validator = |schema: Value| jsonschema::validator_for(&schema).unwrap();
        let names = validator(name());
        for text in ["a", "a.b", "...", "A-z_0", ".", "..", "", "a/b", "a b", "ä"] {
            assert_eq!(names.is_valid(&json!(text)), carillon_domain::name::check_job_name(text).is_ok(), "{text:?}");
        }
        let durations = validator(duration());
        for text in ["0s", "90s", "1h30m", "1d2h3m4s5ms", "500ms", "", "s", "5", "1m1h", "1.5s", "-1s", "1s1s"] {
            assert_eq!(durations.is_valid(&json!(text)), carillon_domain::duration::parse(text).is_ok(), "{text:?}");
        }
        let runs = validator(json!({"type": "string", "pattern": RUN_ID}));
        for text in ["8000000000000007-1", "8000000000000007-", "8000000000000007-G", "-", ""] {
            let parsed = text.parse::<carillon_domain::id::RunId>();
            assert_eq!(runs.is_valid(&json!(text)), parsed.is_ok(), "{text:?}");
        }
    }
}
