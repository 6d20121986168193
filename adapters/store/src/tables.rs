//! The rows of one transaction, as calls and views read and write them.
//!
//! The calls and the views are generic over [`Tables`]. A database implements it, and the transaction around it. Methods take and
//! answer batches, so a distant server is asked once for each batch. Databases inside the process answer at once; [`at_once`] runs
//! calls for them.

use crate::StoreResult;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::RunRef;
use carillon_domain::run::{RunRecord, Status};
use carillon_domain::time::Timestamp;

pub use crate::views::jobs::{seen_job, seen_jobs};
pub use crate::views::runs::{seen_run, seen_runs};
pub use carillon_domain::store::{ConcurrentJob, JobRow, KnownSession, Standing, Write, WriteSet};

use super::alerts::port::{AlertRows, RunHead};
use super::feed::{AuditLine, JournalAsk, Numbered};
use super::{
    AuditQuery, AuditRows, ClaimRequest, JobCursor, JobKey, JobQuery, NewSession, Output, RecordedLoss, RunCursor,
    RunView, SessionState, SessionView,
};

/// The most that is kept of an output. Executors hand over far less.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// A job's row with the facts that people see.
#[derive(Debug, Clone)]
pub struct SeenJob {
    /// The row.
    pub row: JobRow,
    /// The name of the node that holds it.
    pub node: Option<String>,
    /// Its newest record.
    pub last_run: Option<RunRecord>,
}

/// Living jobs in the order asked for.
#[derive(Debug, Clone, Default)]
pub struct JobRows {
    /// The rows.
    pub rows: Vec<SeenJob>,
    /// Set where only the jobs up to this one were looked at.
    pub looked_until: Option<JobCursor>,
}

/// A row of history with the facts that people see.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The record.
    pub record: RunRecord,
    /// The name of its job.
    pub key: JobKey,
    /// The name of the node that ran it.
    pub node: Option<String>,
    /// Whether a part of the output is missing.
    pub output_truncated: bool,
}

/// The params that were given for a run alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenParams {
    /// They are read by another statement: [`Tables::run_params`].
    NotRead,
    /// They were read beside the run; `None` if there are none.
    Read(Option<Arc<str>>),
}

/// Which history.
#[derive(Debug, Clone)]
pub struct RecordQuery {
    /// Of these jobs; `None` for all.
    pub jobs: Option<Vec<JobId>>,
    /// Of jobs in this namespace.
    pub namespace: Option<String>,
    /// With this status.
    pub status: Option<Status>,
    /// Due at this time or later.
    pub since: Option<Timestamp>,
    /// Due before this time.
    pub until: Option<Timestamp>,
    /// Standing for this due time, alone or in a range.
    pub covering: Option<Timestamp>,
    /// Behind this record.
    pub after: Option<RunCursor>,
    /// At most so many.
    pub limit: usize,
}

impl RecordQuery {
    /// All history of these jobs, at most so many records.
    pub fn of(jobs: Vec<JobId>, limit: usize) -> Self {
        Self {
            jobs: Some(jobs),
            namespace: None,
            status: None,
            since: None,
            until: None,
            covering: None,
            after: None,
            limit,
        }
    }

    /// Whether runs that are not over may be among the answers.
    pub fn shows_living(&self) -> bool {
        matches!(self.status, None | Some(Status::Running))
    }

    /// Whether history may be.
    pub fn shows_history(&self) -> bool {
        self.status != Some(Status::Running)
    }
}

/// One transaction of a database. Lists answer in the order asked for, with `None` where there is no such row.
pub trait Tables {
    /// The rows of routes, facts, incidents and deliveries.
    type Alerts: AlertRows;

    /// Reads of those.
    fn alerts(&mut self) -> &mut Self::Alerts;
    /// Writes and locks of those.
    fn alerts_to_write(&mut self) -> &mut Self::Alerts {
        self.alerts()
    }

    /// The database's time, the same throughout the transaction.
    fn now(&self) -> Timestamp;
    /// The same in microseconds: where versions start.
    fn now_us(&self) -> u64;
    /// The highest version of a deleted row; 0 where none is kept. New versions start above it, so a clock that was set back takes no
    /// fencing token back.
    fn highest_version(&mut self) -> impl Future<Output = StoreResult<u64>> + Send {
        std::future::ready(Ok(0))
    }
    /// How many partitions there are.
    fn partitions(&self) -> u16;

    /// Takes the lock of each partition, ascending; a partition that has no lock row is an error.
    fn lock_partitions(&mut self, partitions: &[u16]) -> impl Future<Output = StoreResult<()>> + Send;

