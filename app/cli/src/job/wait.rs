//! `job run`, and waiting for the end of a run.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{RunNowArgs, path};
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::{Out, note};
use crate::run::{sentence, stream_output};

/// How long to wait between two looks at a run: at first, and at the most.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const SLOWEST_LOOK: Duration = Duration::from_secs(2);
/// How many looks in a row may fail before the waiting is given up: a node may restart meanwhile.
const MOST_FAILURES: u32 = 5;

/// `carillon job run`
pub fn run_now(args: &RunNowArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let (job, place) = (&args.job, &args.job.place);
    let client = Client::new(&place.server)?;
    let mut call = Call::post(path(&job.name, "/run")).with("namespace", &place.namespace);
    if let Some(params) = params_of(args)? {
        call = call.body(json!({"params": params}));
    }
    let reply = client.call(call)?;
    let Some(id) = reply.body["id"].as_str() else {
        return Err(CommandFailure::failed("the server answered no run id; look at `carillon job runs`"));
    };
    if !args.wait {
        match place.server.json {
            true => out.json(&reply.body)?,
            false => out.line(&format!("run {id} of {}/{} is asked for", place.namespace, job.name))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !place.server.json
        && let Err(failure) = stream_output(&client, id, true, out)
    {
        note(&format!("the output cannot be followed: {failure}"));
    }
    let run = ended(&client, id, SLOWEST_LOOK, || Duration::MAX)?;
    match place.server.json {
        true => out.json(&run)?,
        false => note(&sentence(&run)),
    }
    Ok(if run["status"] == "succeeded" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The params of the arguments, `None` if there are none. Single ones are laid over those of `--params`.
fn params_of(args: &RunNowArgs) -> Result<Option<Value>, CommandFailure> {
    if args.params.is_none() && args.param.is_empty() {
        return Ok(None);
    }
    let text = match args.params.as_deref() {
        None => "{}".to_owned(),
        Some("-") => std::io::read_to_string(std::io::stdin())
            .map_err(|error| CommandFailure::failed(format!("standard input cannot be read: {error}")))?,
        Some(text) => text.to_owned(),
    };
    let params: Value = serde_json::from_str(&text).map_err(|error| {
        CommandFailure::usage(format!("--params is not JSON: {error}; write it like '{{\"env\": {{}}}}'"))
    })?;
    let Value::Object(mut params) = params else {
        return Err(CommandFailure::usage("--params is not a JSON object; write it like '{\"env\": {}}'"));
    };
    for (key, value) in &args.param {
        put(&mut params, key, value);
    }
    Ok(Some(Value::Object(params)))
}

/// Puts a text at a path such as `env.MONTH`.
fn put(object: &mut Map<String, Value>, path: &str, text: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), json!(text));
        return;
    };
    let inner = object.entry(first).or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    if let Value::Object(inner) = inner {
        put(inner, rest, text);
    }
}

/// The run when it has ended, or when no time is `left` any more, which is asked after each look.
pub(crate) fn ended(
    client: &Client,
    id: &str,
    slowest_look: Duration,
    left: impl Fn() -> Duration,
) -> Result<Value, CommandFailure> {
    let (mut pause, mut failures) = (FIRST_LOOK, 0);
    loop {
        let looked = client.call(Call::get(format!("/v1/runs/{id}")));
        let left = left();
        match looked {
            Ok(reply) if left.is_zero() || has_ended(&reply.body) => return Ok(reply.body),
            Ok(_) => failures = 0,
            Err(failure) if left.is_zero() || failures == MOST_FAILURES => return Err(failure),
            Err(_) => failures += 1,
        }
        sleep(pause.min(left));
        pause = (pause * 2).min(slowest_look);
    }
}

/// Whether a run is over.
pub(crate) fn has_ended(run: &Value) -> bool {
    !matches!(run["status"].as_str(), Some("waiting" | "running"))
}
