//! A text in a job's params that may be a secret.

use serde_json::Value;

/// The text of `"..."` or of `{"value": "...", "secret": true}`; `None` of anything else. Secrets are hidden where params
/// are shown, never from the run.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.get("value").unwrap_or(value).as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_read_whether_it_is_a_secret_or_not() {
        for whole in [json!("a"), json!({"value": "a", "secret": true}), json!({"value": "a"})] {
            assert_eq!(text(&whole), Some("a"));
        }
        for odd in
            [json!(1), json!(null), json!({"value": null, "secret": true}), json!({"secret": true}), json!(["a"])]
        {
            assert_eq!(text(&odd), None, "{odd}");
        }
    }
}
