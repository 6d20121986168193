//! Alerts against the records: each failure that a route asks for is told, nothing else is, and no end before its beginning.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use crate::alerts::{Alert, Counts};
use crate::finding::{Finding, Kind};
use crate::record::Record;

/// The statuses that the routes of a chaos run ask for.
const TOLD: [&str; 3] = ["failed", "timed_out", "lost"];

/// Everything about alerts that should not be.
pub fn check(case: &Case) -> Vec<Finding> {
    let alerts = &case.evidence.alerts;
    let mut findings = Vec::new();
    let mut content: BTreeMap<&str, &str> = BTreeMap::new();
    for heard in &alerts.heard {
        if *content.entry(&heard.id).or_insert(&heard.content) != heard.content {
            findings.push(found(case, Kind::AlertDiffers, heard, "was repeated with another content"));
        }
        if !has_reason(case, heard) {
            findings.push(found(case, Kind::AlertWithoutReason, heard, "tells of what no record tells"));
        }
    }
    findings.extend(ends_before_beginnings(case));
    for (route, job) in &alerts.routes {
        let of_job = case.evidence.records.iter().filter(|record| record.job == *job && must_be_told(case, record));
        let untold = of_job.filter(|record| !is_told(case, route, record));
        findings.extend(untold.map(|record| {
            let what = format!("{} is {} and {route} was not told", record.id, record.status);
            Finding::new(Kind::AlertLost, job, what)
        }));
    }
    findings
}

/// How many came out how.
pub fn count(case: &Case) -> Counts {
    let alerts = &case.evidence.alerts;
    let sent: BTreeSet<&str> = alerts.heard.iter().map(|heard| &*heard.id).collect();
    let waits = |id: &&str| !sent.contains(id);
    let on_their_way = alerts.deliveries.iter().filter(|one| is_under_way(&one.state)).map(|one| &*one.alert.id);
    Counts {
        sent: sent.len(),
        repeated: alerts.heard.len() - sent.len(),
        on_their_way: on_their_way.filter(waits).collect::<BTreeSet<_>>().len(),
    }
}

fn found(case: &Case, kind: Kind, alert: &Alert, what: &str) -> Finding {
    let job = case.evidence.alerts.routes.get(&alert.route).map_or("?", |job| job);
    let Alert { id, route, when, state, run, .. } = alert;
    Finding::new(kind, job, format!("{id} ({when}, {state}, {run:?}) to {route} {what}"))
}

/// An attempt of the firing that ran later has the last word.
fn is_tried_again(case: &Case, record: &Record) -> bool {
    let firing = (&*record.job, record.due_us, record.is_manual());
    let later = case.attempts.get(&firing).into_iter().flatten();
    later.into_iter().any(|other| other.attempt > record.attempt && other.started_us.is_some())
}

/// A failure that may be tried again is told later, if the attempt never comes.
fn must_be_told(case: &Case, record: &Record) -> bool {
    let most = case.evidence.job(&record.job).map_or(1, |job| job.max_attempts);
    let is_last = record.status == "lost" || record.attempt >= most;
    TOLD.contains(&&*record.status) && is_last
}

fn is_told(case: &Case, route: &str, record: &Record) -> bool {
    let alerts = &case.evidence.alerts;
    let tells =
        |alert: &Alert| alert.route == route && alert.state == "open" && alert.run.as_deref() == Some(&record.id);
    alerts.heard.iter().any(tells)
        || alerts.deliveries.iter().any(|one| is_under_way(&one.state) && tells(&one.alert))
        // One message for many names no run.
        || alerts.deliveries.iter().any(|one| one.alert.route == route && one.alert.run.is_none())
        || record.finished_us.is_some_and(|at_us| case.evidence.commits_lost(at_us))
}

fn is_under_way(state: &str) -> bool {
    matches!(state, "waiting" | "sending")
}

fn has_reason(case: &Case, alert: &Alert) -> bool {
    let Some(job) = case.evidence.alerts.routes.get(&alert.route) else { return false };
    let Some(run) = &alert.run else { return true };
    match case.record_of.get(&**run) {
        Some(record) if was_forgotten(case, alert, record) => record.job == *job,
        Some(record) if alert.state == "open" => {
            // A lost run is told at once, whether or not another attempt follows.
            let is_final = record.status == "lost" || !is_tried_again(case, record);
            record.job == *job && record.status == alert.when && is_final
        }
        Some(record) => record.job == *job && record.status == "succeeded",
        // The database forgot the run after it was told of.
        None => case.evidence.faults.iter().any(|fault| fault.loses_commits),
    }
}

/// The database lost the message with the end that it told; the run then ended in another way.
fn was_forgotten(case: &Case, alert: &Alert, record: &Record) -> bool {
    let evidence = case.evidence;
    let is_known = evidence.alerts.deliveries.iter().any(|one| one.alert.id == alert.id);
    let (from_us, until_us) = (record.due_us, record.finished_us.unwrap_or(record.due_us));
    !is_known && evidence.commits_lost_between(from_us, until_us)
}

/// In the order of the deliveries a recovery follows an alert of its route.
fn ends_before_beginnings(case: &Case) -> Vec<Finding> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut findings = Vec::new();
    for one in &case.evidence.alerts.deliveries {
        let alert = &one.alert;
        if !seen.insert(&alert.id) {
            continue;
        }
        match &*alert.state {
            "open" => _ = open.insert(&alert.route),
            "recovered" if !open.remove(&*alert.route) => {
                findings.push(found(case, Kind::RecoveryWithoutAlert, alert, "follows no alert"));
            }
            _ => {}
        }
    }
    findings
}
