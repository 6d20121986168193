//! Params without the values of secrets, as they may be shown and written into the audit log.

use serde_json::Value;

/// Takes the value out of every `{"value": "...", "secret": true}`.
pub fn redact(params: &mut Value) {
    match params {
        Value::Object(object) => {
            if object.get("secret") == Some(&Value::Bool(true)) {
                object.remove("value");
            }
            object.values_mut().for_each(redact);
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The text of params without secrets; `null` if it is no JSON, rather than showing it unredacted.
pub(crate) fn redacted_text(params: &str) -> String {
    let mut params: Value = serde_json::from_str(params).unwrap_or_default();
    redact(&mut params);
    params.to_string()
}
