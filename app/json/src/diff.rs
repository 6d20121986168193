//! The difference between two states, field by field.

use std::collections::BTreeSet;

use serde_json::Value;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedField {
    /// Its path, such as `params.command`.
    pub path: String,
    /// The value before; `Null` where it was not set.
    pub before: Value,
    /// The value after; `Null` where it is not set.
    pub after: Value,
}

/// The fields that differ, in the order of their names. A state that is new or gone differs in each field that is set.
pub fn changed_fields(before: &Value, after: &Value) -> Vec<ChangedField> {
    let mut found = Vec::new();
    let nothing = Value::Object(serde_json::Map::new());
    let state = |value: &Value| if value.is_object() { value.clone() } else { nothing.clone() };
    compare(String::new(), &state(before), &state(after), &mut found);
    found
}

fn compare(path: String, before: &Value, after: &Value, found: &mut Vec<ChangedField>) {
    if before == after {
        return;
    }
    let (Some(one), Some(other)) = (before.as_object(), after.as_object()) else {
        found.push(ChangedField { path, before: before.clone(), after: after.clone() });
        return;
    };
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in keys {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        compare(inner, &before[key], &after[key], found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_found() {
        let before =
            json!({"schedule": "@daily", "params": {"command": "x", "env": {"P": {"secret": true}}}, "pause": null});
        let mut after = before.clone();
        assert!(changed_fields(&before, &after).is_empty());
        after["params"]["command"] = json!("y");
        after["pause"] = json!({"reason": "holiday"});
        let paths = |fields: Vec<ChangedField>| fields.into_iter().map(|field| field.path).collect::<Vec<_>>();
        assert_eq!(paths(changed_fields(&before, &after)), ["params.command", "pause"]);
        assert_eq!(paths(changed_fields(&Value::Null, &json!({"a": 1, "b": null}))), ["a"]);
        assert_eq!(paths(changed_fields(&json!({"a": {"c": 1}}), &Value::Null)), ["a"]);
    }
}
