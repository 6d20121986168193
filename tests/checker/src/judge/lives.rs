//! The lines of all runs, compared with each other: nothing starts twice, early, or while another runs.

use std::collections::BTreeMap;

use super::{Case, Firing};
use crate::finding::{Finding, Kind};
use crate::plan::{Job, Overlap};
use crate::record::Record;
use crate::time::show;
use crate::witness::Life;

/// Everything that is wrong with the lives alone, and with the attempts that they are.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for life in &case.evidence.lives {
        if life.starts != 1 {
            let what = format!("{} for {} has {} starts", life.run, show(life.due_us), life.starts);
            findings.push(Finding::new(Kind::TwoProcesses, &life.job, what));
        }
        let last = case.life_of[&*life.run];
        if last.token != life.token && !case.may_come_again(life) {
            let what = format!("{} for {} with tokens {} and {}", life.run, show(life.due_us), life.token, last.token);
            findings.push(Finding::new(Kind::TwoProcesses, &life.job, what));
        }
        if life.first_us < life.due_us && !case.evidence.clock_moved(life.first_us) {
            let what = format!("{} started at {} for {}", life.run, show(life.first_us), show(life.due_us));
            findings.push(Finding::new(Kind::Early, &life.job, what));
        }
    }
    findings.extend(started_twice(case));
    findings.extend(attempts(case));
    for (name, lives) in case.lives_by_job() {
        let Some(job) = case.evidence.job(name) else { continue };
        if job.overlap == Overlap::Allow {
            // Different firings may live side by side; one firing may not.
            let mut by_firing: BTreeMap<(i64, bool), Vec<&Life>> = BTreeMap::new();
            for life in lives {
                by_firing.entry((life.due_us, is_manual(case, life))).or_default().push(life);
            }
            findings.extend(by_firing.values().flat_map(|of_due| overlaps(job, of_due)));
        } else {
            findings.extend(overlaps(job, &lives));
            findings.extend(tokens(job, &lives));
        }
    }
    findings
}

/// Whether a person asked for it. Its due time may be, to the millisecond, one of the schedule.
fn is_manual(case: &Case, life: &Life) -> bool {
    case.record_of.get(&*life.run).is_some_and(|record| record.is_manual())
}

fn started_twice(case: &Case) -> Vec<Finding> {
    let mut first: BTreeMap<(Firing, u64), &Life> = BTreeMap::new();
    let mut findings = Vec::new();
    for life in &case.evidence.lives {
        let firing = (&*life.job, life.due_us, is_manual(case, life));
        let Some(other) = first.insert((firing, life.attempt), life) else { continue };
        // Two processes of one run have been found already.
        if other.run == life.run || case.may_come_again(life) || case.may_come_again(other) {
            continue;
        }
        let what = format!("{}, attempt {}: {} and {}", show(life.due_us), life.attempt, other.run, life.run);
        findings.push(Finding::new(Kind::StartedTwice, &life.job, what));
    }
    findings
}

/// Each attempt must be asked for by how the one before it ended. The record of that end may have gone with lost commits.
fn attempts(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((name, due_us, _), records) in &case.attempts {
        let Some(job) = case.evidence.job(name) else { continue };
        let mut before: Option<&Record> = None;
        for record in records.iter().filter(|record| record.attempt > 1 || !record.is_skipped()) {
            let is_next = before.is_some_and(|before| before.attempt + 1 == record.attempt);
            let is_asked_for = before.is_none_or(|before| asks_for_another(job, before))
                && (is_next || case.evidence.forgot_attempts_before(record));
            if record.attempt > 1 && !is_asked_for {
                let ended = before.map_or("no attempt", |before| &before.status);
                let what = format!("{}: attempt {} ({}) after {ended}", show(*due_us), record.attempt, record.id);
                findings.push(Finding::new(Kind::AttemptNotAllowed, name, what));
            }
            before = Some(record);
        }
    }
    findings
}

fn asks_for_another(job: &Job, before: &Record) -> bool {
    match &*before.status {
        "failed" | "timed_out" => before.attempt < job.max_attempts,
        "lost" => job.rerun,
        _ => false,
    }
}

fn overlaps(job: &Job, lives: &[&Life]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut longest: Option<&Life> = None;
    for life in lives {
        if let Some(other) = longest.filter(|other| life.first_us <= other.last_us) {
            let what = format!(
                "{} began at {} while {} lived, until {} at least",
                life.run,
                show(life.first_us),
                other.run,
                show(other.last_us)
            );
            findings.push(Finding::new(Kind::Overlap, &job.name, what));
        }
        longest = longest.filter(|other| other.last_us > life.last_us).or(Some(life));
    }
    findings
}

fn tokens(job: &Job, lives: &[&Life]) -> Vec<Finding> {
    let back = lives.windows(2).filter(|pair| pair[1].token <= pair[0].token);
    back.map(|pair| {
        let what = format!("{} has {} after {} had {}", pair[1].run, pair[1].token, pair[0].run, pair[0].token);
        Finding::new(Kind::TokenWentBack, &job.name, what)
    })
    .collect()
}
