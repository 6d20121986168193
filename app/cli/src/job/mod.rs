//! `carillon job …`: definitions and what may be done with them.

mod definition;
mod edit;
mod runs;
mod save;
mod show;
mod wait;

pub use runs::{RunsArgs, runs, took};
pub(super) use save::definition_of;
pub use show::details;
pub(super) use wait::{ended, has_ended};

use std::process::ExitCode;

use carillon_domain::time::Timestamp;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Value, json};

use self::edit::EditArgs;
use self::runs::LogsArgs;
use self::save::{AddArgs, UpdateArgs};
use self::show::{ListArgs, NextArgs};
use super::args::{PlaceArgs, job_name, pair, time};
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::out::Out;
use super::shell::names;

/// The commands on jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Create a job
    Add(Box<AddArgs>),
    /// Change what is given of a job, and leave the rest
    Update(Box<UpdateArgs>),
    /// Change a job in the editor that VISUAL or EDITOR names
    Edit(EditArgs),
    /// Show a job and how it stands
    Show(NamedArgs),
    /// List jobs
    List(ListArgs),
    /// Keep a job from coming up; what runs goes on
    Pause(PauseArgs),
    /// End a pause
    Resume(NamedArgs),
    /// Delete a job; what runs goes on, its runs stay in the history
    Delete(NamedArgs),
    /// Run a job now, whatever its schedule says
    Run(RunNowArgs),
    /// List the runs of a job, or of all, newest first
    Runs(RunsArgs),
    /// Print what the newest run of a job printed
    Logs(LogsArgs),
    /// Print the next due times of a job
    Next(NextArgs),
}

/// A job by name.
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The job
    #[arg(value_parser = job_name, add = ArgValueCompleter::new(names::jobs))]
    pub name: String,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `job pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Which job.
    #[command(flatten)]
    pub job: NamedArgs,
    /// Why, for those who find it paused
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// When the pause ends by itself (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
}

/// Arguments of `job run`.
#[derive(Debug, Args)]
pub struct RunNowArgs {
    /// Which job.
    #[command(flatten)]
    pub job: NamedArgs,
    /// Params to lay over the job's for this run: a JSON object, `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub params: Option<String>,
    /// One of them as text, such as env.MONTH=2027-01; given again for more
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = pair)]
    pub param: Vec<(String, String)>,
    /// Wait for the end, print what it prints, and exit with 1 unless it succeeds
    #[arg(long)]
    pub wait: bool,
}

/// `carillon job …`
pub fn job(command: &JobCommand, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let done = ExitCode::SUCCESS;
    match command {
        JobCommand::Add(args) => save::add(args, out).map(|()| done),
        JobCommand::Update(args) => save::update(args, out).map(|()| done),
        JobCommand::Edit(args) => edit::edit(args, out).map(|()| done),
        JobCommand::Show(args) => show::show(args, out).map(|()| done),
        JobCommand::List(args) => show::list(args, out).map(|()| done),
        JobCommand::Pause(args) => pause(args, out).map(|()| done),
        JobCommand::Resume(args) => {
            act(args, Call::post(path(&args.name, "/resume")), "is resumed", out).map(|()| done)
        }
        JobCommand::Delete(args) => act(args, Call::delete(path(&args.name, "")), "is deleted", out).map(|()| done),
        JobCommand::Run(args) => wait::run_now(args, out),
        JobCommand::Runs(args) => runs(args, out).map(|()| done),
        JobCommand::Logs(args) => runs::logs(args, out).map(|()| done),
        JobCommand::Next(args) => show::next(args, out).map(|()| done),
    }
}

fn pause(args: &PauseArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let mut body = json!({});
    if let Some(reason) = &args.reason {
        body["reason"] = json!(reason);
    }
    if let Some(until) = args.until {
        body["until"] = json!(until.to_string());
    }
    let told = match args.until {
        Some(until) => format!("is paused until {}", until.to_rfc3339_short()),
        None => "is paused".into(),
    };
    act(&args.job, Call::post(path(&args.job.name, "/pause")).body(body), &told, out)
}

/// Does something to a job and tells what became of it.
fn act(args: &NamedArgs, call: Call<'_>, told: &str, out: &mut Out) -> Result<(), CommandFailure> {
    let reply = Client::new(&args.place.server)?.call(call.with("namespace", &args.place.namespace))?;
    match (args.place.server.json, reply.body) {
        (true, Value::Null) => out.json(&json!({"namespace": args.place.namespace, "name": args.name})),
        (true, body) => out.json(&body),
        (false, body) => {
            let next = body["next_due_at"].as_str().filter(|_| body["paused"] != true);
            let next = next.map(|due| format!("; next due at {}", short(due)));
            out.line(&format!("{}/{} {told}{}", args.place.namespace, args.name, next.unwrap_or_default()))
        }
    }
}

/// The path of a job, or of something below it. Names need no escaping.
fn path(name: &str, below: &str) -> String {
    format!("/v1/jobs/{name}{below}")
}

/// A time of the API as people read it: without milliseconds where they are zero.
pub(crate) fn short(time: &str) -> String {
    Timestamp::parse_rfc3339(time).map_or_else(|| time.to_owned(), Timestamp::to_rfc3339_short)
}
