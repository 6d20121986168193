//! Where a purge goes on: each call looks at a bounded part of the history, and in time every part has its turn.

use std::sync::{Mutex, PoisonError};

use carillon_domain::time::Timestamp;

/// How many entries of an index are looked at for each row that may be deleted.
const LOOKED_AT_PER_ROW: usize = 60;

/// The history to delete: too old, or too much.
#[derive(Debug, Clone, Copy)]
pub struct Purge {
    /// Records that ended before this are too old.
    pub before: Timestamp,
    /// A job with more records than this has too many.
    pub max_runs_per_job: u32,
    /// How many records may be deleted.
    pub limit: usize,
}

impl Purge {
    /// How many index entries a call looks at to find jobs with too many records. A large job is counted in as many calls as it
    /// takes.
    pub const fn looked_at(&self) -> usize {
        self.limit.saturating_mul(LOOKED_AT_PER_ROW)
    }
}

/// Records of a job in a part of the history, which is ordered by job and due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartOfJob {
    /// The job.
    pub job: u64,
    /// How many.
    pub records: usize,
    /// The due time of the last of them, in milliseconds.
    pub last_due_at: i64,
}

/// Where a part of the history ended, within a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgePosition {
    /// The job.
    pub job: u64,
    /// Up to this due time, in milliseconds, the job's records are counted.
    pub due_at: i64,
    /// How many they were. A part may end among records of one due time; those behind it are left out. So a job is found to have too many a
    /// little late, and never wrongly.
    pub counted: usize,
}

/// Jobs of which a part of the history was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    /// Those with too many records.
    pub crowded: Vec<u64>,
    /// Where the next part begins.
    pub next_after: PurgePosition,
}

impl Counted {
    /// The counts of the part behind `from`. If the part is full there may be more behind it; else the next part is the first
    /// again.
    pub fn of(parts: &[PartOfJob], purge: &Purge, from: PurgePosition) -> Self {
        let max = purge.max_runs_per_job as usize;
        let before = |job: u64| if job == from.job { from.counted } else { 0 };
        let has_too_many = |part: &PartOfJob| before(part.job) + part.records > max;
        let looked_at: usize = parts.iter().map(|part| part.records).sum();
        let next_after = match parts.last() {
            Some(last) if looked_at >= purge.looked_at() && has_too_many(last) => PurgePosition::behind(last.job),
            Some(last) if looked_at >= purge.looked_at() => {
                PurgePosition { job: last.job, due_at: last.last_due_at, counted: before(last.job) + last.records }
            }
            _ => PurgePosition::default(),
        };
        let crowded = parts.iter().filter(|part| has_too_many(part)).map(|part| part.job).collect();
        Self { crowded, next_after }
    }
}

impl PurgePosition {
    /// The job needs no further counting.
    const fn behind(job: u64) -> Self {
        Self { job, due_at: i64::MAX, counted: 0 }
    }
}

/// Where each kind of search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgePositions {
    /// The oldest records are after this one. Those before it are deleted, and the database may still be clearing them away.
    pub old_after: u64,
    /// After this record of the history as it is ordered by job.
    pub crowded_after: PurgePosition,
    /// After this deleted job, in the order of deletion.
    pub deleted_after: (i64, u64),
}

/// The places of a store.
#[derive(Debug, Default)]
pub struct PurgeCursors(Mutex<PurgePositions>);

impl PurgeCursors {
    /// Where the next call begins.
    pub fn places(&self) -> PurgePositions {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a call that deleted `purged` records of `purge.limit`: the part is done unless there was too much.
    pub fn go_on(&self, purge: &Purge, purged: usize, after: PurgePositions) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *places = match purged < purge.limit {
            true => PurgePositions { old_after: 0, ..after },
            false => PurgePositions { crowded_after: places.crowded_after, ..after },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURGE: Purge = Purge { before: Timestamp::EPOCH, max_runs_per_job: 10, limit: 1 };

    fn parts(parts: &[(u64, usize)]) -> Vec<PartOfJob> {
        parts.iter().map(|(job, records)| PartOfJob { job: *job, records: *records, last_due_at: 7 }).collect()
    }

    #[test]
    fn parts_follow_each_other_and_begin_anew() {
        assert_eq!(PURGE.looked_at(), 60);
        let within = |job, counted| PurgePosition { job, due_at: 7, counted };
        for (from, found, crowded, next_after) in [
            (PurgePosition::default(), &[][..], &[][..], PurgePosition::default()),
            (PurgePosition::default(), &[(3, 10), (4, 11), (9, 38)], &[4, 9], PurgePosition::default()),
            (PurgePosition::default(), &[(3, 51), (9, 9)], &[3], within(9, 9)),
            (PurgePosition::default(), &[(9, 60)], &[9], PurgePosition::behind(9)),
            (within(9, 9), &[(9, 1), (10, 2)], &[], PurgePosition::default()),
            (within(9, 9), &[(9, 2), (10, 2)], &[9], PurgePosition::default()),
            (within(9, 9), &[(10, 10)], &[], PurgePosition::default()),
            (within(9, 9), &[(9, 60)], &[9], PurgePosition::behind(9)),
        ] {
            let counted = Counted { crowded: crowded.to_vec(), next_after };
            assert_eq!(Counted::of(&parts(found), &PURGE, from), counted, "{from:?} {found:?}");
        }
    }

    #[test]
    fn a_job_with_more_than_a_part_is_counted_in_several() {
        let many = Purge { max_runs_per_job: 150, ..PURGE };
        let mut at = PurgePosition::default();
        for counted in [60, 120] {
            let part = Counted::of(&parts(&[(9, 60)]), &many, at);
            at = PurgePosition { job: 9, due_at: 7, counted };
            assert_eq!(part, Counted { crowded: vec![], next_after: at });
        }
        assert_eq!(Counted::of(&parts(&[(9, 31)]), &many, at).crowded, [9]);
    }

    #[test]
    fn what_had_too_much_is_looked_at_again() {
        let rounds = PurgeCursors::default();
        let after = PurgePositions { old_after: 7, crowded_after: PurgePosition::behind(8), deleted_after: (9, 1) };
        rounds.go_on(&PURGE, 1, after);
        assert_eq!(rounds.places(), PurgePositions { crowded_after: PurgePosition::default(), ..after });
        rounds.go_on(&PURGE, 0, after);
        assert_eq!(rounds.places(), PurgePositions { old_after: 0, ..after });
    }
}
