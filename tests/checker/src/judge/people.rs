//! The requests of people, and the answers to them.

use std::collections::BTreeMap;

use super::Case;
use crate::finding::{Finding, Kind};
use crate::plan::{Act, Deed};
use crate::time::{SECOND_US, show};
use crate::witness::Life;

/// How long a call of unknown outcome may still be on its way.
const STRAY_US: i64 = 60 * SECOND_US;

/// Every promise to people that was not kept.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut by_job: BTreeMap<&str, Vec<&Act>> = BTreeMap::new();
    for act in &case.evidence.plan.acts {
        by_job.entry(&act.job).or_default().push(act);
    }
    let mut findings = unasked(case, &by_job);
    for (job, acts) in &by_job {
        findings.extend(acts.iter().filter_map(|act| forgotten(case, act)));
        findings.extend(pauses(acts).into_iter().flat_map(|quiet| while_paused(case, job, quiet)));
        let deleted =
            acts.iter().filter(|act| act.deed == Deed::Delete && act.done()).filter_map(|act| act.answered_us);
        findings.extend(deleted.min().into_iter().flat_map(|from_us| after_deletion(case, job, from_us)));
    }
    findings
}

fn unasked(case: &Case, by_job: &BTreeMap<&str, Vec<&Act>>) -> Vec<Finding> {
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    for record in case.evidence.records.iter().filter(|record| record.is_manual() && record.attempt == 1) {
        *ran.entry(&record.job).or_default() += 1;
    }
    let asked = |job: &str| {
        let acts = by_job.get(job).map_or(&[][..], Vec::as_slice);
        acts.iter().filter(|act| act.deed == Deed::Trigger && act.may_be_done()).count() as u64
    };
    let more = ran.into_iter().filter(|(job, ran)| *ran > asked(job));
    more.map(|(job, ran)| {
        Finding::new(Kind::UnaskedRun, job, format!("{ran} manual runs; {} were asked for", asked(job)))
    })
    .collect()
}

fn forgotten(case: &Case, act: &Act) -> Option<Finding> {
    let run = act.run.as_deref().filter(|_| act.deed == Deed::Trigger && act.done())?;
    let known = case.record_of.contains_key(run) || case.evidence.commits_lost(act.answered_us?);
    (!known).then(|| Finding::new(Kind::ForgottenRun, &act.job, format!("{run}, asked for at {}", show(act.asked_us))))
}

/// From when to when the job was paused for certain.
fn pauses(acts: &[&Act]) -> Vec<(i64, i64)> {
    let resumes = || acts.iter().filter(|act| act.deed == Deed::Resume && act.may_be_done());
    let certain = |act: &&&Act| {
        let stray = |resume: &&Act| {
            !resume.done() && resume.asked_us < act.asked_us && resume.asked_us + STRAY_US > act.asked_us
        };
        act.deed == Deed::Pause && act.done() && !resumes().any(stray)
    };
    let mut pauses = Vec::new();
    for act in acts.iter().filter(certain) {
        let ends = resumes().map(|resume| resume.asked_us).filter(|asked| *asked > act.asked_us).min();
        pauses.push((act.answered_us.unwrap_or(i64::MAX), ends.unwrap_or(i64::MAX)));
    }
    pauses
}

/// The firings of the schedule that started between two times though they were not to, and when a commit of it was not lost.
fn started<'a>(case: &Case<'a>, job: &str, (from_us, until_us): (i64, i64)) -> Vec<&'a Life> {
    if case.evidence.commits_lost(from_us) {
        return Vec::new();
    }
    let lives = case.evidence.lives.iter();
    let of_job = lives.filter(|life| life.job == job && (from_us..until_us).contains(&life.first_us));
    // A start that the database had accepted before may need a moment to become a process.
    let began_then = |life: &&Life| {
        let record = case.record_of.get(&*life.run).filter(|record| !record.is_manual());
        record.is_some_and(|record| record.started_us.is_some_and(|at| at > from_us))
    };
    of_job.filter(began_then).filter(|life| !case.evidence.clock_moved(life.first_us)).collect()
}

fn while_paused(case: &Case, job: &str, quiet: (i64, i64)) -> Vec<Finding> {
    let told = |life: &Life| format!("{} at {}, paused since {}", life.run, show(life.first_us), show(quiet.0));
    started(case, job, quiet).into_iter().map(|life| Finding::new(Kind::StartedWhilePaused, job, told(life))).collect()
}

fn after_deletion(case: &Case, job: &str, from_us: i64) -> Vec<Finding> {
    let told = |life: &Life| format!("{} at {}, deleted at {}", life.run, show(life.first_us), show(from_us));
    let started = started(case, job, (from_us, i64::MAX)).into_iter();
    started.map(|life| Finding::new(Kind::StartedAfterDeletion, job, told(life))).collect()
}
