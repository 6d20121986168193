//! `job show`, `job list` and `job next`: what there is and how it stands.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Value, json};

use super::{NamedArgs, path, short};
use crate::args::{PlaceArgs, PlacesArgs, job_name};
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::{Out, note};
use crate::run::sentence;
use crate::shell::names;
use crate::table::{Table, TimeStyle, cell, printable};
use crate::watch::WatchArgs;

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
    /// Show exact times in UTC
    #[arg(long)]
    pub utc: bool,
    /// Again and again.
    #[command(flatten)]
    pub watch: WatchArgs,
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
    args.watch.draw(out, |out| {
        let jobs = client.all(&call, args.limit)?;
        out.table(&table(&jobs, args.place.namespace == "*", TimeStyle::new(args.utc)), "no job fits")
    })
}

/// Jobs as a table.
fn table(jobs: &[Value], with_namespace: bool, times: TimeStyle) -> Table {
    let namespace = with_namespace.then_some("NAMESPACE");
    let heading = namespace.into_iter().chain(["NAME", "SCHEDULE", "STATE", "NEXT", "LAST RUN"]);
    let mut table = Table::new(heading).shortening("SCHEDULE").painting("LAST RUN");
    for job in jobs {
        let namespace = with_namespace.then(|| cell(&job["namespace"]));
        let zone = job["timezone"].as_str().map(|zone| format!(" {zone}")).unwrap_or_default();
        let state = if job["paused"] == true { "paused".into() } else { cell(&job["state"]) };
        let last = &job["last_run"];
        let ended = last["finished_at"].as_str().or(last["due_at"].as_str()).filter(|_| !times.is_exact());
        let ended = ended.map(|time| format!(" {}", times.show(time))).unwrap_or_default();
        table.row(namespace.into_iter().chain([
            cell(&job["name"]),
            format!("{}{zone}", cell(&job["schedule"])),
            state,
            times.show(&cell(&job["next_due_at"])),
            format!("{}{ended}", cell(&last["status"])),
        ]));
    }
    table
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
