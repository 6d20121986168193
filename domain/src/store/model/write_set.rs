//! Everything that one commit writes, as data.

use std::sync::Arc;

use super::{Definition, NewSession, RecordedLoss};
use crate::firing::{ConcurrentRun, FiringKey, JobState};
use crate::id::{JobId, RunId, SessionId};
use crate::run::{Output, RunRecord};
use crate::store::AuditEntry;
use crate::time::Timestamp;

use super::SessionState;

/// A row before and after. `before = None` inserts, `after = None` deletes; the write matches only the version in `before`.
/// Rows are shared, not copied: they are large, and a cache keeps them after the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Write<R> {
    /// The row as it was read.
    pub before: Option<Arc<R>>,
    /// The row as it is to be.
    pub after: Option<Arc<R>>,
    /// The definition of its job.
    pub definition: Arc<Definition>,
}

impl Write<JobState> {
    /// The version at which the job is deleted, or goes on as a deleted one; no start of it carries a higher token.
    pub fn deleted_version(&self) -> Option<u64> {
        match &self.after {
            None => self.before.as_ref().map(|before| before.version + 1),
            Some(after) => after.deleted.then_some(after.version),
        }
    }
}

/// A guarded write of a session's row. Where the guard does not match, nothing is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionWrite {
    /// Inserts a session.
    Register(NewSession),
    /// Writes a heartbeat, where the session is not ended and `seq` is newer.
    Beat {
        /// Which session.
        session: SessionId,
        /// The sequence.
        seq: u64,
        /// Live or draining.
        state: SessionState,
    },
    /// Ends a session whose heartbeat sequence is still `seen_seq`.
    End {
        /// Which session.
        session: SessionId,
        /// The sequence that was read last.
        seen_seq: u64,
    },
    /// Notes that a session has written back every run that it knows.
    WroteBack {
        /// Which session.
        session: SessionId,
        /// The end of the loss window for which it has.
        until: Timestamp,
    },
    /// Removes a session that holds nothing, and keeps its last sequence.
    Spend(SessionId),
}

/// Everything that one commit writes: all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteSet {
    /// Rows of jobs.
    pub jobs: Vec<Write<JobState>>,
    /// Concurrent runs.
    pub concurrent: Vec<Write<ConcurrentRun>>,
    /// New definitions of existing jobs.
    pub definitions: Vec<(JobId, Arc<Definition>)>,
    /// Jobs whose name is free from now on; the definition stays for their history.
    pub deleted: Vec<JobId>,
    /// History. A record whose id is stored already is the same fact.
    pub records: Vec<RunRecord>,
    /// Outputs of runs among `records`.
    pub outputs: Vec<(RunId, Arc<Output>)>,
    /// Params that a person gave for one manual run: JSON text, laid over the job's. All attempts of the firing use them.
    pub run_params: Vec<(FiringKey, Arc<str>)>,
    /// Sessions, written after the rows.
    pub sessions: Vec<SessionWrite>,
    /// A loss window to open, or to lay over the open one.
    pub loss: Option<RecordedLoss>,
    /// The audit log, written after the rows. So the ids of one job's entries ascend in the order of their commits.
    pub audit: Vec<AuditEntry>,
}

impl WriteSet {
    /// Whether it changes rows of jobs and nothing else.
    pub fn has_only_jobs(&self) -> bool {
        let Self { jobs: _, concurrent, definitions, deleted, records, outputs, run_params, sessions, loss, audit } =
            self;
        concurrent.is_empty()
            && definitions.is_empty()
            && deleted.is_empty()
            && records.is_empty()
            && outputs.is_empty()
            && run_params.is_empty()
            && sessions.is_empty()
            && loss.is_none()
            && audit.is_empty()
    }
}
