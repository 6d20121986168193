//! How late runs start.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::percentiles::Percentiles;
use crate::plan::Overlap;
use crate::record::Record;
use crate::time::SECOND_US;

/// How late firings of the schedule started that did not have to wait for another run. In milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    /// By the runs' own clocks.
    pub by_witness_ms: Percentiles,
    /// The same, of those that came due when no fault had struck for a while.
    pub calm_ms: Percentiles,
    /// As the scheduler told it, by its own clock.
    pub by_records_ms: Percentiles,
    /// Those that were late beyond their grace and were made good: by the runs' own clocks.
    pub made_good_ms: Percentiles,
}

/// After so long without a fault it counts as calm.
const CALM_AFTER_US: i64 = 30 * SECOND_US;

impl Lateness {
    pub(crate) fn of(evidence: &Evidence, record_of: &BTreeMap<&str, &Record>) -> Self {
        let (mut all, mut calm, mut told, mut made_good) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let waits =
            |job: &str| evidence.job(job).is_none_or(|job| matches!(job.overlap, Overlap::Delay | Overlap::Replace));
        let first_attempts = evidence.lives.iter().filter(|life| life.attempt == 1 && !waits(&life.job));
        for life in first_attempts {
            let Some(record) = record_of.get(&*life.run) else { continue };
            let late_ms = (life.first_us - life.due_us) / 1_000;
            match &*record.trigger {
                "schedule" => {
                    all.push(late_ms);
                    told.extend(record.lag_ms);
                    let struck = |from: i64, until: i64| (from..=until + CALM_AFTER_US).contains(&life.due_us);
                    if !evidence.faults.iter().any(|fault| struck(fault.from_us, fault.until_us)) {
                        calm.push(late_ms);
                    }
                }
                "misfire" => made_good.push(late_ms),
                _ => {}
            }
        }
        Self {
            by_witness_ms: all.into_iter().collect(),
            calm_ms: calm.into_iter().collect(),
            by_records_ms: told.into_iter().collect(),
            made_good_ms: made_good.into_iter().collect(),
        }
    }

    /// Each kind with its name.
    pub fn kinds(&self) -> [(&'static str, &Percentiles); 4] {
        [
            ("all, by the jobs' own clocks", &self.by_witness_ms),
            ("calm, by the jobs' own clocks", &self.calm_ms),
            ("all, as recorded", &self.by_records_ms),
            ("beyond the grace and made good", &self.made_good_ms),
        ]
    }
}
