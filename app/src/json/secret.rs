//! Secrets in params: `{"value": "...", "secret": true}` is stored and given to the run, never shown.
//!
//! A reader sees `{"secret": true}`. So a definition that is read, edited and put back comes without the value. The stored value is filled in
//! if it stands at the same place; otherwise the put is refused.

use serde_json::Value;

use super::FieldError;

/// Whether somewhere in a body a secret stands without its value, so that the stored definition is needed.
pub fn is_redacted(body: &Value) -> bool {
    match body {
        Value::Object(object) => is_bare(body) || object.values().any(is_redacted),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Gives every secret without its value an empty one, where somebody compares who is shown none.
pub fn fill_secrets(params: &mut Value) {
    match params {
        bare if is_bare(bare) => bare["value"] = "".into(),
        Value::Object(object) => object.values_mut().for_each(fill_secrets),
        Value::Array(items) => items.iter_mut().for_each(fill_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in the values of secrets from what is stored.
///
/// # Errors
/// Each place at which nothing is stored.
pub(super) fn restore(params: &mut Value, stored: Option<&Value>) -> Result<(), Vec<FieldError>> {
    let mut missing = Vec::new();
    restore_at("params", params, stored, &mut missing);
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

fn restore_at(path: &str, params: &mut Value, stored: Option<&Value>, missing: &mut Vec<FieldError>) {
    if is_bare(params) {
        match stored.filter(|stored| is_secret(stored)).and_then(|stored| stored.get("value")) {
            Some(value) => params["value"] = value.clone(),
            None => missing.push(FieldError::new(
                path,
                "the value of this secret is not given and none is stored here: write {\"value\": \"...\", \"secret\": true}",
            )),
        }
        return;
    }
    match params {
        Value::Object(object) => {
            for (key, value) in object {
                restore_at(&format!("{path}.{key}"), value, stored.and_then(|stored| stored.get(key)), missing);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter_mut().enumerate() {
                restore_at(&format!("{path}[{index}]"), value, stored.and_then(|stored| stored.get(index)), missing);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_secret(value: &Value) -> bool {
    value.get("secret") == Some(&Value::Bool(true))
}

/// Exactly `{"secret": true}`.
fn is_bare(value: &Value) -> bool {
    is_secret(value) && value.as_object().is_some_and(|object| object.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_store::redact;
    use serde_json::json;

    #[test]
    fn what_is_shown_and_put_back_is_what_was_stored() {
        let stored = json!({"command": "x", "env": {"A": "1", "P": {"value": "hush", "secret": true}}, "l": [{"value": "v", "secret": true}]});
        let mut shown = stored.clone();
        redact(&mut shown);
        assert!(!shown.to_string().contains("hush"));
        assert_eq!(shown["env"], json!({"A": "1", "P": {"secret": true}}));
        assert!(is_redacted(&shown) && !is_redacted(&stored));
        restore(&mut shown, Some(&stored)).unwrap();
        assert_eq!(shown, stored);
    }

    #[test]
    fn a_secret_that_is_stored_nowhere_is_asked_for() {
        let stored = json!({"env": {"OPEN": {"value": "shown", "secret": false}, "TEXT": "t"}});
        for name in ["OPEN", "TEXT", "NEW"] {
            let mut params = json!({"env": {name: {"secret": true}}});
            let missing = restore(&mut params, Some(&stored)).unwrap_err();
            assert_eq!(missing[0].field, format!("params.env.{name}"));
            assert!(restore(&mut params, None).is_err());
        }
    }
}
