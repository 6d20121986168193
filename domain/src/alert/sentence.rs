//! The sentences of notices: what, when, why and what to do, in words that can be read aloud.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Offset, TimeZone};
use chrono_tz::Tz;

use crate::duration::spoken;
use crate::explain::words::clause;
use crate::run::{DueRange, Reason, RunRecord, Status};
use crate::time::Timestamp;

use super::expect::{Because, Broken};
use super::fact::{Ended, JobSubject, Part, Trouble};
use super::incident::{Class, Telling};
use super::notice::{Notice, State};
use super::when::When;

/// The advice of a notice about something that is over.
pub const NOTHING_TO_DO: &str = "Nothing is to be done.";
/// The advice of a message that stands for many.
pub const AFTER_STORM: &str = "See the page for each of them; one cause may be behind them all.";

/// A time as people of a zone say it, such as `02:00:07 UTC on 24 November 2026`.
pub fn time(zone: &str, at: Timestamp) -> String {
    let wall = wall(zone, at);
    format!("{} {} on {}", clock(at, &wall), tz(zone).name(), wall.format("%-d %B %Y"))
}

/// A time in a sentence that told `other` before: its date and zone go without saying on the same day.
fn near(zone: &str, at: Timestamp, other: Timestamp) -> String {
    let wall_time = wall(zone, at);
    let same_day = wall_time.date_naive() == wall(zone, other).date_naive();
    if same_day { clock(at, &wall_time) } else { time(zone, at) }
}

fn tz(zone: &str) -> Tz {
    zone.parse().unwrap_or(Tz::UTC)
}

fn wall(zone: &str, at: Timestamp) -> DateTime<FixedOffset> {
    let utc = at.naive();
    tz(zone).offset_from_utc_datetime(&utc).fix().from_utc_datetime(&utc)
}

fn clock(at: Timestamp, wall: &DateTime<FixedOffset>) -> String {
    wall.format(if at.as_ms() % 60_000 == 0 { "%H:%M" } else { "%H:%M:%S" }).to_string()
}

/// The words of a run that ended badly, or of due times that did not run.
pub fn of_ended(job: &JobSubject, ended: &Ended, when: When) -> Telling {
    let record = &ended.record;
    let (name, at) = (name(job), |at| time(&job.zone, at));
    let attempt = if record.attempt > 1 { format!(" It was attempt {}.", record.attempt) } else { String::new() };
    let (sentence, then) = match when {
        When::Skipped => (did_not_run(job, record), after_skip(job, record)),
        When::Lost => {
            let why = record.reason.as_ref().map_or_else(|| "its node lost it".to_owned(), reason);
            let which = record.started_at.map_or_else(
                || format!("Nobody knows whether {name} ran for its due time of {}", at(record.due_at)),
                |started_at| format!("Nobody knows how the run of {name} ended that started at {}", at(started_at)),
            );
            (format!("{which}: {why}."), "Look whether its work was done before you run it again.".to_owned())
        }
        When::TimedOut => {
            let after = took(record).map(|took| format!(" after {took}")).unwrap_or_default();
            let sentence = format!(
                "{} was ended at {}, because its timeout passed{after}.",
                first_up(&name),
                at(record.finished_at)
            );
            (
                sentence + &attempt,
                format!("{} If its work needs longer, give it a longer timeout.", read_output(record)),
            )
        }
        When::Output => {
            let sentence = format!("{} wrote output; its run ended at {}.", first_up(&name), at(record.finished_at));
            (sentence, read_output(record))
        }
        _ if !ended.ran() => {
            let why = record.reason.as_ref().map_or_else(|| "no reason is known".to_owned(), reason);
            let sentence = format!("{} could not be started at {}: {why}.", first_up(&name), at(record.finished_at));
            (sentence + &attempt, "Look at its definition and its executor, then run it again.".to_owned())
        }
        _ => {
            let took = took(record).map(|took| format!(" after {took}")).unwrap_or_default();
            let sentence =
                format!("{} failed at {}: {}{took}.", first_up(&name), at(record.finished_at), cause(record));
            (sentence + &attempt, read_output(record))
        }
    };
    let run = (record.status != Status::Skipped).then_some(record.id);
    Telling { when, run, due_at: Some(record.due_at), sentence, then, has_output: ended.has_output }
}

