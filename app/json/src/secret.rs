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

/// A text shows this in place of a secret.
const MASK: &str = "***";
/// A shorter value hides nothing, and would tear up every text.
const SHORTEST: usize = 4;

/// The values of all secrets in params, each line of them by itself, the longest first. Those shorter than 4 characters are left out.
pub fn values(params: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(params, &mut found);
    found.sort_by_key(|value| std::cmp::Reverse(value.len()));
    found.dedup();
    found
}

fn collect(params: &Value, found: &mut Vec<String>) {
    match params {
        Value::Object(object) => {
            if let Some(value) = object.get("value").and_then(Value::as_str).filter(|_| is_secret(params)) {
                let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST);
                found.extend(lines.map(str::to_owned));
            }
            object.values().for_each(|inner| collect(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A text in which no value of a secret stands any more.
pub fn masked(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(text, |text, secret| text.replace(secret, MASK))
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
    fn a_text_is_masked_wherever_a_secret_stands_in_it() {
        let of = |value: &str| json!({"value": value, "secret": true});
        let key = "-----BEGIN KEY-----\n  abcdef\n";
        let params = json!({
            "env": {"A": of("hush-hush"), "B": of("hush"), "KEY": of(key), "NO": of("abc"), "OPEN": {"value": "shown", "secret": false}},
            "headers": [of("Bearer t0ken")],
        });
        let secrets = values(&params);
        assert_eq!(
            secrets,
            ["-----BEGIN KEY-----", "Bearer t0ken", "hush-hush", "abcdef", "hush"],
            "the longest first"
        );
        let text = "hush-hush hushed abc shown\nAuthorization: Bearer t0ken\n-----BEGIN KEY-----\nabcdef";
        assert_eq!(masked(text.to_owned(), &secrets), "*** ***ed abc shown\nAuthorization: ***\n***\n***");
        assert_eq!(values(&json!({"command": "x"})), [""; 0]);
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
