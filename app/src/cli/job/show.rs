//! `job show`, `job list`, `job runs` and `job next`: what there is and how it stands.

use carillon_domain::time::Timestamp;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Value, json};

use super::{NamedArgs, path, short};
use crate::cli::args::{PlaceArgs, PlacesArgs, job_name, time};
use crate::cli::client::{Call, Client};
use crate::cli::failure::CommandFailure;
use crate::cli::out::{Out, note};
use crate::cli::run::sentence;
use crate::cli::shell::names;
use crate::cli::table::{Table, cell, printable};

/// Arguments of `job list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Names that begin so
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// A label that they have, with any value or with this one
    #[arg(long, short, value_name = "KEY[=VALUE]")]
    pub label: Option<String>,
    /// How they stand
    #[arg(long, value_parser = ["idle", "prepared", "executing"])]
    pub state: Option<String>,
    /// Paused ones, or with `--paused false` the others
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub paused: Option<bool>,
    /// How many at the most [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Where to look.
    #[command(flatten)]
    pub place: PlacesArgs,
}

/// Arguments of `job runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// The job [default: all jobs of the namespace]
    #[arg(value_parser = job_name, add = ArgValueCompleter::new(names::jobs))]
    pub name: Option<String>,
    /// How they stand
    #[arg(long, value_parser = ["running", "succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"])]
    pub status: Option<String>,
    /// Due at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Due before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Where to look.
    #[command(flatten)]
    pub place: PlacesArgs,
}

/// Arguments of `job next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// The job
    #[arg(value_parser = job_name, add = ArgValueCompleter::new(names::jobs))]
    pub name: String,
    /// How many due times
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub count: u32,
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `carillon job show`
pub fn show(args: &NamedArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get(path(&args.name, "")).with("namespace", &args.place.namespace);
    let job = Client::new(&args.place.server)?.call(call)?.body;
    if args.place.server.json { out.json(&job) } else { out.bytes(details(&job).as_bytes()) }
}

/// The fields that a person looks for first.
const FIRST: [&str; 10] =
    ["id", "namespace", "name", "job", "status", "state", "schedule", "timezone", "next_due_at", "reason"];

/// A job or a run as two columns: what is not set is left out, inner objects stand on one line. What a run printed has a
/// command of its own.
pub fn details(object: &Value) -> String {
    let set = |value: &Value| !value.is_null() && *value != json!({}) && *value != json!("");
    let fields = object.as_object().into_iter().flatten();
    let mut fields: Vec<_> = fields.filter(|(key, value)| set(value) && *key != "output").collect();
    // Stable: the others keep their order.
    fields.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    let mut table = Table::new(["FIELD", "VALUE"]);
    for (key, value) in fields {
        match value {
            Value::String(text) if key.ends_with("_at") => table.row([key.as_str(), &short(text)]),
            Value::Object(_) if key.ends_with("_run") => table.row([key.as_str(), &sentence(value)]),
            value => table.row([key.as_str(), &cell(value)]),
        }
    }
    table.text()
}

/// `carillon job list`
pub fn list(args: &ListArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get("/v1/jobs")
        .with("namespace", &args.place.namespace)
        .with_some("prefix", args.prefix.as_ref())
        .with_some("label", args.label.as_ref())
        .with_some("state", args.state.as_ref())
        .with_some("paused", args.paused);
    let client = Client::new(&args.place.server)?;
    if args.place.server.json {
        return client.each(&call, args.limit, |job| out.json(&job));
    }
    let mut table = Table::new(["NAMESPACE", "NAME", "SCHEDULE", "ZONE", "STATE", "NEXT", "LAST RUN"]);
    client.each(&call, args.limit, |job| {
        let state = if job["paused"] == true { "paused".into() } else { cell(&job["state"]) };
        table.row([
            cell(&job["namespace"]),
            cell(&job["name"]),
            cell(&job["schedule"]),
            cell(&job["timezone"]),
            state,
            short(&cell(&job["next_due_at"])),
            cell(&job["last_run"]["status"]),
        ]);
        Ok(())
    })?;
    print(&table, "no job fits", out)
}

/// `carillon job runs`
pub fn runs(args: &RunsArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let at = match &args.name {
        Some(_) if args.place.namespace == "*" => {
            return Err(CommandFailure::usage("a job is in one namespace: leave out its name, or name the namespace"));
        }
        Some(name) => path(name, "/runs"),
        None => "/v1/runs".into(),
    };
    let call = Call::get(at)
        .with("namespace", &args.place.namespace)
        .with_some("status", args.status.as_ref())
        .with_some("since", args.since)
        .with_some("until", args.until);
    let client = Client::new(&args.place.server)?;
    let most = (!args.all).then_some(args.limit);
    if args.place.server.json {
        return client.each(&call, most, |run| out.json(&run));
    }
    let mut runs = Vec::new();
    client.each(&call, most, |run| {
        runs.push(run);
        Ok(())
    })?;
    print(&run_table(&runs, args.name.is_none()), "no run fits", out)
}

/// Runs as a table.
fn run_table(runs: &[Value], with_job: bool) -> Table {
    let job = with_job.then_some("JOB");
    let heading = ["RUN", "DUE", "TRIGGER", "TRY", "STATUS", "EXIT", "LAG MS", "TOOK", "NODE", "REASON"];
    let mut table = Table::new(job.into_iter().chain(heading));
    for run in runs {
        let job = with_job.then(|| format!("{}/{}", cell(&run["namespace"]), cell(&run["job"])));
        let exit = match (&run["exit_code"], &run["signal"]) {
            (Value::Null, Value::Null) => String::new(),
            (Value::Null, signal) => format!("signal {signal}"),
            (code, _) => cell(code),
        };
        let count = run["count"].as_u64().filter(|count| *count > 1).map(|count| format!("{count} due times; "));
        table.row(job.into_iter().chain([
            cell(&run["id"]),
            short(&cell(&run["due_at"])),
            cell(&run["trigger"]),
            cell(&run["attempt"]),
            cell(&run["status"]),
            exit,
            cell(&run["lag_ms"]),
            took(run).unwrap_or_default(),
            cell(&run["node"]),
            format!("{}{}", count.unwrap_or_default(), cell(&run["reason"])),
        ]));
    }
    table
}

/// How long a run took.
pub fn took(run: &Value) -> Option<String> {
    let time = |key: &str| run[key].as_str().and_then(Timestamp::parse_rfc3339);
    Some(carillon_domain::duration::format(time("finished_at")?.since(time("started_at")?)))
}

/// `carillon job next`
pub fn next(args: &NextArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get(path(&args.name, "/next"))
        .with("namespace", &args.place.namespace)
        .with("count", args.count.to_string());
    let reply = Client::new(&args.place.server)?.call(call)?.body;
    if args.place.server.json {
        return out.json(&reply);
    }
    let next = reply["next"].as_array().cloned().unwrap_or_default();
    if next.is_empty() {
        note("it is never due again");
    }
    next.iter().try_for_each(|due| out.line(&printable(&short(&cell(due)))))
}

fn print(table: &Table, nothing: &str, out: &mut Out) -> Result<(), CommandFailure> {
    match table.is_empty() {
        true => {
            note(nothing);
            Ok(())
        }
        false => out.bytes(table.text().as_bytes()),
    }
}
