//! `next` and `explain`: when a schedule is due, in times and in words. No server is asked.

mod answer;
mod stream;
mod wall;

use carillon_domain::schedule::ScheduleError;
use carillon_domain::time::Timestamp;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use self::answer::ScheduleAnswer;
pub(super) use self::answer::{Question, now};
use super::args::time;
use super::failure::CommandFailure;
use super::out::{Out, note};
use super::table::printable;

/// The most due times that are computed for one schedule.
const MOST_TIMES: u64 = 10_000;

/// Arguments of `next`.
#[derive(Debug, Args)]
#[command(after_help = STREAM_HELP)]
pub struct NextArgs {
    /// The schedule.
    #[command(flatten)]
    pub ask: AskArgs,
    /// How many due times
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=MOST_TIMES))]
    pub count: u64,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = STREAM_HELP)]
pub struct ExplainArgs {
    /// The schedule.
    #[command(flatten)]
    pub ask: AskArgs,
    /// How many due times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=MOST_TIMES))]
    pub count: u64,
}

/// The schedule of both commands.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// Five fields, six with seconds first, or a descriptor such as @daily; `-` reads JSON objects from standard input
    pub schedule: String,
    /// Only due times later than this (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub after: Option<Timestamp>,
    /// The time zone of the schedule, such as Europe/Berlin [default: the schedule's CRON_TZ=, or else UTC]
    #[arg(long, value_name = "TZ")]
    pub timezone: Option<String>,
    /// The text that `H` hashes: NAMESPACE/NAME of the job
    #[arg(long, value_name = "KEY", default_value = "")]
    pub key: String,
    /// The rule for times that a change of the clock swallows
    #[arg(long, value_enum, default_value_t = GapArg::After)]
    pub dst_gap: GapArg,
    /// At which of two equal times of day to be due
    #[arg(long, value_enum, default_value_t = OverlapArg::First)]
    pub dst_overlap: OverlapArg,
    /// Answer with a JSON object
    #[arg(long)]
    pub json: bool,
}

const STREAM_HELP: &str = "\
With `-` as the schedule, every line of standard input is a JSON object with \"schedule\" and, where they differ from the
options, \"timezone\", \"after\", \"count\", \"key\", \"dst\": {\"gap\", \"overlap\"}. The same object comes back with
\"next\", or with \"error\". Without \"count\", an object that has a \"next\" already gets as many times as it holds.";

/// As [`carillon_domain::schedule::Gap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GapArg {
    /// Due once, at the first instant after the gap.
    After,
    /// Not due.
    Skip,
}

/// As [`carillon_domain::schedule::Overlap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverlapArg {
    /// Only at the first.
    First,
    /// At both.
    Both,
}

/// `carillon next`.
pub fn next(args: &NextArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let question = Question::of(&args.ask, args.count);
    if args.ask.schedule == "-" {
        return stream::answer_lines(&question, false, out);
    }
    let answer = question.answer().map_err(refused)?;
    if args.ask.json {
        return out.json(&json!({
            "schedule": question.schedule,
            "timezone": answer.timezone,
            "after": question.after.to_rfc3339_short(),
            "next": answer.texts(),
        }));
    }
    for due in &answer.next {
        if out.is_closed() {
            break;
        }
        out.line(&due.to_rfc3339_short())?;
    }
    tell_the_end(&question, &answer);
    Ok(())
}

/// `carillon explain`.
pub fn explain(args: &ExplainArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let question = Question::of(&args.ask, args.count);
    if args.ask.schedule == "-" {
        return stream::answer_lines(&question, true, out);
    }
    if args.ask.json {
        return out.json(&explained(&question)?);
    }
    let answer = question.answer().map_err(refused)?;
    out.line(&printable(&answer.description))?;
    if !answer.next.is_empty() {
        out.line("")?;
        out.bytes(wall::table(&answer).text().as_bytes())?;
    }
    tell_the_end(&question, &answer);
    Ok(())
}

/// A schedule in words and its due times, as JSON.
pub(super) fn explained(question: &Question) -> Result<Value, CommandFailure> {
    let answer = question.answer().map_err(refused)?;
    Ok(json!({
        "schedule": question.schedule,
        "timezone": answer.timezone,
        "after": question.after.to_rfc3339_short(),
        "description": answer.description,
        "next": answer.texts(),
    }))
}

fn tell_the_end(question: &Question, answer: &ScheduleAnswer) {
    if answer.next.is_empty() {
        note(&format!("there is no due time after {}", question.after.to_rfc3339_short()));
    }
}

/// The domain's sentence, which begins with the part at fault.
fn refused(error: ScheduleError) -> CommandFailure {
    CommandFailure::usage(error.to_string())
}
