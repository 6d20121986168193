//! The records of a run, compared with the lines that the run wrote itself.

use super::Case;
use crate::fault::Fault;
use crate::finding::{Finding, Kind};
use crate::plan::{Deed, Overlap};
use crate::record::Record;
use crate::time::{SECOND_US, show};
use crate::witness::Life;

/// The reason in the record of a run that was to begin, or lived, when the lease of its node was over.
const LEASE_OVER: &str = "the node did not renew its lease in time";
/// No lease of a chaos run is longer.
const LONGEST_LEASE_US: i64 = 15 * SECOND_US;

/// Everything in which records and lives differ.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for life in case.life_of.values() {
        if let Some((kind, what)) = of_life(case, life) {
            let what = format!("{} for {} {what}", life.run, show(life.due_us));
            findings.push(Finding::new(kind, &life.job, what));
        }
    }
    for record in &case.evidence.records {
        let life = case.life_of.get(&*record.id).copied();
        if let Some((kind, what)) = of_record(case, record, life) {
            let what = format!("{} for {} {what}", record.id, show(record.due_us));
            findings.push(Finding::new(kind, &record.job, what));
        }
    }
    findings
}

/// Who lived must be recorded as such.
fn of_life(case: &Case, life: &Life) -> Option<(Kind, String)> {
    let forgotten = case.evidence.commits_lost(life.first_us);
    let Some(record) = case.record_of.get(&*life.run) else {
        return (!forgotten).then(|| (Kind::NoRecord, "lived and has no record".to_owned()));
    };
    let same = (&record.job, record.due_us, record.attempt) == (&life.job, life.due_us, life.attempt);
    if !same {
        let what = format!("is recorded as attempt {} of {} for {}", record.attempt, record.job, show(record.due_us));
        return Some((Kind::OtherFiring, what));
    }
    let unstarted = record.started_us.is_none() || matches!(&*record.status, "skipped" | "waiting");
    (unstarted && !forgotten).then(|| {
        (
            Kind::RecordedAsUnstarted,
            format!("lived and is recorded as {} ({}), unstarted", record.status, record.reason),
        )
    })
}

/// The record of a run must say what it did, or be explained by a fault.
fn of_record(case: &Case, record: &Record, life: Option<&Life>) -> Option<(Kind, String)> {
    let announced = life.and_then(|life| life.end);
    match (&*record.status, record.exit_code) {
        ("succeeded" | "timed_out", _) | ("failed", Some(_)) if life.is_none() => {
            Some((Kind::NeverStarted, format!("is recorded as {} and never started", record.status)))
        }
        ("succeeded", _) if announced != Some(0) => {
            Some((Kind::OtherEnd, format!("is recorded as succeeded; it announced {announced:?}")))
        }
        ("failed", Some(code)) if announced != Some(code) => {
            Some((Kind::OtherEnd, format!("is recorded as failed with {code}; it announced {announced:?}")))
        }
        ("failed", None) if !run_killed(case, record, life) => {
            Some((Kind::UnexplainedFailure, format!("failed without an exit code: {}", record.reason)))
        }
        ("lost", _) if !loss_explained(case, record, life) => {
            Some((Kind::UnexplainedLoss, format!("on {:?} is lost: {}", record.node, record.reason)))
        }
        ("cancelled", _) if !was_cancelled(case, record) => {
            Some((Kind::UnaskedCancel, format!("was cancelled ({}), and nobody asked for it", record.reason)))
        }
        _ => None,
    }
}

/// When the run went on, from its own word if there is one.
fn span(record: &Record, life: Option<&Life>) -> (i64, i64) {
    let from = life.map(|life| life.first_us).or(record.started_us).unwrap_or(record.due_us);
    let until = record.finished_us.unwrap_or(from);
    (from, until.max(life.map_or(from, |life| life.last_us)))
}

fn run_killed(case: &Case, record: &Record, life: Option<&Life>) -> bool {
    let (from_us, until_us) = span(record, life);
    case.evidence.run_killed(record.node.as_deref(), from_us, until_us)
}

fn loss_explained(case: &Case, record: &Record, life: Option<&Life>) -> bool {
    let (from_us, until_us) = span(record, life);
    match record.session {
        Some(_) => {
            case.evidence.node_ended(record.node.as_deref(), from_us, until_us) || was_fenced_off(case, record, life)
        }
        // Nobody knows whether it started.
        None => case.evidence.faults.iter().any(|fault| fault.loses_commits && fault.from_us <= until_us),
    }
}

/// Its command did not begin, or was killed, as the lease was over. The node may have renewed it right after: for the keeper the clock comes
/// first. So the node goes on, and only such runs are lost.
fn was_fenced_off(case: &Case, record: &Record, life: Option<&Life>) -> bool {
    let until_us = record.finished_us.unwrap_or(record.due_us);
    let hinders = |fault: &Fault| {
        fault.node.as_ref().is_none_or(|node| record.node.as_ref() == Some(node))
            && fault.touches(until_us - LONGEST_LEASE_US, until_us, 0)
    };
    let has_ended = life.is_some_and(|life| life.end.is_some());
    !has_ended && record.reason == LEASE_OVER && case.evidence.faults.iter().any(hinders)
}

fn was_cancelled(case: &Case, record: &Record) -> bool {
    let by_newer = record.reason == "replaced"
        && case.evidence.job(&record.job).is_some_and(|job| job.overlap == Overlap::Replace);
    let mut acts = case.evidence.plan.acts.iter();
    by_newer || acts.any(|act| act.deed == Deed::Cancel && act.may_be_done() && act.run.as_ref() == Some(&record.id))
}
