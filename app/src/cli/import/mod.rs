//! `carillon import`: a crontab becomes jobs, and every line is told what became of it.
//!
//! The jobs of a file carry the label `crontab=STEM`. STEM is the file's name in the alphabet of names, and `crontab` for standard input.
//! `--prune` deletes the jobs with that label that the file no longer has. So two files of one name do not belong in one namespace. A file
//! with errors prunes nothing: the job of a line that cannot be read is still wanted.
//!
//! Fields that a crontab cannot say (timeout, retry, overlap, a pause, other labels) stay as they are in the job. So an imported job
//! may be tuned and its file imported again. Jobs that are the same already are not sent.

mod mail;
mod plan;
mod report;
mod send;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::ExitCode;

use carillon_domain::crontab::{self, ImportOptions, Line};
use clap::Args;

use self::plan::{Plan, Stored};
use self::report::Row;
use super::args::PlaceArgs;
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::out::{Out, note};
use crate::crontab_jobs::{LABEL, check_schedule};

/// The longest crontab that is read, in bytes.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A crontab; `-` for standard input
    pub file: String,
    /// Where to put the jobs.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// A system crontab such as /etc/cron.d/*: a user stands before each command, and the command runs as that user
    #[arg(long)]
    pub system: bool,
    /// Keep the user as the label `user` only, and run everything as the server's own user
    #[arg(long, requires = "system")]
    pub ignore_user: bool,
    /// The time zone of the lines above any CRON_TZ= [default: UTC]
    #[arg(long, value_name = "TZ")]
    pub timezone: Option<String>,
    /// Delete the jobs that came from a file of this name and stand in it no longer
    #[arg(long)]
    pub prune: bool,
    /// Change nothing; tell what would be
    #[arg(long)]
    pub dry_run: bool,
}

/// `carillon import`; exit code 1 when a line is an error, though the others are imported.
pub fn import(args: &ImportArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let (name, text) = read(&args.file)?;
    if let Some(zone) = &args.timezone {
        check_schedule("@daily", Some(zone), "").map_err(CommandFailure::usage)?;
    }
    let options = ImportOptions {
        file: &name,
        system: args.system,
        ignore_user: args.ignore_user,
        timezone: args.timezone.as_deref(),
    };
    let lines = parse(&text, &options, &args.place.namespace);
    let stem = crontab::stem(&name);
    let client = Client::new(&args.place.server)?;
    let stored = match (stored(&client, &args.place.namespace, &stem), args.dry_run) {
        (Err(failure), true) => {
            note(&format!("what would change is not known: {failure}"));
            None
        }
        (stored, _) => Some(stored?),
    };
    let mut plan = Plan::new(&lines, stored.as_ref(), &args.place.namespace, &stem);
    mail::routes(&client, &args.place.namespace, args.dry_run, &lines, &mut plan.rows);
    if !args.dry_run {
        send::send(&client, &mut plan);
    }
    let has_errors = plan.rows.iter().any(|row| row.status == "error");
    if args.prune {
        prune(&client, args, &mut plan, stored.unwrap_or_default(), has_errors);
    }
    let has_errors = plan.rows.iter().any(|row| row.status == "error");
    report::print(&plan.rows, args.dry_run, args.place.server.json, out)?;
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The name of the crontab and its text.
fn read(file: &str) -> Result<(String, Vec<u8>), CommandFailure> {
    let mut text = Vec::new();
    let (name, read) = match file {
        "-" => ("crontab".into(), std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut text)),
        path => {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            (name, fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text)))
        }
    };
    read.map_err(|error| CommandFailure::failed(format!("cannot read the crontab {file:?}: {error}")))?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(CommandFailure::failed(format!("the crontab {file:?} is longer than {MOST_BYTES} bytes"))),
        false => Ok((name, text)),
    }
}

fn parse(text: &[u8], options: &ImportOptions<'_>, namespace: &str) -> Vec<Line> {
    crontab::parse(text, options, &|schedule, timezone| check_schedule(schedule, timezone, namespace))
}

/// The jobs that came from a file of this name, by name.
fn stored(client: &Client, namespace: &str, stem: &str) -> Result<Stored, CommandFailure> {
    let mut stored = Stored::new();
    let call = Call::get("/v1/jobs").with("namespace", namespace).with("label", format!("{LABEL}={stem}"));
    client.each(&call, None, |job| {
        // Asked again here: what is deleted must not depend on how a server reads a filter.
        if job["labels"][LABEL] == stem
            && let Some(name) = job["name"].as_str()
        {
            stored.insert(name.to_owned(), job);
        }
        Ok(())
    })?;
    Ok(stored)
}

fn prune(client: &Client, args: &ImportArgs, plan: &mut Plan, mut stored: Stored, has_errors: bool) {
    let names: BTreeSet<&String> = plan.rows.iter().filter_map(|row| row.name.as_ref()).collect();
    stored.retain(|name, _| !names.contains(name));
    for (name, job) in &stored {
        let mut row = Row::deleted(name, job["schedule"].as_str());
        if has_errors {
            row.status = "kept";
            row.reason = Some("nothing is pruned while lines of the file are errors".into());
        } else if !args.dry_run {
            let call = Call::delete(format!("/v1/jobs/{name}")).with("namespace", &args.place.namespace);
            if let Err(failure) = client.call(call) {
                row.status = "error";
                row.reason = Some(failure.sentence);
            }
        }
        plan.rows.push(row);
    }
}
