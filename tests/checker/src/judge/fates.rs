//! Each due time is in exactly one record, and its last attempt says what became of it.

use std::collections::{BTreeMap, BTreeSet};

use super::{BLUR_US, Case};
use crate::finding::{Finding, Kind};
use crate::plan::Job;
use crate::record::Record;
use crate::time::show;

/// The fate of due times that a person has taken away with their job.
const DELETED: &str = "deleted with the job";

/// How many due times met which fate, and what is wrong with the records of them.
pub fn account(case: &Case) -> (BTreeMap<String, u64>, Vec<Finding>) {
    let (mut fates, mut findings) = (BTreeMap::new(), Vec::new());
    let mut by_job: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in case.evidence.records.iter().filter(|record| !record.is_manual()) {
        by_job.entry(&record.job).or_default().push(record);
    }
    for job in &case.evidence.plan.jobs {
        let records = by_job.get(&*job.name).map_or(&[][..], Vec::as_slice);
        of_job(case, job, records, (&mut fates, &mut findings));
    }
    for record in case.evidence.records.iter().filter(|record| !record.is_settled()) {
        let what = format!("{} for {} is still {}", record.id, show(record.due_us), record.status);
        findings.push(Finding::new(Kind::Unsettled, &record.job, what));
    }
    (fates, findings)
}

fn of_job(
    case: &Case,
    job: &Job,
    records: &[&Record],
    (fates, findings): (&mut BTreeMap<String, u64>, &mut Vec<Finding>),
) {
    // A person who changes a job after a loss has what its row forgot recorded as skipped, before its run is written back.
    let changed = |record: &Record| record.is_skipped() && ["updated", "paused", "deleted"].contains(&&*record.reason);
    let forgotten = |at: i64, both: [&Record; 2]| case.evidence.commits_lost(at) && both.into_iter().any(changed);
    let due = job.schedule.due(job.from_us, job.until_us);
    let mut covered: BTreeMap<i64, &Record> = BTreeMap::new();
    let mut last: BTreeMap<i64, &Record> = BTreeMap::new();
    for record in records {
        let mut found = |kind, what: &str| {
            let stretch = format!("{} to {}", show(record.first_due_us), show(record.due_us));
            findings.push(Finding::new(kind, &job.name, format!("{} {what}: {stretch}", record.id)));
        };
        for edge in BTreeSet::from([record.first_due_us, record.due_us]) {
            if !due.contains(&edge) {
                found(Kind::NotDue, &format!("is about {}", show(edge)));
            }
        }
        let newest = last.entry(record.due_us).or_insert(record);
        if record.attempt > newest.attempt {
            *newest = record;
        }
        if record.attempt > 1 {
            continue;
        }
        let within: Vec<i64> =
            due.range(record.first_due_us..=record.due_us.max(record.first_due_us)).copied().collect();
        if within.len() as u64 != record.count {
            found(Kind::WrongCount, &format!("stands for {} due times, there are {}", record.count, within.len()));
        }
        for at in within {
            if let Some(other) = covered.insert(at, record).filter(|other| !forgotten(at, [record, other])) {
                found(Kind::RecordedTwice, &format!("({}) and {} ({})", record.status, other.id, other.status));
            }
        }
    }
    let deleted_from = case.evidence.plan.deleted_from_us(&job.name).map(|asked_us| asked_us - BLUR_US);
    for at in due {
        let by_later = || last.get(&at).filter(|record| case.evidence.forgot_attempts_before(record));
        let Some(record) = covered.get(&at).or_else(by_later) else {
            // It is recorded as skipped if it came due before the deletion, which may be any time after it was asked for.
            if deleted_from.is_some_and(|from_us| at >= from_us) {
                *fates.entry(DELETED.to_owned()).or_default() += 1;
                continue;
            }
            findings.push(Finding::new(Kind::SilentMiss, &job.name, format!("nothing is known of {}", show(at))));
            *fates.entry("unknown".to_owned()).or_default() += 1;
            continue;
        };
        *fates.entry(fate(last.get(&at).unwrap_or(record))).or_default() += 1;
    }
}

fn fate(record: &Record) -> String {
    if record.is_skipped() { format!("skipped: {}", record.reason) } else { record.status.clone() }
}
