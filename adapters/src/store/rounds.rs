//! Where forgetting goes on: each call looks at a bounded part of the history, and in time all parts have had their turn.

use std::sync::{Mutex, PoisonError};

use carillon_domain::time::Timestamp;

/// How many entries of an index are looked at for each row that may be deleted.
const LOOKED_AT_PER_ROW: usize = 40;

/// What is done with history that is too old or too much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purge {
    /// What ended before this is too old.
    pub before: Timestamp,
    /// A job with more records than this has too many.
    pub max_runs_per_job: u32,
    /// How many records may be deleted.
    pub limit: usize,
}

impl Purge {
    /// How many entries a call looks at, to see which jobs have too many: enough for one such job at least.
    pub const fn looked_at(&self) -> usize {
        self.max_runs_per_job as usize + self.limit.saturating_mul(LOOKED_AT_PER_ROW)
    }
}

/// Jobs of which a part of the history was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counted {
    /// Those with too many records.
    pub crowded: Vec<u64>,
    /// After which job the next part begins.
    pub next_after: u64,
}

impl Counted {
    /// From the records of each job, in the order of the jobs; where all entries that may be looked at were, there are more,
    /// and the last job may have more than were counted.
    pub fn of(jobs: &[(u64, usize)], purge: &Purge) -> Self {
        let is_crowded = |(job, records): &(u64, usize)| (*records > purge.max_runs_per_job as usize).then_some(*job);
        let counted: usize = jobs.iter().map(|(_, records)| records).sum();
        let next_after = match jobs {
            _ if counted < purge.looked_at() => 0,
            [.., (last, _)] if jobs.len() > 1 => last - 1,
            [.., (last, _)] => *last,
            [] => 0,
        };
        Self { crowded: jobs.iter().filter_map(is_crowded).collect(), next_after }
    }
}

/// Where each kind of look goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Places {
    /// After this record are the oldest: those before it are deleted, and the database may not have cleared them away yet.
    pub old_after: u64,
    /// After this job.
    pub crowded_after: u64,
    /// After this deleted job, in the order of deletion.
    pub deleted_after: (i64, u64),
}

/// The places of a store.
#[derive(Debug, Default)]
pub(super) struct Rounds(Mutex<Places>);

impl Rounds {
    pub fn places(&self) -> Places {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a call that deleted `purged` records of `purge.limit`: what it looked at is done unless there was too much.
    pub fn go_on(&self, purge: &Purge, purged: usize, after: Places) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *places = match purged < purge.limit {
            true => Places { old_after: 0, ..after },
            false => Places { crowded_after: places.crowded_after, ..after },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURGE: Purge = Purge { before: Timestamp::EPOCH, max_runs_per_job: 10, limit: 1 };

    #[test]
    fn parts_follow_each_other_and_begin_anew() {
        assert_eq!(PURGE.looked_at(), 50);
        for (jobs, crowded, next_after) in [
            (&[][..], &[][..], 0),
            (&[(3, 10), (4, 11), (9, 28)], &[4, 9], 0),
            (&[(3, 10), (4, 11), (9, 29)], &[4, 9], 8),
            (&[(3, 45), (9, 5)], &[3], 8),
            (&[(9, 50)], &[9], 9),
        ] {
            let counted = Counted { crowded: crowded.to_vec(), next_after };
            assert_eq!(Counted::of(jobs, &PURGE), counted, "{jobs:?}");
        }
    }

    #[test]
    fn what_had_too_much_is_looked_at_again() {
        let rounds = Rounds::default();
        let after = Places { old_after: 7, crowded_after: 8, deleted_after: (9, 1) };
        rounds.go_on(&PURGE, 1, after);
        assert_eq!(rounds.places(), Places { crowded_after: 0, ..after });
        rounds.go_on(&PURGE, 0, after);
        assert_eq!(rounds.places(), Places { old_after: 0, ..after });
    }
}
