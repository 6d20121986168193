//! The shape of a shell job's `params`, for clients. What a schema cannot say (which users are allowed, what is too long)
//! only [`super::params::Params::read`] knows; that is what judges a job.

use serde_json::{Value, json};

/// A JSON Schema; whatever it refuses is refused.
pub(super) fn params_schema() -> Value {
    let text = json!({"type": ["string", "null"], "minLength": 1});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "command": {"type": ["string", "null"], "minLength": 1, "description": "run by the shell"},
            "argv": {
                "type": ["array", "null"], "items": {"type": "string"}, "minItems": 1,
                "description": "a program and its arguments, executed with no shell",
            },
            "env": {
                "type": ["object", "null"],
                "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                "additionalProperties": {"anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"value": {"type": "string"}, "secret": {"type": "boolean"}},
                        "required": ["value"], "additionalProperties": false,
                    },
                ]},
            },
            "dir": {"type": ["string", "null"], "pattern": "^/", "description": "the user's home by default"},
            "stdin": {"type": ["string", "null"]},
            "shell": text,
            "user": text,
        },
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::params::Params;

    #[test]
    fn what_the_schema_refuses_is_refused_and_what_is_taken_passes_it() {
        let schema = jsonschema::validator_for(&params_schema()).unwrap();
        for params in [
            json!({"command": "x"}),
            json!({"argv": ["x", ""], "env": {"A": "", "_b1": {"value": "v", "secret": true}}}),
            json!({"command": "x", "shell": "/bin/sh", "dir": "/", "stdin": "", "user": "root", "argv": null}),
        ] {
            assert!(Params::read(&params).is_ok() && schema.is_valid(&params), "{params}");
        }
        for params in [
            json!([]),
            json!({"command": ""}),
            json!({"command": 5}),
            json!({"argv": []}),
            json!({"argv": [1]}),
            json!({"command": "x", "dir": "relative"}),
            json!({"command": "x", "env": {"1A": "x"}}),
            json!({"command": "x", "env": {"A": 1}}),
            json!({"command": "x", "env": {"A": {"value": "v", "hidden": true}}}),
            json!({"command": "x", "nice": 5}),
        ] {
            assert!(Params::read(&params).is_err() && !schema.is_valid(&params), "{params}");
        }
    }
}
