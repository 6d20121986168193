//! `carillon run …`: one attempt to execute a firing, what it printed, and how to end it.

use std::io::Read;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Value, json};

use super::args::{ServerArgs, run_id};
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::job::{RunsArgs, details, runs, took};
use super::out::{Out, note};
use super::shell::names;
use super::table::{cell, printable};

/// The commands on a run.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// List runs of all jobs, or of one, newest first
    List(RunsArgs),
    /// Show a run
    Show(RunArgs),
    /// Print what a run printed
    Output(OutputArgs),
    /// Ask a run to end
    Cancel(RunArgs),
}

/// A run by id.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The run, as `carillon job runs` prints it
    #[arg(value_name = "RUN_ID", value_parser = run_id, add = ArgValueCompleter::new(names::runs))]
    pub id: String,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `run output`.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Which run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Go on until the run ends
    #[arg(long, conflicts_with = "json")]
    pub follow: bool,
}

/// `carillon run …`
pub fn run(command: &RunCommand, out: &mut Out) -> Result<(), CommandFailure> {
    match command {
        RunCommand::List(args) => runs(args, out),
        RunCommand::Show(args) => {
            let run = read(args)?;
            if args.server.json { out.json(&run) } else { out.bytes(details(&run).as_bytes()) }
        }
        RunCommand::Output(OutputArgs { run: args, .. }) if args.server.json => {
            let run = read(args)?;
            out.json(&json!({"id": args.id, "output": run["output"], "output_truncated": run["output_truncated"]}))
        }
        RunCommand::Output(args) => stream_output(&Client::new(&args.run.server)?, &args.run.id, args.follow, out),
        RunCommand::Cancel(args) => {
            let run = Client::new(&args.server)?.call(Call::post(format!("/v1/runs/{}/cancel", args.id)))?.body;
            if args.server.json { out.json(&run) } else { out.line(&format!("asked to end: {}", sentence(&run))) }
        }
    }
}

fn read(args: &RunArgs) -> Result<Value, CommandFailure> {
    Ok(Client::new(&args.server)?.call(Call::get(format!("/v1/runs/{}", args.id)))?.body)
}

/// Copies what a run prints to standard output as it comes.
pub fn stream_output(client: &Client, id: &str, follow: bool, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get(format!("/v1/runs/{id}/output")).with_some("follow", follow.then_some(true));
    let (mut output, truncated) = client.stream(call)?;
    let mut chunk = vec![0; 64 * 1024];
    while !out.is_closed() {
        let length = output.read(&mut chunk).map_err(|error| {
            CommandFailure::failed(format!("the output of run {id} broke off: {error}; ask for it again"))
        })?;
        if length == 0 {
            break;
        }
        out.bytes(&chunk[..length])?;
        out.flush()?;
    }
    if truncated && !out.is_closed() {
        note("it printed more than is kept: what stood between the beginning and the end is left out above");
    }
    Ok(())
}

/// A run in a sentence, such as `run 80…-1 failed after 2 s (exit code 3): it went wrong`.
pub fn sentence(run: &Value) -> String {
    let took = took(run).map(|took| format!(" after {took}")).unwrap_or_default();
    let how = match (run["exit_code"].as_i64(), run["signal"].as_i64()) {
        (Some(0), _) | (None, None) => String::new(),
        (Some(code), _) => format!(" (exit code {code})"),
        (None, Some(signal)) => format!(" (signal {signal})"),
    };
    let reason = run["reason"].as_str().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    format!("run {} {}{took}{how}{reason}", cell(&run["id"]), cell(&run["status"]))
}