/// The words of a broken expectation.
pub fn of_broken(job: &JobSubject, broken: &Broken) -> Telling {
    let Broken { when, due, limit, because, run } = broken;
    let (name, at) = (first_up(&name(job)), |at| near(&job.zone, at, due.last));
    let verb = if *when == When::LateStart { "start" } else { "succeed" };
    let due_at = due.last;
    let why = match because {
        Because::NotStarted => "no node started it".to_owned(),
        Because::Paused(pause) => {
            let until = pause.until.map(|until| format!(" until {}", at(until))).unwrap_or_default();
            let reason = pause.reason.as_ref().map(|reason| format!(" ({})", clause(reason))).unwrap_or_default();
            format!("the job has been paused since {}{until}{reason}", at(pause.since))
        }
        Because::NotRun(why) => reason(why),
        Because::StartedLate(started) => {
            format!("it started at {}, {} late", at(*started), spoken(started.since(due_at)))
        }
        Because::StillRuns(started) => format!("it has been running since {}", at(*started)),
        Because::SucceededLate(ended) => format!("it succeeded at {}", at(*ended)),
        Because::Ended(status, ended) => format!("its run ended at {} as {}", at(*ended), status.as_str()),
    };
    let sentence = match due.count {
        1 => format!("{name}, due at {}, did not {verb} by {}: {why}.", time(&job.zone, due_at), at(*limit)),
        count => format!(
            "{name} did not {verb} in time for {count} due times in a row, from {} to {}. The reason of the last one: {why}.",
            time(&job.zone, due.first),
            near(&job.zone, due_at, due.first)
        ),
    };
    let then = match because {
        Because::NotStarted => format!(
            "Look whether a node runs that has the executor {} and a free place (carillon cluster).",
            job.executor
        ),
        Because::Paused(_) | Because::NotRun(Reason::Paused) => "Resume the job when it may run again.".to_owned(),
        Because::NotRun(_) => "Look at the due times before it, and run it now if its work is still wanted.".to_owned(),
        Because::StartedLate(_) => "Look whether the nodes have too few free places.".to_owned(),
        Because::StillRuns(_) => "Look at its output, and cancel the run if it hangs.".to_owned(),
        Because::SucceededLate(_) => "Look why it took longer than usual.".to_owned(),
        Because::Ended(..) => "Read the output of its run.".to_owned(),
    };
    Telling { when: *when, run: *run, due_at: Some(due_at), sentence, then, has_output: false }
}

/// The words of a trouble of the cluster.
pub fn of_trouble(part: &Part, trouble: &Trouble, now: Timestamp) -> Telling {
    let at = |at| time("UTC", at);
    let node = part.node.as_ref().map_or_else(|| "a node".to_owned(), |node| format!("node {node}"));
    let (sentence, then) = match trouble {
        Trouble::NodeLost { last_heard_at, runs } => {
            let held = match runs {
                0 => "It held no runs.".to_owned(),
                1 => "It held 1 run.".to_owned(),
                runs => format!("It held {runs} runs."),
            };
            let sentence =
                format!("{} went silent: its last heartbeat was at {}. {held}", first_up(&node), at(*last_heard_at));
            (sentence, "Look at that machine; other nodes do its work meanwhile.")
        }
        Trouble::CommitsLost(window) => (
            format!(
                "The database went back in time: commits between {} and {} may be lost, and scheduling is suspended.",
                at(window.from_at),
                near("UTC", window.until_at, window.from_at)
            ),
            "Look at the database, and accept the loss when it is right again; until then nothing starts.",
        ),
        Trouble::ClockDrift { drift_ms } => {
            let by = spoken(Duration::from_millis(drift_ms.unsigned_abs()));
            let side = if drift_ms.is_negative() { "behind" } else { "ahead of" };
            (
                format!("The clock of {node} is {by} {side} the database's."),
                "Look whether that machine's clock is kept by a time service.",
            )
        }
        Trouble::DatabaseAway { from, until } => (
            format!(
                "{} had no database from {} to {}, for {}.",
                first_up(&node),
                at(*from),
                near("UTC", *until, *from),
                spoken(until.since(*from))
            ),
            "It is back. Look at the database's log and at the network between them.",
        ),
        Trouble::DiskFull { path, free } => (
            format!("The disk of {} on {node} is nearly full: {} MB are free.", clause(path), free / 1_000_000),
            "Make room, or give the node a larger disk.",
        ),
        Trouble::PluginRefused { file, why } => (
            format!("{} does not load the plugin {}: {}.", first_up(&node), clause(file), clause(why)),
            "Replace the file; jobs of its executor do not start on that node.",
        ),
        Trouble::CertificateExpires { file, ends_at } => (
            format!(
                "The certificate {} of {node} ends at {}, {}.",
                clause(file),
                at(*ends_at),
                if *ends_at > now { format!("in {}", days(ends_at.since(now))) } else { "which has passed".to_owned() }
            ),
            "Put a new certificate in its place; the node reads it without a restart.",
        ),
    };
    Telling { when: trouble.when(), run: None, due_at: None, sentence, then: then.to_owned(), has_output: false }
}

