//! `job runs`, `run list` and `job logs`: the runs of a job or of many, and the output of the newest.

use std::time::Duration;

use carillon_domain::duration;
use carillon_domain::time::Timestamp;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;

use super::{NamedArgs, path};
use crate::args::{PlacesArgs, job_name, time};
use crate::client::{Call, Client};
use crate::failure::{CommandFailure, FailureKind};
use crate::out::{Out, note};
use crate::run::stream_output;
use crate::shell::names;
use crate::table::{Table, TimeStyle, cell};
use crate::watch::WatchArgs;

/// A start that is later than this is told of, in milliseconds.
const LATE_MS: u64 = 1_000;

/// Arguments of `job runs` and `run list`.
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

/// Arguments of `job logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Which job.
    #[command(flatten)]
    pub job: NamedArgs,
    /// Go on until the run ends
    #[arg(long, short, conflicts_with = "json")]
    pub follow: bool,
}

/// `carillon job runs` and `carillon run list`
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
    let jobs = match (&args.name, args.place.namespace.as_str()) {
        (Some(_), _) => Jobs::One,
        (None, "*") => Jobs::OfAllNamespaces,
        (None, _) => Jobs::OfOneNamespace,
    };
    args.watch.draw(out, |out| {
        let runs = client.all(&call, most)?;
        out.table(&table(&runs, jobs, TimeStyle::new(args.utc)), "no run fits")
    })
}

/// `carillon job logs`
pub fn logs(args: &LogsArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let NamedArgs { name, place } = &args.job;
    let client = Client::new(&place.server)?;
    // Due times that did not run have records too, and may be newer than the newest run.
    let call = Call::get(path(name, "/runs")).with("namespace", &place.namespace).with("limit", "100");
    let runs = client.call(call)?.take_items();
    let Some(run) = runs.iter().find(|run| !run["started_at"].is_null()) else {
        return Err(CommandFailure {
            kind: FailureKind::NotFound,
            sentence: format!("{}/{name} has no run yet; run it with `carillon job run {name}`", place.namespace),
        });
    };
    let id = cell(&run["id"]);
    if place.server.json {
        return out.json(&client.call(Call::get(format!("/v1/runs/{id}")))?.body);
    }
    note(&format!("run {id}, due {}, {}:", TimeStyle::new(true).show(&cell(&run["due_at"])), cell(&run["status"])));
    stream_output(&client, &id, args.follow, out)
}

/// How much of a job's name tells it from the others of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jobs {
    One,
    OfOneNamespace,
    OfAllNamespaces,
}

/// Runs as a table.
fn table(runs: &[Value], jobs: Jobs, times: TimeStyle) -> Table {
    let job = (jobs != Jobs::One).then_some("JOB");
    let heading = ["DUE", "STATUS", "TOOK", "NOTE"];
    let mut table = Table::new(["RUN"].into_iter().chain(job).chain(heading));
    table = table.painting("STATUS");
    if !times.is_exact() {
        table = table.shortening("JOB").shortening("NOTE");
    }
    for run in runs {
        let job = match jobs {
            Jobs::One => None,
            Jobs::OfOneNamespace => Some(cell(&run["job"])),
            Jobs::OfAllNamespaces => Some(format!("{}/{}", cell(&run["namespace"]), cell(&run["job"]))),
        };
        let took = time_taken(run).map(duration::spoken).unwrap_or_default();
        let cells = [times.show(&cell(&run["due_at"])), cell(&run["status"]), took, remarks(run)];
        table.row([cell(&run["id"])].into_iter().chain(job).chain(cells));
    }
    table
}

/// All that is not as usual about a run.
fn remarks(run: &Value) -> String {
    let number = |key: &str| run[key].as_u64();
    let mut parts = Vec::new();
    parts.extend(run["trigger"].as_str().filter(|trigger| *trigger != "schedule").map(str::to_owned));
    parts.extend(number("attempt").filter(|attempt| *attempt > 1).map(|attempt| format!("attempt {attempt}")));
    parts.extend(run["exit_code"].as_i64().filter(|code| *code != 0).map(|code| format!("exit {code}")));
    parts.extend(number("signal").map(|signal| format!("signal {signal}")));
    parts.extend(number("count").filter(|count| *count > 1).map(|count| format!("{count} due times")));
    let late = number("lag_ms").filter(|lag| *lag >= LATE_MS).map(Duration::from_millis);
    parts.extend(late.map(|late| format!("{} late", duration::spoken(late))));
    parts.extend(run["reason"].as_str().map(str::to_owned));
    parts.join("; ")
}

/// How long a run took, in words.
pub fn took(run: &Value) -> Option<String> {
    time_taken(run).map(duration::spoken)
}

fn time_taken(run: &Value) -> Option<Duration> {
    let time = |key: &str| run[key].as_str().and_then(Timestamp::parse_rfc3339);
    Some(time("finished_at")?.since(time("started_at")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_unusual_is_remarked() {
        let usual = json!({"trigger": "schedule", "attempt": 1, "exit_code": 0, "lag_ms": 12, "reason": null});
        assert_eq!(remarks(&usual), "");
        let run = json!({"trigger": "manual", "attempt": 2, "signal": 9, "lag_ms": 1_500, "reason": "it was killed"});
        assert_eq!(remarks(&run), "manual; attempt 2; signal 9; 1.5 s late; it was killed");
        assert_eq!(remarks(&json!({"exit_code": 7, "count": 3})), "exit 7; 3 due times");
    }
}
