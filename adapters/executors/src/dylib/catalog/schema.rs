//! Params against a plugin's JSON Schema, with the faults named by field.
//!
//! Patterns run on an engine without backtracking, so that no pattern can hang the server; one that needs more is
//! refused with the plugin. A schema cannot refer to files or addresses. Sentences never repeat a value: it may be
//! secret.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// A schema ready for use.
#[derive(Debug)]
pub(crate) struct Schema(Validator);

impl Schema {
    /// Reads a schema, or says what is wrong with it.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let built = options.build(schema);
        built.map(Self).map_err(|error| format!("its params schema is not a valid JSON Schema: {error}"))
    }

    /// All faults at once: `(field, sentence)`.
    pub(crate) fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>> {
        let faults: Vec<_> = self.0.iter_errors(params).flat_map(|error| faults(&error)).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

fn faults(error: &ValidationError<'_>) -> Vec<(String, String)> {
    let field = error.instance_path().into_iter().fold("params".to_owned(), |path, segment| match segment {
        LocationSegment::Property(name) => format!("{path}.{name}"),
        LocationSegment::Index(index) => format!("{path}[{index}]"),
    });
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![(format!("{field}.{name}"), "is required".to_owned())]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let unknown = |name| (format!("{field}.{name}"), "is not a field that this executor knows".to_owned());
            unexpected.iter().map(unknown).collect()
        }
        _ => vec![(field, error.masked_with("the value").to_string())],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_carry_the_path_of_the_field_and_not_its_value() {
        let schema = Schema::new(&json!({
            "type": "object",
            "properties": {
                "url": {"type": "string"},
                "steps": {"type": "array", "items": {"type": "object", "required": ["name"]}},
                "token": {"type": "string", "maxLength": 3}
            },
            "required": ["url"],
            "additionalProperties": false
        }));
        let params = json!({"steps": [{"name": 1}, {}], "colour": 1, "token": "hunter2"});
        let mut faults = schema.unwrap().check(&params).unwrap_err();
        faults.sort();
        let expected = [
            ("params.colour", "is not a field that this executor knows"),
            ("params.steps[1].name", "is required"),
            ("params.token", "the value is longer than 3 characters"),
            ("params.url", "is required"),
        ];
        assert_eq!(faults, expected.map(|(field, sentence)| (field.to_owned(), sentence.to_owned())));
    }

    #[test]
    fn what_is_no_schema_or_reaches_outside_is_refused() {
        for bad in [
            json!({"type": "strin"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "http://127.0.0.1/schema.json"}),
            json!({"pattern": "(a)\\1"}),
        ] {
            assert!(
                Schema::new(&bad).unwrap_err().starts_with("its params schema is not a valid JSON Schema"),
                "{bad}"
            );
        }
    }
}
