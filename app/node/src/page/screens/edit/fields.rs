//! The fields of the form, made from a definition and read back into one. Each is named as in the API, so that a fault finds its field.

use serde_json::{Map, Value, json};

use super::schema::{FlatField, flat_fields};
use crate::page::params::Params;
use crate::page::visit::Visit;
use carillon_json::{FieldError, parse_json};

/// Fields that are one text or number, by their path.
const PLAIN: [&str; 26] = [
    "name",
    "namespace",
    "schedule",
    "timezone",
    "executor",
    "overlap",
    "misfire.policy",
    "misfire.grace",
    "timeout",
    "kill_grace",
    "retry.max_attempts",
    "retry.backoff",
    "retry.max_backoff",
    "on_lost",
    "jitter",
    "start_at",
    "end_at",
    "dst.gap",
    "dst.overlap",
    "expect.start_within",
    "expect.finish_within",
    "expect.finish_by",
    "ping.start",
    "ping.success",
    "ping.failure",
    // Last, because one address stands for all three.
    "ping",
];

/// The flat params of an executor of this node.
pub(super) fn params_of(visit: &Visit, executor: &str) -> Vec<FlatField> {
    let executors = visit.api.engine.executors();
    let schema = executors.get(executor).and_then(|executor| executor.description().params_schema);
    flat_fields(schema.as_ref())
}

/// The form of a definition.
pub(super) fn filled(definition: &Value, flat: &[FlatField]) -> Params {
    let mut form = Params::default();
    for path in PLAIN {
        let text = match &definition[path] {
            Value::Null => at(definition, path),
            given => given.clone(),
        };
        let text = match text {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        form = form.with(path, text.as_deref());
    }
    let labels = definition["labels"].as_object().into_iter().flatten();
    let lines: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    form = form.with("labels", Some(lines.join("\n").as_str()).filter(|text| !text.is_empty()));
    let mut rest = definition["params"].as_object().cloned().unwrap_or_default();
    for field in flat {
        if let Some(text) = rest.get(&field.name).and_then(|value| field.text(value)) {
            rest.remove(&field.name);
            form = form.with(&format!("params.{}", field.name), Some(&text));
        }
    }
    let rest = (!rest.is_empty()).then(|| serde_json::to_string_pretty(&rest).unwrap_or_default());
    form.with("params", rest.as_deref())
}

fn at(definition: &Value, path: &str) -> Value {
    path.split('.').try_fold(definition, |value, key| value.get(key)).cloned().unwrap_or_default()
}

/// The definition that a form says, as the API takes it.
pub(super) fn body(form: &Params, flat: &[FlatField]) -> Result<Value, Vec<FieldError>> {
    let (mut body, mut faults) = (json!({}), Vec::new());
    for path in PLAIN {
        let Some(text) = form.get(path).map(str::trim).filter(|text| !text.is_empty()) else { continue };
        let number = (path == "retry.max_attempts").then(|| text.parse::<u64>().ok()).flatten();
        let value = number.map_or_else(|| json!(text), |number| json!(number));
        match path.split_once('.') {
            Some((outer, inner)) => body[outer][inner] = value,
            None => body[path] = value,
        }
    }
    match labels(form.get("labels").unwrap_or_default()) {
        Ok(labels) => body["labels"] = Value::Object(labels),
        Err(fault) => faults.push(fault),
    }
    match params(form, flat) {
        Ok(params) => body["params"] = Value::Object(params),
        Err(fault) => faults.push(fault),
    }
    if let Some(paused) = form.get("paused") {
        body["paused"] = json!(paused == "yes");
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // As strictly as if it had come as JSON.
    parse_json(body.to_string().as_bytes()).map_err(|error| vec![FieldError::new("", error.to_string())])
}

fn labels(text: &str) -> Result<Map<String, Value>, FieldError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pairs = lines.map(|line| match line.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), json!(value.trim()))),
        None => Err(FieldError::new("labels", format!("{line:?} is not KEY=VALUE"))),
    });
    pairs.collect()
}

/// The params: those written as JSON, and over them the fields. Fields of another executor's form are kept as text.
fn params(form: &Params, flat: &[FlatField]) -> Result<Map<String, Value>, FieldError> {
    let mut params = match form.get("params").filter(|text| !text.trim().is_empty()) {
        None => Map::new(),
        Some(text) => match parse_json(text.as_bytes()) {
            Ok(Value::Object(params)) => params,
            Ok(_) => return Err(FieldError::new("params", "it must be a JSON object, such as {\"key\": \"value\"}")),
            Err(error) => return Err(FieldError::new("params", error.to_string())),
        },
    };
    for (key, text) in form.pairs() {
        let Some(name) = key.strip_prefix("params.") else { continue };
        let known = flat.iter().find(|field| field.name == name);
        let value = known.map_or_else(|| json!(text.replace("\r\n", "\n")), |field| field.value(text));
        params.insert(name.to_owned(), value);
    }
    Ok(params)
}
