//! `carillon import`: a crontab or a file of definitions becomes jobs, and every line or job is told what became of it.
//!
//! The jobs of a crontab carry the label `crontab=STEM`. STEM is the file's name in the alphabet of names, and `crontab` for standard input.
//! `--prune` deletes the jobs with that label that the file no longer has. So two files of one name do not belong in one namespace. A file
//! with errors prunes nothing: the job of a line that cannot be read is still wanted.
//!
//! Fields that a crontab cannot say (timeout, retry, overlap, a pause, other labels) stay as they are in the job. So an imported job
//! may be tuned and its file imported again. Jobs that are the same already are not sent.

mod definitions;
mod mail;
mod plan;
mod report;
mod send;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::ExitCode;

use carillon_domain::crontab::{self, ImportOptions, Line};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use self::plan::{Plan, Stored};
use self::report::{Report, Row};
use super::args::PlaceArgs;
use super::client::{Call, Client};
use super::document;
use super::failure::CommandFailure;
use super::out::{Out, note};
use carillon_json::crontab_jobs::{LABEL, check_schedule};

/// The longest file that is read, in bytes.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A crontab, or definitions as JSON, YAML or TOML; `-` for standard input
    pub file: String,
    /// How it is written [default: as its name ends, or else a crontab]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
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
    /// Delete the jobs that came from a crontab of this name and stand in it no longer; with definitions, all other jobs of their namespaces
    #[arg(long)]
    pub prune: bool,
    /// Change nothing; tell what would be
    #[arg(long)]
    pub dry_run: bool,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A crontab.
    Crontab,
    /// Definitions as JSON.
    Json,
    /// Definitions as YAML.
    Yaml,
    /// Definitions as TOML.
    Toml,
}

impl Format {
    /// How definitions are written; `None` for a crontab. No line of a crontab begins with a bracket, so standard input may be JSON too.
    fn of_definitions(given: Option<Self>, file: &str, text: &[u8]) -> Option<document::Format> {
        match given {
            Some(Self::Crontab) => None,
            Some(Self::Json) => Some(document::Format::Json),
            Some(Self::Yaml) => Some(document::Format::Yaml),
            Some(Self::Toml) => Some(document::Format::Toml),
            None => document::Format::by_ending(file).or_else(|| {
                let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
                first.is_some_and(|first| b"{[".contains(first)).then_some(document::Format::Json)
            }),
        }
    }
}

/// `carillon import`; exit code 1 when a line or a job is an error, though the others are imported.
pub fn import(args: &ImportArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let (name, text) = read(&args.file)?;
    match Format::of_definitions(args.format, &args.file, &text) {
        Some(format) => import_definitions(args, definitions::read(format, text, &args.file)?, out),
        None => import_crontab(args, &name, &text, out),
    }
}

fn import_crontab(args: &ImportArgs, name: &str, text: &[u8], out: &mut Out) -> Result<ExitCode, CommandFailure> {
    if let Some(zone) = &args.timezone {
        check_schedule("@daily", Some(zone), "").map_err(CommandFailure::usage)?;
    }
    let options = ImportOptions {
        file: name,
        system: args.system,
        ignore_user: args.ignore_user,
        timezone: args.timezone.as_deref(),
    };
    let lines = parse(text, &options, &args.place.namespace);
    let stem = crontab::stem(name);
    let client = Client::new(&args.place.server)?;
    let stored = known(stored(&client, &args.place.namespace, &stem), args.dry_run)?;
    let mut plan = Plan::new(&lines, stored.as_ref(), &args.place.namespace, &stem);
    mail::routes(&client, &args.place.namespace, args.dry_run, &lines, &mut plan.rows);
    if !args.dry_run {
        send::send(&client, &mut plan);
    }
    if args.prune {
        let names: BTreeSet<String> = plan.rows.iter().filter_map(|row| row.name.clone()).collect();
        prune(&client, args.dry_run, &mut plan, stored.unwrap_or_default(), &names);
    }
    finish(args, &plan, out)
}

fn import_definitions(args: &ImportArgs, items: Vec<Value>, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    if args.system || args.timezone.is_some() {
        let told = "--system and --timezone are for crontabs: a definition says params.user and timezone itself";
        return Err(CommandFailure::usage(told));
    }
    let client = Client::new(&args.place.server)?;
    let mut plan = definitions::plan(items, &args.place.namespace);
    let stored = match args.dry_run || args.prune {
        true => known(definitions::stored(&client, &plan), args.dry_run)?,
        false => None,
    };
    let names: BTreeSet<String> =
        plan.to_send.iter().filter_map(|(_, job)| job.as_object()).map(definitions::key).collect();
    match args.dry_run {
        true => definitions::compare(&mut plan, stored.as_ref()),
        false => send::send(&client, &mut plan),
    }
    if args.prune {
        prune(&client, args.dry_run, &mut plan, stored.unwrap_or_default(), &names);
    }
    finish(args, &plan, out)
}

/// A dry run goes on where it cannot learn what is stored.
fn known(stored: Result<Stored, CommandFailure>, dry_run: bool) -> Result<Option<Stored>, CommandFailure> {
    match (stored, dry_run) {
        (Err(failure), true) => {
            note(&format!("what would change is not known: {failure}"));
            Ok(None)
        }
        (stored, _) => stored.map(Some),
    }
}

fn finish(args: &ImportArgs, plan: &Plan, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    Report { plan, dry_run: args.dry_run }.print(args.place.server.json, out)?;
    Ok(if plan.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The name of the file and its bytes.
fn read(file: &str) -> Result<(String, Vec<u8>), CommandFailure> {
    let mut text = Vec::new();
    let (name, read) = match file {
        "-" => ("crontab".into(), std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut text)),
        path => {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            (name, fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text)))
        }
    };
    read.map_err(|error| CommandFailure::failed(format!("cannot read {file:?}: {error}; name another file")))?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(CommandFailure::failed(format!("{file:?} is longer than {MOST_BYTES} bytes; divide it"))),
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

/// Deletes the stored jobs that are not among `names`, which are keys of `stored`.
fn prune(client: &Client, dry_run: bool, plan: &mut Plan, mut stored: Stored, names: &BTreeSet<String>) {
    let has_errors = plan.has_errors();
    stored.retain(|key, _| !names.contains(key));
    for job in stored.values() {
        let text = |field: &str| job[field].as_str().unwrap_or_default();
        let mut row = Row::deleted(job.as_object().unwrap_or(&Map::new()), plan.of_crontab);
        if has_errors {
            row.status = "kept";
            row.reason = Some("nothing is pruned while parts of the file are errors".into());
        } else if !dry_run {
            let call = Call::delete(format!("/v1/jobs/{}", text("name"))).with("namespace", text("namespace"));
            if let Err(failure) = client.call(call) {
                row.status = "error";
                row.reason = Some(failure.sentence);
            }
        }
        plan.rows.push(row);
    }
}