    /// Rows of jobs, deleted ones included.
    fn jobs_by_id(&mut self, ids: &[JobId]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send;
    /// The rows `ids` that carry `runs`, which the caller holds, in any order. A distant database may answer from its row cache, at the
    /// version that the caller saw. Then [`Self::write`] must write each of them: its guard confirms the row.
    fn jobs_of_runs(
        &mut self,
        ids: &[JobId],
        _runs: &[RunRef],
    ) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send {
        self.jobs_by_id(ids)
    }
    /// Living jobs only.
    fn jobs_by_key(&mut self, keys: &[JobKey]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send;
    /// A living job as people see it.
    fn seen_job(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Option<SeenJob>>> + Send;
    /// The job that holds the run, or where it waits as a manual one.
    fn job_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<JobRow>>> + Send;
    /// Rows that may be claimed, in the order of their due times.
    fn due_jobs(&mut self, request: &ClaimRequest) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send;
    /// Rows of jobs that a session holds.
    fn held_jobs(&mut self, session: SessionId, limit: usize) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send;
    /// Living jobs after `query.after`, up to `query.limit`.
    fn job_page(&mut self, query: &JobQuery) -> impl Future<Output = StoreResult<JobRows>> + Send;
    /// The numbers that a name has had, deleted jobs included.
    fn ids_of_name(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send;

    /// Concurrent runs.
    fn concurrent_by_key(
        &mut self,
        keys: &[FiringKey],
    ) -> impl Future<Output = StoreResult<Vec<Option<ConcurrentJob>>>> + Send;
    /// The concurrent run that carries a run, or in which it waits.
    fn concurrent_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<ConcurrentJob>>> + Send;
    /// Concurrent runs that may be claimed, in the order of their due times.
    fn due_concurrent(
        &mut self,
        request: &ClaimRequest,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send;
    /// Concurrent runs that a session holds.
    fn held_concurrent(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send;

    /// Rows of these jobs that hold a run, or in which one waits under an id.
    fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send;
    /// Rows of jobs whose own run executes.
    fn executing_jobs(&mut self) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send;
    /// Concurrent runs of these jobs, or of all.
    fn live_concurrent(
        &mut self,
        jobs: Option<&[JobId]>,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send;
    /// A run: held, waiting or recorded.
    fn seen_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<(RunView, GivenParams)>>> + Send;
    /// The living runs of the jobs of a query, whatever else it says, and the history that it asks for.
    fn seen_runs(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<RunView>>> + Send;
    /// One record of history.
    fn record(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Recorded>>> + Send;
    /// History, newest first.
    fn records(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<Recorded>>> + Send;
    /// History by its numbers.
    fn runs_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<Recorded>>> + Send;
    /// The same without what only a few rows are read for.
    fn run_heads(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<RunHead>>> + Send;
    /// Which of these runs have kept output that is not empty.
    fn runs_with_output(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send;
    /// Which of these runs have a record.
    fn recorded_runs(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send;
    /// The audit log by its numbers.
    fn audit_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<AuditLine>>> + Send;
    /// The newest record of each job that has one.
    fn last_records(&mut self, jobs: &[JobId]) -> impl Future<Output = StoreResult<BTreeMap<JobId, RunRecord>>> + Send;
    /// Entries of the audit log, newest first, up to `query.limit`.
    fn audit(&mut self, query: &AuditQuery) -> impl Future<Output = StoreResult<AuditRows>> + Send;
    /// The output of a run that ended.
    fn output(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Output>>> + Send;

    /// The params that were given for these firings, in the order asked for.
    fn run_params(&mut self, firings: &[FiringKey]) -> impl Future<Output = StoreResult<Vec<Option<Arc<str>>>>> + Send;

    /// Inserts a session.
    fn insert_session(&mut self, session: &NewSession) -> impl Future<Output = StoreResult<()>> + Send;
    /// The state of a session, if it is there.
    fn session_state(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<SessionState>>> + Send;
    /// In one statement, as every claim and every start asks for it. It clears the caches of rows that may be lost.
    fn standing(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Standing>> + Send;
    /// The last heartbeat sequence of a session that is over and holds nothing.
    fn spent_seq(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<u64>>> + Send;
    /// The newest end of a session that is over and remembered.
    fn last_spent_at(&mut self) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send;
    /// Opens a window; where one is open, it is extended.
    fn note_window(&mut self, window: &RecordedLoss) -> impl Future<Output = StoreResult<()>> + Send;
    /// The open window and those accepted since then, oldest first.
    fn windows(&mut self, accepted_since: Timestamp) -> impl Future<Output = StoreResult<Vec<RecordedLoss>>> + Send;
    /// Accepts the open window that ends then; answers whether there was one.
    fn accept_windows(&mut self, until: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send;
    /// Writes a heartbeat where the session is not ended and `seq` is newer.
    fn beat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Ends a session whose heartbeat sequence is still `seen_seq`.
    fn end_session(&mut self, session: SessionId, seen_seq: u64) -> impl Future<Output = StoreResult<()>> + Send;
    /// Notes that a session has written back every run that it knows. A statement that comes late takes nothing back.
    fn note_written_back(
        &mut self,
        session: SessionId,
        until: Timestamp,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Removes a session that is over and holds nothing, and keeps its last sequence.
    fn spend_session(&mut self, session: SessionId) -> impl Future<Output = StoreResult<()>> + Send;
    /// All sessions; how many rows each holds is counted only `with_counts`.
    fn sessions(&mut self, with_counts: bool) -> impl Future<Output = StoreResult<Vec<SessionView>>> + Send;

    /// Stores new definitions, each under a number that was never used.
    fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send;
    /// Writes everything or nothing; a row that is not at its version any more is an error.
    fn write(&mut self, changes: WriteSet) -> impl Future<Output = StoreResult<()>> + Send;
}

/// Runs an operation over tables that never make it wait.
pub fn at_once<F: Future>(operation: F) -> F::Output {
    let mut operation = pin!(operation);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = operation.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}