/// The words of a trouble's end.
pub fn of_over(part: &Part, when: When) -> String {
    let place = first_up(&part.to_string());
    match when {
        When::NodeLost => format!("{place} is back."),
        When::CommitsLost => "The loss of commits was accepted, and scheduling goes on.".to_owned(),
        When::ClockDrift => format!("The clock of {part} agrees with the database's again."),
        When::DiskFull => format!("There is room again on the disk of {part}."),
        When::PluginRefused => format!("The plugin {part} is loaded again, or was taken away."),
        When::CertificateExpires => format!("The certificate {part} was renewed."),
        _ => format!("{place} is in order again."),
    }
}

/// The words of a job whose trouble is over.
pub fn of_recovery(job: &JobSubject, class: Class, at: Timestamp) -> String {
    let (name, at) = (first_up(&name(job)), time(&job.zone, at));
    match class {
        Class::Skipped => format!("{name} ran again at {at}."),
        Class::LateStart => format!("{name} started in time for its due time of {at}."),
        Class::LateFinish => format!("{name} succeeded in time for its due time of {at}."),
        _ => format!("{name} succeeded at {at}."),
    }
}

/// A recovery: `words` and how long the trouble was.
pub(super) fn recovered(words: &str, class: Class, count: u64, since: Timestamp, zone: &str) -> String {
    let since = time(zone, since);
    match noun(class, count) {
        Some(noun) => format!("{words} Before that came {count} {noun}, the first at {since}."),
        None => format!("{words} The trouble began at {since}."),
    }
}

/// The second sentence of a fact: which one in a row it is.
pub(super) fn in_a_row(class: Class, count: u64) -> String {
    noun(class, 1).map_or_else(String::new, |noun| format!(" It is the {} {noun} in a row.", ordinal(count)))
}

/// The second sentence where a trouble is told again.
pub(super) fn goes_on(class: Class, count: u64, since: Timestamp, zone: &str) -> String {
    let since = time(zone, since);
    match noun(class, count) {
        None => format!(" This has been so since {since}."),
        Some(noun) => format!(" It has not recovered: {count} {noun} in a row since {since}."),
    }
}

/// A message that stands for many; `told` if others of that minute went by themselves.
pub(super) fn of_storm(route: &str, told: bool, folded: &BTreeMap<(When, State), u64>, names: &[String]) -> String {
    let all: u64 = folded.values().sum();
    let kinds: Vec<String> = folded
        .iter()
        .map(|((when, state), count)| {
            let over = if *state == State::Recovered { " that recovered" } else { "" };
            format!("{count} {}{over}", when.as_str())
        })
        .collect();
    let further = if told { "further " } else { "" };
    let more = if all > names.len() as u64 { " and more" } else { "" };
    let (kinds, names) = (kinds.join(", "), names.join(", "));
    format!("Route {route} had {all} {further}notices within a minute: {kinds}. They are about {names}{more}.")
}

