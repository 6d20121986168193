//! Params that a person gives for one run: a JSON merge patch (RFC 7396), laid over the params of the job.
//!
//! They are kept under the firing, beside the job's row. So firings of the schedule neither read nor write a byte of them.
//! Every attempt of the run finds them, and they are kept as long as its record.

use carillon_domain::job::Job;
use serde_json::{Map, Value};

/// Lays `patch` over `params`: objects are merged field by field, `null` takes a field away, and anything else replaces.
pub fn lay_over(params: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *params = patch;
        return;
    };
    if !params.is_object() {
        *params = Value::Object(Map::new());
    }
    let Value::Object(fields) = params else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            lay_over(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// The definition of a job as one run of it uses it. If a stored text is not JSON, its params are empty text. Executors refuse
/// that, so the run fails and does not run with other params than were asked for.
pub(crate) fn of_run(job: &Job, patch: &str) -> Job {
    let params = serde_json::from_str(&job.params).and_then(|mut params| {
        lay_over(&mut params, serde_json::from_str(patch)?);
        Ok(params.to_string())
    });
    Job { params: params.unwrap_or_default(), ..job.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_merges_replaces_and_takes_away() {
        let job = Job::new(("default", "a"), "@every 1s", r#"{"argv": ["a", "b"], "env": {"A": "1", "B": "2"}}"#);
        for (patch, laid_over) in [
            ("{}", r#"{"argv":["a","b"],"env":{"A":"1","B":"2"}}"#),
            (r#"{"env": {"B": "3", "C": "4"}}"#, r#"{"argv":["a","b"],"env":{"A":"1","B":"3","C":"4"}}"#),
            (r#"{"env": {"A": null}, "dir": "/tmp"}"#, r#"{"argv":["a","b"],"dir":"/tmp","env":{"B":"2"}}"#),
            (r#"{"argv": ["c"], "env": null}"#, r#"{"argv":["c"]}"#),
            (r#"{"argv": {"x": {"y": null}}}"#, r#"{"argv":{"x":{}},"env":{"A":"1","B":"2"}}"#),
        ] {
            let params: Value = serde_json::from_str(&of_run(&job, patch).params).unwrap();
            assert_eq!(params, serde_json::from_str::<Value>(laid_over).unwrap(), "{patch}");
        }
    }

    #[test]
    fn a_stored_text_that_is_no_json_fails_the_run() {
        let job = |params| Job::new(("default", "a"), "@every 1s", params);
        assert_eq!(of_run(&job("{}"), "{").params, "");
        assert_eq!(of_run(&job("{"), "{}").params, "");
    }
}
