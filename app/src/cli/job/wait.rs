//! `job run`, and waiting for the end of a run.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{RunNowArgs, path};
use crate::cli::client::{Call, Client};
use crate::cli::failure::CommandFailure;
use crate::cli::out::{Out, note};
use crate::cli::run::{sentence, stream_output};

/// How long to wait between two looks at a run: at first, and at the most.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const SLOWEST_LOOK: Duration = Duration::from_secs(2);
/// How many looks in a row may fail before the waiting is given up: a node may restart meanwhile.
const MOST_FAILURES: u32 = 5;

/// `carillon job run`
pub fn run_now(args: &RunNowArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let (job, place) = (&args.job, &args.job.place);
    let client = Client::new(&place.server)?;
    let reply = client.call(Call::post(path(&job.name, "/run")).with("namespace", &place.namespace))?;
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
    let run = ended(&client, id)?;
    match place.server.json {
        true => out.json(&run)?,
        false => note(&sentence(&run)),
    }
    Ok(if run["status"] == "succeeded" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The run when it has ended.
fn ended(client: &Client, id: &str) -> Result<Value, CommandFailure> {
    let (mut pause, mut failures) = (FIRST_LOOK, 0);
    loop {
        match client.call(Call::get(format!("/v1/runs/{id}"))) {
            Ok(reply) if !matches!(reply.body["status"].as_str(), Some("waiting" | "running")) => return Ok(reply.body),
            Ok(_) => failures = 0,
            Err(failure) if failures == MOST_FAILURES => return Err(failure),
            Err(_) => failures += 1,
        }
        sleep(pause);
        pause = (pause * 2).min(SLOWEST_LOOK);
    }
}
