//! The params that a person gives for one run, and the same as they may be shown.

use carillon_domain::job::Job;
use carillon_executors::registry::ByName;
use carillon_store::run_params::lay_over;
use serde_json::Value;

use crate::definition::MOST_PARAMS;
use crate::{FieldError, Fields, secret};

/// The params in the body of a call that asks for a run; `None` if there are none.
///
/// # Errors
/// Every fault of the body.
pub fn run_params(body: Value) -> Result<Option<Value>, Vec<FieldError>> {
    let mut fields = Fields::of(body, "this")?;
    let params = fields.any("params");
    if let Some(other) = params.as_ref().filter(|params| !params.is_object()) {
        fields.wrong::<()>("params", "an object", other);
    }
    fields.finish()?;
    Ok(params.filter(|params| params.as_object().is_some_and(|fields| !fields.is_empty())))
}

/// The same as JSON text. The params of the job with these laid over them must be as good as those of a definition.
///
/// # Errors
/// Every fault, of the executor's schema too.
pub fn checked_run_params(params: Value, job: &Job, executors: &ByName) -> Result<String, Vec<FieldError>> {
    let text = params.to_string();
    let mut all: Value = serde_json::from_str(&job.params).unwrap_or_default();
    lay_over(&mut all, params);
    secret::restore(&mut all, None)?;
    let length = all.to_string().len();
    if length > MOST_PARAMS {
        let message = format!("with those of the job they are {length} bytes long: at most {MOST_PARAMS} are allowed");
        return Err(vec![FieldError::new("params", message)]);
    }
    let Some(executor) = executors.get(&job.executor) else {
        let message = format!("this node has no executor {}, so it cannot check them; ask another node", job.executor);
        return Err(vec![FieldError::new("params", message)]);
    };
    let faults = executor.check(&all).err().unwrap_or_default();
    let faults: Vec<FieldError> = faults.into_iter().map(|(field, message)| FieldError { field, message }).collect();
    if faults.is_empty() { Ok(text) } else { Err(faults) }
}

/// Stored params of a run without secrets; `null` if they are no JSON, rather than showing them unredacted.
pub fn shown_run_params(text: &str) -> Value {
    let mut params = serde_json::from_str(text).unwrap_or_default();
    carillon_store::redact(&mut params);
    params
}
