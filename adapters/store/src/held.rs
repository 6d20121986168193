//! The rows that this process holds, as it last wrote them: a start and a finish need not read them again.
//!
//! A row at a version has one content, so a row that was written and acknowledged here is known for as long as it is at that
//! version, and the guard of the next write says whether it is. What an operation answers without a write of the row would not
//! be guarded, so a store refuses to write until [`Known::are_written`], and it is done again with reading. What was not
//! acknowledged is not remembered; of an unknown outcome the row is forgotten. Settling and looking never ask here.
//!
//! Versions come twice only where the database lost commits. When that is noticed all is forgotten; before, the session that
//! holds the row is compared as well (see `mysql/update.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use carillon_domain::firing::JobState;
use carillon_domain::id::JobId;
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::time::Timestamp;

use super::recent::Recent;
use super::tables::Write;

/// There is room for all that the node holds, and for what was written last while answers are on their way.
#[derive(Debug)]
pub(crate) struct HeldRows(Recent<JobId, Arc<JobState>>);

impl HeldRows {
    /// Of a node that holds so many firings at the most.
    pub fn of(held: usize) -> Self {
        Self(Recent::of(held))
    }

    /// The job's row that carries the run, if it is known at the version at which the caller saw it. That of a deleted job is
    /// read: when its run ends it is deleted, and the guard of that compares no session.
    pub fn get(&self, at: &RunRef) -> Option<&Arc<JobState>> {
        let RowKey::Job(id) = at.row else { return None };
        let row = self.0.get(&id)?;
        let carries = row.phase.held().is_some_and(|held| held.run == at.run);
        (row.version == at.version && carries && !row.deleted).then_some(row)
    }

    /// Takes in what was committed.
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

    /// See [`Recent::forget_lost`].
    pub fn forget_lost(&mut self, losses_until: Option<Timestamp>) {
        self.0.forget_lost(losses_until);
    }
}

/// What one transaction knows without having read it, and what it writes.
#[derive(Debug, Default)]
pub(crate) struct Known {
    rows: BTreeSet<JobId>,
    written: Vec<Arc<JobState>>,
}

impl Known {
    /// A row is used that was not read.
    pub fn take(&mut self, id: JobId) {
        self.rows.insert(id);
    }

    /// Whether all that was not read is going to be written: the guard of the write is what confirms it. An answer that leaves
    /// a row as it is (it is early, it was withheld) is given by what is read.
    pub fn are_written(&self, writes: &[Write<JobState>]) -> bool {
        let written: BTreeSet<JobId> = writes.iter().filter_map(|write| Some(write.before.as_ref()?.id)).collect();
        self.rows.is_subset(&written)
    }

    /// So the rows are once the transaction is committed.
    pub fn wrote(&mut self, writes: Vec<Write<JobState>>) {
        self.written.extend(writes.into_iter().filter_map(|write| write.after));
    }

    /// Only what was acknowledged is known. Of what was not, nothing is: the outcome may be unknown, or a row has moved on,
    /// and it is not told which.
    pub fn end(&mut self, held: &mut HeldRows, acknowledged: bool) {
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
        let mut rows = HeldRows::of(1);
        rows.committed(row(1, 5));
        assert_eq!(rows.get(&at(1, 1, 5)), Some(&row(1, 5)));
        assert_eq!([rows.get(&at(1, 1, 4)), rows.get(&at(1, 1, 6)), rows.get(&at(1, 2, 5))], [None; 3]);
        rows.committed(Arc::new(JobState { phase: Phase::Idle, ..state(1, 6) }));
        assert_eq!([rows.get(&at(1, 1, 5)), rows.get(&at(1, 1, 6))], [None; 2]);
    }

    #[test]
    fn what_is_held_is_bounded_and_forgotten_when_commits_are_lost() {
        const HALF: usize = 100;
        let mut rows = HeldRows::of(HALF);
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
