//! From the evidence to the verdict.

mod endings;
mod fates;
mod lives;
mod people;
mod skips;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::Evidence;
use crate::finding::{Finding, Kind};
use crate::lateness::Lateness;
use crate::record::Record;
use crate::takeover::takeovers;
use crate::time::SECOND_US;
use crate::verdict::Verdict;
use crate::witness::Life;

/// How far clocks of people and database may differ.
const BLUR_US: i64 = SECOND_US;

/// Which firing: the job, the due time, and whether a person asked for it.
type Firing<'a> = (&'a str, i64, bool);

/// The evidence, arranged so that things are found.
struct Case<'a> {
    evidence: &'a Evidence,
    record_of: BTreeMap<&'a str, &'a Record>,
    /// The last process of each run.
    life_of: BTreeMap<&'a str, &'a Life>,
    /// Records of single firings, by attempt.
    attempts: BTreeMap<Firing<'a>, Vec<&'a Record>>,
}

impl<'a> Case<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let mut attempts: BTreeMap<Firing, Vec<&Record>> = BTreeMap::new();
        for record in &evidence.records {
            attempts.entry((&record.job, record.due_us, record.is_manual())).or_default().push(record);
        }
        for of_firing in attempts.values_mut() {
            of_firing.sort_by_key(|record| record.attempt);
        }
        let mut life_of: BTreeMap<&str, &Life> = BTreeMap::new();
        for life in &evidence.lives {
            let last = life_of.entry(&life.run).or_insert(life);
            if life.first_us > last.first_us {
                *last = life;
            }
        }
        Self {
            evidence,
            record_of: evidence.records.iter().map(|record| (&*record.id, record)).collect(),
            life_of,
            attempts,
        }
    }

    /// Whether a start that was forgotten with lost commits may come again: the job asks for at least one.
    fn may_come_again(&self, life: &Life) -> bool {
        self.evidence.job(&life.job).is_some_and(|job| job.rerun) && self.evidence.commits_lost(life.last_us)
    }

    /// The lives of each job in the order of their starts.
    fn lives_by_job(&self) -> BTreeMap<&'a str, Vec<&'a Life>> {
        let mut by_job: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        for life in &self.evidence.lives {
            by_job.entry(&life.job).or_default().push(life);
        }
        for lives in by_job.values_mut() {
            lives.sort_by_key(|life| life.first_us);
        }
        by_job
    }
}

/// Judges.
pub fn judge(evidence: &Evidence) -> Verdict {
    let case = Case::of(evidence);
    let (fates, mut findings) = fates::account(&case);
    findings.extend(strangers(evidence));
    findings.extend(lives::check(&case));
    findings.extend(endings::check(&case));
    findings.extend(people::check(&case));
    findings.extend(skips::check(&case));
    findings.extend(told::check(&case));
    findings.sort_by_key(|finding| finding.kind);
    Verdict {
        due: fates.values().sum(),
        fates,
        starts: evidence.lives.len(),
        findings,
        alerts: told::count(&case),
        lateness: Lateness::of(evidence, &case.record_of),
        takeovers: takeovers(evidence, &case.life_of),
        faults: evidence.faults.iter().fold(BTreeMap::new(), |mut counts, fault| {
            *counts.entry(fault.class.clone()).or_default() += 1;
            counts
        }),
    }
}

/// Lines that cannot be read or belong to nothing.
fn strangers(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        evidence.torn.iter().map(|line| Finding::new(Kind::Torn, "?", format!("{line:?}"))).collect();
    let known: BTreeSet<&str> = evidence.plan.jobs.iter().map(|job| &*job.name).collect();
    let of_records = evidence.records.iter().map(|record| (&*record.job, &*record.id));
    let of_lives = evidence.lives.iter().map(|life| (&*life.job, &*life.run));
    let unknown = of_records.chain(of_lives).filter(|(job, _)| !known.contains(job));
    let runs: BTreeMap<&str, &str> = unknown.collect();
    findings.extend(runs.into_iter().map(|(job, run)| Finding::new(Kind::UnknownJob, job, run.to_owned())));
    findings
}