/// The subject of a notice as a storm lists it.
pub(super) fn name_of(notice: &Notice) -> String {
    match (&notice.namespace, &notice.job, &notice.part) {
        (Some(namespace), Some(job), _) => format!("{namespace}/{job}"),
        (_, _, Some(part)) => part.clone(),
        _ => "the cluster".to_owned(),
    }
}

/// A test of a route.
pub(super) fn of_test(route: &str, at: Timestamp) -> String {
    format!("This is a test of route {route}, made at {}. Nothing is wrong.", time("UTC", at))
}

fn name(job: &JobSubject) -> String {
    format!("job {}/{}", job.namespace, job.name)
}

fn first_up(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn did_not_run(job: &JobSubject, record: &RunRecord) -> String {
    let (name, at) = (first_up(&name(job)), |at| time(&job.zone, at));
    let why = record.reason.as_ref().map_or_else(|| "no reason is known".to_owned(), reason);
    let DueRange { count, first, last } =
        DueRange { count: record.count, first: record.first_due_at, last: record.due_at };
    match count {
        0 | 1 => format!("{name} did not run at {}: {why}.", at(last)),
        _ => format!(
            "{name} did not run for {count} due times, from {} to {}: {why}.",
            at(first),
            near(&job.zone, last, first)
        ),
    }
}

fn after_skip(job: &JobSubject, record: &RunRecord) -> String {
    match record.reason {
        Some(Reason::Overlap) => "If that happens often, let it come up less often, or choose another overlap policy.",
        Some(Reason::Misfire) => {
            "Look whether enough nodes run (carillon cluster), and run it now if its work is still wanted."
        }
        Some(Reason::Paused) => "Run it now if the work of that time is still wanted.",
        _ => return format!("Ask for more with: carillon why {} --namespace {}.", job.name, job.namespace),
    }
    .to_owned()
}

fn read_output(record: &RunRecord) -> String {
    format!("Read its output: carillon run output {}.", record.id)
}

/// The end of a run as a part of a sentence.
fn cause(record: &RunRecord) -> String {
    match (&record.reason, record.exit_code, record.signal) {
        (Some(why), ..) => reason(why),
        (None, Some(code), _) => format!("exit code {code}"),
        (None, None, Some(signal)) => format!("signal {signal}"),
        (None, None, None) => "its executor says no more".to_owned(),
    }
}

fn took(record: &RunRecord) -> Option<String> {
    record.started_at.map(|started_at| spoken(record.finished_at.since(started_at)))
}

/// A reason as a part of a sentence.
fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Overlap => "the previous run was still alive",
        Reason::Misfire => "no node started it in time, and its misfire policy does not run it",
        Reason::Paused => "the job was paused",
        Reason::Updated => "it got a new definition before it started",
        Reason::Deleted => "it was deleted before it started",
        Reason::Replaced => "a newer firing took its place",
        Reason::Cancelled => "a person cancelled it",
        Reason::SessionEnded => "the session of its node ended while it ran",
        Reason::CommitsLost => "the database went back in time and forgot it",
        Reason::Said(text) => return clause(text),
    }
    .to_owned()
}

const fn noun(class: Class, count: u64) -> Option<&'static str> {
    Some(match (class, count) {
        (Class::Outcome, 1) => "failure",
        (Class::Outcome, _) => "failures",
        (Class::Skipped, 1) => "due time that did not run",
        (Class::Skipped, _) => "due times that did not run",
        (Class::LateStart, 1) => "late start",
        (Class::LateStart, _) => "late starts",
        (Class::LateFinish, 1) => "late end",
        (Class::LateFinish, _) => "late ends",
        _ => return None,
    })
}

fn ordinal(count: u64) -> String {
    let ending = match (count % 100, count % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{count}{ending}")
}

/// A length of time in whole days, or in smaller units below two of them.
fn days(time: Duration) -> String {
    match time.as_secs() / 86_400 {
        0 | 1 => spoken(time),
        days => format!("{days} days"),
    }
}
