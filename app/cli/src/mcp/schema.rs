//! JSON Schemas of arguments and answers. Those of the API are taken from its OpenAPI document, each whole in itself.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use carillon_json::as_written;
use carillon_json::schema::components;

const OF_API: &str = "#/components/schemas/";

static COMPONENTS: LazyLock<Map<String, Value>> = LazyLock::new(components);

/// A schema of the API by its name.
pub(super) fn of_api(name: &str) -> Value {
    whole(COMPONENTS.get(name).cloned().unwrap_or_default())
}

/// A reference to a schema of the API, for use inside [`whole`].
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{OF_API}{name}")})
}

/// The schema with all others that it refers to.
pub(super) fn whole(mut schema: Value) -> Value {
    let mut definitions = Map::new();
    let mut open = referred(&schema);
    while let Some(name) = open.pop() {
        if !definitions.contains_key(&name) {
            let definition = COMPONENTS.get(&name).cloned().unwrap_or_default();
            open.extend(referred(&definition));
            definitions.insert(name, definition);
        }
    }
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    readdressed(&mut schema);
    schema
}

/// The names of the schemas that a schema refers to.
fn referred(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(OF_API));
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(referred)).collect()
        }
        Value::Array(items) => items.iter().flat_map(referred).collect(),
        _ => Vec::new(),
    }
}

fn readdressed(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "$ref" => *text = text.replace(OF_API, "#/$defs/"),
                    value => readdressed(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(readdressed),
        _ => {}
    }
}

/// The fields of a definition as one writes them, without those that reading adds.
pub(super) fn definition(required: &[&str]) -> Value {
    let mut schema = COMPONENTS.get("JobDefinition").cloned().unwrap_or_default();
    if let Some(fields) = schema["properties"].as_object_mut() {
        as_written(fields);
    }
    schema["required"] = json!(required);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
    }
    schema
}

/// An object of these fields and no others, of which the first `required` are always there.
pub(super) fn object(fields: &[(&str, Value)], required: usize) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let names: Vec<&str> = fields.iter().take(required).map(|(name, _)| *name).collect();
    whole(json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false}))
}

/// A schema with words to it.
pub(super) fn told(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

pub(super) fn flag(preset: bool, description: &str) -> Value {
    json!({"type": "boolean", "default": preset, "description": description})
}

pub(super) fn number(least: u32, most: u32, preset: u32, description: &str) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "default": preset, "description": description})
}

pub(super) fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_whole_in_itself() {
        let page = of_api("RunPage");
        assert_eq!(page["properties"]["items"]["items"]["$ref"], "#/$defs/Run");
        assert_eq!(page["$defs"]["Run"], COMPONENTS["Run"]);
        let text = of_api("Job").to_string();
        assert!(!text.contains(OF_API) && text.contains("#/$defs/Run"), "{text}");
        assert!(of_api("DueTimes").get("$defs").is_none());
    }
}
