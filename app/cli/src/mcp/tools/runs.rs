//! Tools that look at runs, start them and end them.

use serde_json::{Value, json};

use super::parts::{FEW, MANY, cursor, job_name, limit, namespace, namespaces, picked, run_id};
use crate::client::Call;
use crate::failure::CommandFailure;
use crate::job::has_ended;
use crate::mcp::arguments::Arguments;
use crate::mcp::schema::{number, object, of_api, or_null, text, time};
use crate::mcp::surroundings::Surroundings;
use crate::mcp::waiting::{self, LONGEST_WAIT_SECONDS};
use carillon_json::schema::STATUSES;

type Answer = Result<Value, CommandFailure>;

/// How many bytes of output are answered where the caller does not say, and how many may be. The server keeps 64 KiB of a run.
const LAST_BYTES: u32 = 8 * 1024;
const MOST_BYTES: u32 = 64 * 1024;

pub fn listing() -> Value {
    let fields = [
        ("job", text("Runs of the job of this name; of all jobs if it is not given.")),
        ("namespace", namespaces()),
        ("status", json!({"enum": STATUSES, "description": "How the runs stand."})),
        ("since", time("Due at this time or later.")),
        ("until", time("Due before this time.")),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    object(&fields, 0)
}

pub fn page() -> Value {
    of_api("RunPage")
}

pub fn list_runs(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let job = asked.text("job");
    if let Some(Err(error)) = job.as_deref().map(carillon_domain::name::check_job_name) {
        asked.fault("job", &error.to_string());
    }
    let namespace = if job.is_some() { asked.namespace() } else { asked.namespaces() };
    let status = asked.choice("status", &STATUSES);
    let (since, until) = (asked.time("since"), asked.time("until"));
    let (limit, cursor) = (asked.number("limit", 1, MANY).unwrap_or(FEW), asked.text("cursor"));
    asked.finish()?;
    let path = job.map_or_else(|| "/v1/runs".to_owned(), |job| format!("/v1/jobs/{job}/runs"));
    let call = Call::get(path)
        .with("namespace", namespace)
        .with_some("status", status)
        .with_some("since", since)
        .with_some("until", until)
        .with("limit", limit.to_string())
        .with_some("cursor", cursor);
    Ok(surroundings.client.call(call)?.body)
}

pub fn one_run() -> Value {
    object(&[("id", run_id())], 1)
}

pub fn run() -> Value {
    of_api("Run")
}

/// A run with its params, without its output.
pub fn run_without_output() -> Value {
    let mut schema = of_api("RunDetails");
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove("output");
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|field| field != "output");
    }
    schema
}

pub fn show_run(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let id = asked.run();
    asked.finish()?;
    Ok(without_output(surroundings.client.call(Call::get(format!("/v1/runs/{id}")))?.body))
}

fn without_output(mut run: Value) -> Value {
    if let Some(fields) = run.as_object_mut() {
        fields.remove("output");
    }
    run
}

fn wait_seconds() -> Value {
    number(0, LONGEST_WAIT_SECONDS, 0, "How long to wait for the end of the run.")
}

pub fn output_question() -> Value {
    let last_bytes = number(1, MOST_BYTES, LAST_BYTES, "How many bytes at the end of the output.");
    object(&[("id", run_id()), ("last_bytes", last_bytes), ("wait_seconds", wait_seconds())], 1)
}

pub fn output() -> Value {
    let fields = [
        ("id", run_id()),
        ("status", json!({"type": "string"})),
        ("ended", json!({"type": "boolean", "description": "Whether the run is over."})),
        ("exit_code", or_null(json!({"type": "integer"}))),
        ("output", json!({"type": "string"})),
        ("output_cut", json!({"type": "boolean", "description": "Whether more was printed than is shown."})),
    ];
    object(&fields, fields.len())
}

pub fn read_output(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let id = asked.run();
    let last_bytes = asked.number("last_bytes", 1, MOST_BYTES).unwrap_or(LAST_BYTES);
    let seconds = asked.number("wait_seconds", 0, LONGEST_WAIT_SECONDS).unwrap_or(0);
    asked.finish()?;
    Ok(printed(&waiting::run(surroundings, &id, seconds)?, last_bytes))
}

/// The output of a run up to now.
fn printed(run: &Value, last_bytes: u32) -> Value {
    let output = run["output"].as_str().unwrap_or_default();
    let shown = end_of(output, last_bytes as usize);
    let cut = shown.len() < output.len() || run["output_truncated"] == true;
    let mut answer = picked(run, &["id", "status", "exit_code"]);
    answer["ended"] = json!(has_ended(run));
    answer["output"] = json!(shown);
    answer["output_cut"] = json!(cut);
    answer
}

/// The last bytes of a text, without a part of a character.
fn end_of(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

pub fn run_question() -> Value {
    let params =
        json!({"type": "object", "description": "Params to lay over the job's for this run, as a JSON merge patch."});
    let fields =
        [("name", job_name()), ("namespace", namespace()), ("params", params), ("wait_seconds", wait_seconds())];
    object(&fields, 1)
}

pub fn run_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let job = asked.job();
    let params = asked.object("params", false);
    let seconds = asked.number("wait_seconds", 0, LONGEST_WAIT_SECONDS).unwrap_or(0);
    asked.finish()?;
    let mut call = Call::post(job.path("/run")).with("namespace", &job.namespace);
    if let Some(params) = params {
        call = call.body(json!({"params": params}));
    }
    let reply = surroundings.client.call(call)?;
    let Some(id) = reply.body["id"].as_str() else {
        return Err(CommandFailure::failed("the server answered no run id; look at list_runs"));
    };
    match waiting::run(surroundings, id, seconds) {
        Ok(run) => Ok(printed(&run, LAST_BYTES)),
        // The run is asked for, so asking once more would be a second one.
        Err(failure) => Err(CommandFailure::failed(format!(
            "run {id} is asked for, and how it stands cannot be read: {failure}; look at show_run, and do not run it again"
        ))),
    }
}

pub fn cancel_run(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let id = asked.run();
    asked.finish()?;
    Ok(surroundings.client.call(Call::post(format!("/v1/runs/{id}/cancel")))?.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_whole_characters() {
        assert_eq!(end_of("aäb", 2), "b");
        assert_eq!(end_of("aäb", 3), "äb");
        assert_eq!(end_of("aäb", 9), "aäb");
        let run = json!({"id": "8000000000000007-1", "status": "running", "exit_code": null, "output": "one\ntwo\n",
            "output_truncated": false});
        let answer = printed(&run, 4);
        assert_eq!(
            (&answer["output"], &answer["output_cut"], &answer["ended"]),
            (&json!("two\n"), &json!(true), &json!(false))
        );
    }
}
