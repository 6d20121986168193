//! YAML. Only `true` and `false` are truths: `no` is text, as in a name of a country.

use serde_json::Value;

use super::{Fault, without_place};
use crate::failure::CommandFailure;

/// A schedule begins with a sign that means something else in YAML.
const QUOTE: &str = "; if the text begins with * or @, put it into quotes";

/// Reads text.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Fault {
        at: error.location().map(|place| (place.line(), place.column())),
        problem: without_place(error.to_string().lines().next().unwrap_or_default()),
        remedy: QUOTE,
    })
}

/// Writes a value.
pub(super) fn write(value: &Value) -> Result<String, CommandFailure> {
    serde_saphyr::to_string(value)
        .map_err(|error| CommandFailure::failed(format!("it cannot be written as YAML: {error}; ask for JSON")))
}
