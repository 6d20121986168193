//! The orders for the scheduler: the jobs, and the requests of people.

mod json;

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Record;
use crate::time::SECOND_US;

/// The policy for a firing that falls due while the job's previous run lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// It is skipped.
    Skip,
    /// It waits.
    Delay,
    /// It takes the other's place.
    Replace,
    /// Both run.
    Allow,
}

/// When a job comes due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// At `anchor_us` + n * `period_us` + each of `phases_us`, which ascend and stay below the period.
    Every {
        /// Where it counts from.
        anchor_us: i64,
        /// How often; more than 0.
        period_us: i64,
        /// Within a period.
        phases_us: Vec<i64>,
    },
    /// At these times, ascending.
    At(Vec<i64>),
}

impl Schedule {
    /// The due times from `from_us` to `until_us`, both inclusive.
    pub fn due(&self, from_us: i64, until_us: i64) -> BTreeSet<i64> {
        match self {
            Schedule::At(times) => times.iter().copied().filter(|at| (from_us..=until_us).contains(at)).collect(),
            Schedule::Every { anchor_us, period_us, phases_us } => {
                let mut due = BTreeSet::new();
                let mut base = anchor_us + (from_us - anchor_us).div_euclid(*period_us) * period_us;
                while base <= until_us {
                    due.extend(
                        phases_us.iter().map(|phase| base + phase).filter(|at| (from_us..=until_us).contains(at)),
                    );
                    base += period_us;
                }
                due
            }
        }
    }
}

/// A job as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// When it comes due.
    pub schedule: Schedule,
    /// Every due time from here on must be accounted for.
    pub from_us: i64,
    /// Up to here, inclusive. It is not due before or after.
    pub until_us: i64,
    /// The policy for overlaps.
    pub overlap: Overlap,
    /// How often a firing that fails is attempted; at least 1.
    pub max_attempts: u64,
    /// Whether a run that was lost runs again.
    pub rerun: bool,
}

/// A request of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// No firing of the schedule starts until a resume.
    Pause,
    /// The end of a pause.
    Resume,
    /// A new definition with the same timing.
    Update,
    /// A run now.
    Trigger,
    /// The end of a run.
    Cancel,
    /// The end of the job: it is not due any more.
    Delete,
}

/// Something that a person asked for, and what was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Whose job it was.
    pub job: String,
    /// The request.
    pub deed: Deed,
    /// The run that it was about: that was to be cancelled, or whose id a trigger answered.
    pub run: Option<String>,
    /// When it was asked for.
    pub asked_us: i64,
    /// When the answer was there; `None` when there was none, and nobody knows whether it was done.
    pub answered_us: Option<i64>,
    /// The HTTP status of the answer.
    pub status: u64,
}

impl Act {
    /// Whether it was done for sure.
    pub fn done(&self) -> bool {
        self.answered_us.is_some() && (200..300).contains(&self.status)
    }

    /// Whether it may have been done: it was not refused.
    pub fn may_be_done(&self) -> bool {
        self.done() || self.answered_us.is_none() || self.status >= 500
    }
}

/// All that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The requests of people, in order.
    pub acts: Vec<Act>,
}

impl Plan {
    /// When a job may have been deleted first; `None` where nobody asked for it, or all were refused.
    pub fn deleted_from_us(&self, job: &str) -> Option<i64> {
        let of_job = self.acts.iter().filter(|act| act.job == job && act.deed == Deed::Delete && act.may_be_done());
        of_job.map(|act| act.asked_us).min()
    }

    /// Jobs that come due each `period_us`, as far as their records reach. A due time that is missing before the first or after the
    /// last of them cannot be found this way.
    pub fn seen(records: &[Record], period_us: i64) -> Self {
        let mut spans: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for record in records.iter().filter(|record| !record.is_manual()) {
            let (from, until) = spans.entry(&record.job).or_insert((record.first_due_us, record.due_us));
            (*from, *until) = ((*from).min(record.first_due_us), (*until).max(record.due_us));
        }
        let every = |anchor_us| Schedule::Every { anchor_us, period_us, phases_us: vec![0] };
        let jobs = spans.into_iter().map(|(name, (from_us, until_us))| Job {
            schedule: every(from_us),
            ..Job::every(name, 1, 0, (from_us, until_us))
        });
        Self { jobs: jobs.collect(), acts: Vec::new() }
    }
}

impl Job {
    /// A job that comes due each `every_s` seconds from `anchor_us` on, may not overlap and is attempted once.
    pub fn every(name: &str, every_s: i64, anchor_us: i64, (from_us, until_us): (i64, i64)) -> Self {
        let schedule = Schedule::Every { anchor_us, period_us: every_s * SECOND_US, phases_us: vec![0] };
        Self {
            name: name.to_owned(),
            schedule,
            from_us,
            until_us,
            overlap: Overlap::Skip,
            max_attempts: 1,
            rerun: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn due_times_count_from_the_anchor_and_stay_within_the_bounds() {
        let every = Schedule::Every { anchor_us: 250, period_us: 1_000, phases_us: vec![0, 700] };
        assert_eq!(every.due(1_250, 3_250), BTreeSet::from([1_250, 1_950, 2_250, 2_950, 3_250]));
        assert_eq!(every.due(1_251, 1_949), BTreeSet::new());
        assert_eq!(every.due(-1_000, 0), BTreeSet::from([-750, -50]));
        assert_eq!(Schedule::At(vec![5, 9]).due(6, 9), BTreeSet::from([9]));
    }

    #[test]
    fn a_plan_survives_json() {
        let job = Job { overlap: Overlap::Replace, rerun: true, ..Job::every("a", 2, 7, (8, 9)) };
        let once = Job { schedule: Schedule::At(vec![3]), ..job.clone() };
        let run = Some("r".to_owned());
        let act = Act { job: "a".into(), deed: Deed::Cancel, run, asked_us: 1, answered_us: None, status: 0 };
        let plan = Plan { jobs: vec![job, once], acts: vec![act] };
        assert_eq!(Plan::from_json(&plan.to_json()), Ok(plan));
        assert!(Plan::from_json(&json!({"jobs": [{}], "acts": []})).is_err());
    }
}
