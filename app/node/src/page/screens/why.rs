//! Why something ran or did not, as a short sentence about one record.

use carillon_domain::duration::spoken;
use carillon_domain::run::{Reason, RunRecord, Status, Trigger};
use carillon_store::RunStage;

use crate::page::screens::parts::grouped;
use crate::page::usual;

/// Why a run started.
const fn because(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Schedule => "on schedule",
        Trigger::Manual => "because somebody asked for it",
        Trigger::Misfire => "for a due time that was missed",
    }
}

/// A run in one sentence.
pub(crate) fn sentence(stage: &RunStage) -> String {
    match stage {
        RunStage::Waiting { trigger, session, .. } => match session {
            Some(_) => format!("It is prepared, {}, and starts at its due time.", because(*trigger)),
            None => format!("It waits to start, {}.", because(*trigger)),
        },
        RunStage::Running { held, cancelling } => {
            let attempt = match held.firing.attempt {
                1 => String::new(),
                attempt => format!(", as attempt {attempt}"),
            };
            let ending = if *cancelling { " It was asked to end." } else { "" };
            format!("It runs {}{attempt}.{ending}", because(held.firing.trigger))
        }
        RunStage::Recorded { record, .. } => recorded(record),
    }
}

/// A record in one sentence.
pub(crate) fn recorded(record: &RunRecord) -> String {
    let duration = usual::duration(record).map(|duration| format!(" after {}", spoken(duration))).unwrap_or_default();
    let why = because(record.trigger);
    match record.status {
        Status::Succeeded => format!("It ran {why} and succeeded{duration}."),
        Status::Failed => format!("It ran {why} and failed{duration}{}.", ending(record)),
        Status::TimedOut => format!("It ran {why} and was ended{duration}, because its timeout had passed."),
        Status::Cancelled if record.started_at.is_some() => format!("It was cancelled{duration}{}.", ending(record)),
        Status::Cancelled => format!("It was cancelled before it started{}.", ending(record)),
        Status::Lost => format!("It is lost{}: nobody knows how it ended.", ending(record)),
        Status::Skipped if record.count > 1 => {
            format!("{} due times did not run: {}.", grouped(record.count), skipped(record))
        }
        Status::Skipped => format!("It did not run: {}.", skipped(record)),
        Status::Running => "It runs.".to_owned(),
    }
}

/// Why a due time did not run, in a few words.
fn skipped(record: &RunRecord) -> String {
    match &record.reason {
        Some(Reason::Overlap) => "the previous run was still alive".to_owned(),
        Some(Reason::Misfire) => "no node started it in time".to_owned(),
        Some(Reason::Paused) => "the job was paused".to_owned(),
        Some(Reason::Updated) => "a new definition came before its start".to_owned(),
        Some(Reason::Deleted) => "the job was deleted before its start".to_owned(),
        Some(Reason::Replaced) => "a newer due time took its place".to_owned(),
        Some(Reason::Cancelled) => "somebody cancelled it".to_owned(),
        Some(other) => other.to_string(),
        None => "the reason was not recorded".to_owned(),
    }
}

fn ending(record: &RunRecord) -> String {
    match (&record.reason, record.exit_code, record.signal) {
        (Some(Reason::Said(text)), _, _) => format!(": {}", text.trim_end_matches('.')),
        (Some(Reason::Replaced), _, _) => ", because a newer due time took its place".to_owned(),
        (Some(Reason::Cancelled), _, _) => ", because somebody asked for it".to_owned(),
        (Some(Reason::SessionEnded), _, _) => ", because the session of its node ended while it ran".to_owned(),
        (Some(Reason::CommitsLost), _, _) => ", because the database lost the commits about it".to_owned(),
        (Some(other), _, _) => format!(": {other}"),
        (None, _, Some(signal)) => format!(" by signal {signal}"),
        (None, Some(code), None) => format!(" with exit code {code}"),
        (None, None, None) => String::new(),
    }
}
