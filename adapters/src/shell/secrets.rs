//! Hiding what a job marks as secret (SPEC section 7).

use serde_json::Value;

/// `params` as they may be shown or logged: the `value` of every variable with `"secret": true` is null. What is shown can
/// therefore not be saved back by mistake: a null value is refused. Takes any params, also ones that were never checked.
pub fn redact(params: &Value) -> Value {
    let mut shown = params.clone();
    let variables = shown.get_mut("env").and_then(Value::as_object_mut);
    for variable in variables.into_iter().flat_map(|env| env.values_mut()) {
        // Anything but a plain false: what is half marked was meant to be hidden.
        let secret = variable.get("secret").is_some_and(|secret| *secret != Value::Bool(false));
        if let (true, Some(value)) = (secret, variable.get_mut("value")) {
            *value = Value::Null;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_and_nothing_else() {
        let env = json!({"A": "a", "B": {"value": "b", "secret": true}, "C": {"value": "c", "secret": false}});
        let shown = json!({"A": "a", "B": {"value": null, "secret": true}, "C": {"value": "c", "secret": false}});
        assert_eq!(redact(&json!({"command": "x", "env": env})), json!({"command": "x", "env": shown}));
        for odd in [json!(null), json!({"env": 1}), json!([])] {
            assert_eq!(redact(&odd), odd);
        }
    }
}
