//! The rows that this process wrote last and holds, so that a start and a finish need not read them.
//!
//! A row at a version has one content. So a row that was written and acknowledged here is known while it stays at that version. The guard
//! of the next write confirms it. An answer without a write would not be confirmed: then the store refuses
//! ([`UnreadRows::are_written`]) and repeats the call with reading. Only acknowledged rows are kept. Settling never uses the cache.
//!
//! Versions repeat only where the database lost commits. Noticing that clears the cache. Until then the guard compares the
//! session that holds the row as well (`mysql/write/update.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use carillon_domain::firing::JobState;
use carillon_domain::id::JobId;
use carillon_domain::mechanism::{Mechanism, enabled as uses};
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::time::Timestamp;

use crate::cache::two_gen_map::TwoGenMap;
use crate::tables::Write;

/// Room for all rows that the node holds, and for rows of answers that are in flight.
#[derive(Debug)]
pub(crate) struct RowCache(TwoGenMap<JobId, Arc<JobState>>);

impl RowCache {
    /// For a node that holds at most so many firings.
    pub fn of(held: usize) -> Self {
        Self(TwoGenMap::of(held))
    }

    /// The job's row that carries the run, if it is known at the version that the caller saw. The row of a deleted job is read: the
    /// guard of its deletion compares no session.
    pub fn get(&self, at: &RunRef) -> Option<&Arc<JobState>> {
        let RowKey::Job(id) = at.row else { return None };
        let row = self.0.get(&id)?;
        let carries = row.phase.held().is_some_and(|held| held.run == at.run);
        (row.version == at.version && carries && !row.deleted && uses(Mechanism::RowCache)).then_some(row)
    }

    /// Takes in a committed row.
    fn committed(&mut self, row: Arc<JobState>) {
        if row.phase.held().is_some() {
            self.0.put(row.id, row);
        } else {
            self.forget(row.id);
        }
    }

    fn forget(&mut self, id: JobId) {
        self.0.remove(&id);
    }

    /// See [`TwoGenMap::forget_lost`].
    pub fn forget_lost(&mut self, losses_until: Option<Timestamp>) {
        self.0.forget_lost(losses_until);
    }
}

/// The rows that one transaction uses without reading, and those that it writes.
#[derive(Debug, Default)]
pub(crate) struct UnreadRows {
    rows: BTreeSet<JobId>,
    written: Vec<Arc<JobState>>,
}

impl UnreadRows {
    /// The transaction uses a row that it did not read.
    pub fn take(&mut self, id: JobId) {
        self.rows.insert(id);
    }

    /// Whether every row that was not read is going to be written, as the guard of the write confirms it. Answers that write nothing,
    /// such as *early*, need rows that were read.
    pub fn are_written(&self, writes: &[Write<JobState>]) -> bool {
        let written: BTreeSet<JobId> = writes.iter().filter_map(|write| Some(write.before.as_ref()?.id)).collect();
        self.rows.is_subset(&written)
    }

    /// The rows as they are once the transaction has committed.
    pub fn wrote(&mut self, writes: Vec<Write<JobState>>) {
        self.written.extend(writes.into_iter().filter_map(|write| write.after));
    }

    /// Keeps acknowledged rows. All others are forgotten: the outcome may be unknown, or a row has moved on and it is not known
    /// which.
    pub fn end(&mut self, held: &mut RowCache, acknowledged: bool) {
        for id in std::mem::take(&mut self.rows) {
            held.forget(id);
        }
        for row in self.written.drain(..) {
            if acknowledged {
                held.committed(row);
            } else {
                held.forget(row.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::firing::{Firing, Held, Phase};
    use carillon_domain::id::{RunId, SessionId};

    use super::*;

    const RUN: fn(u64) -> RunId = |n| RunId::drawn(SessionId::from_random(1), n);

    fn state(id: u64, version: u64) -> JobState {
        let at = Timestamp::from_ms(7);
        let (firing, run, session) = (Firing::regular(at), RUN(id), SessionId::from_random(1));
        JobState {
            id: JobId(id),
            version,
            generation: 1,
            anchor_at: at,
            cursor: at,
            phase: Phase::Prepared(Held { firing, run, session, started_at: None, fencing_token: 0 }),
            armed: None,
            manual: None,
            last_manual_at: None,
            catch_up_until: None,
            pause: None,
            cancel: None,
            deleted: false,
            last_end: None,
        }
    }

    fn row(id: u64, version: u64) -> Arc<JobState> {
        Arc::new(state(id, version))
    }

    fn at(id: u64, run: u64, version: u64) -> RunRef {
        RunRef { row: RowKey::Job(JobId(id)), run: RUN(run), version }
    }

    #[test]
    fn a_row_is_known_at_its_version_under_its_run_while_it_is_held() {
        let mut rows = RowCache::of(1);
        rows.committed(row(1, 5));
        assert_eq!(rows.get(&at(1, 1, 5)), Some(&row(1, 5)));
        assert_eq!([rows.get(&at(1, 1, 4)), rows.get(&at(1, 1, 6)), rows.get(&at(1, 2, 5))], [None; 3]);
        rows.committed(Arc::new(JobState { phase: Phase::Idle, ..state(1, 6) }));
        assert_eq!([rows.get(&at(1, 1, 5)), rows.get(&at(1, 1, 6))], [None; 2]);
    }

    #[test]
    fn what_is_held_is_bounded_and_forgotten_when_commits_are_lost() {
        const HALF: usize = 100;
        let mut rows = RowCache::of(HALF);
        for id in 0..3 * HALF as u64 {
            rows.committed(row(id, 1));
        }
        assert!(rows.0.len() <= 2 * HALF);
        let last = 3 * HALF as u64 - 1;
        assert_eq!([rows.get(&at(0, 0, 1)).is_some(), rows.get(&at(last, last, 1)).is_some()], [false, true]);
        rows.forget_lost(None);
        assert!(rows.get(&at(last, last, 1)).is_some());
        rows.forget_lost(Some(Timestamp::from_ms(1)));
        assert!(rows.get(&at(last, last, 1)).is_none());
    }
}
