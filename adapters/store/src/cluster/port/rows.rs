//! Statements about jobs and their runs in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::run::RunRecord;
use carillon_domain::store::Definition;
use carillon_domain::time::Timestamp;

use crate::tables::Write;
use crate::{AuditEntry, ClaimRequest, JobKey, Me, Output, StoreResult};

/// A row of a job; one that this binary cannot read is an error of its own.
pub type StateRead = (JobId, StoreResult<JobState>);

/// Which rows of jobs.
#[derive(Debug, Clone, Copy)]
pub enum StateQuery<'a> {
    /// Those with these ids.
    Ids(&'a [JobId]),
    /// The one that carries a run.
    HeldRun(RunId),
    /// The one in which a manual run waits under its id.
    WaitingRun(RunId),
    /// Those that a session holds, in the order of their ids, up to a number.
    HeldBy(SessionId, usize),
    /// Those that carry a run, or in which one waits under its id: of these jobs, or of all.
    Live(Option<&'a [JobId]>),
    /// Those whose own run executes.
    Executing,
}

/// Which concurrent runs.
#[derive(Debug, Clone, Copy)]
pub enum ConcurrentQuery<'a> {
    /// Those with these keys.
    Keys(&'a [FiringKey]),
    /// The one that carries a run.
    HeldRun(RunId),
    /// The one in which a run waits.
    WaitingRun(RunId),
    /// Those that a session holds, up to a number.
    HeldBy(SessionId, usize),
    /// Those that a claim may take, in the order of their due times.
    Due(&'a ClaimRequest),
    /// All.
    All,
    /// Those of these jobs.
    OfJobs(&'a [JobId]),
}

/// Reads of jobs and concurrent runs.
pub trait ReadRows {
    /// Rows of jobs.
    fn states(&mut self, query: StateQuery<'_>) -> impl Future<Output = StoreResult<Vec<StateRead>>> + Send;

    /// Definitions; one that this binary cannot read is an error of its own.
    fn definitions(
        &mut self,
        ids: &[JobId],
    ) -> impl Future<Output = StoreResult<BTreeMap<JobId, StoreResult<Arc<Definition>>>>> + Send;

    /// The ids of living jobs, in the order asked for.
    fn ids_by_name(&mut self, keys: &[JobKey]) -> impl Future<Output = StoreResult<Vec<Option<JobId>>>> + Send;

    /// The ids that a name has had, deleted jobs included.
    fn ids_ever_named(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send;

    /// The first rows that fall due, at least `of_each` of each partition of a claim, if there are. Each has its claim time in
    /// milliseconds, id and partition; they ascend.
    fn first_due(
        &mut self,
        request: &ClaimRequest,
        of_each: usize,
    ) -> impl Future<Output = StoreResult<Vec<(i64, JobId, u16)>>> + Send;

    /// Concurrent runs.
    fn concurrent_runs(
        &mut self,
        query: ConcurrentQuery<'_>,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentRun>>> + Send;

    /// The params that were given for manual runs, in the order asked for.
    fn run_params(&mut self, firings: &[FiringKey]) -> impl Future<Output = StoreResult<Vec<Option<Arc<str>>>>> + Send;

    /// The highest version of a deleted row; 0 if there was none.
    fn highest_version(&mut self) -> impl Future<Output = StoreResult<u64>> + Send;
}

/// A start by one statement that commits by itself.
#[derive(Debug)]
pub struct SingleStart<'a> {
    /// Who starts.
    pub me: Me,
    /// The rows as they were and as they are to be. Each is updated.
    pub writes: &'a [Write<JobState>],
    /// The database must show at least this time, if it tells the time.
    pub not_before: Option<Timestamp>,
    /// The end of the newest loss window, as it was read last.
    pub losses_until: Option<Timestamp>,
}

/// Writes of jobs, concurrent runs and history. Each answers how many rows matched; the caller compares.
pub trait WriteRows {
    /// Inserts history; answers how many records were there already.
    fn insert_records(&mut self, records: &[RunRecord]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Which of these records are stored.
    fn stored_records(&mut self, records: &[RunRecord]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send;

    /// Inserts outputs; one that is there stays.
    fn insert_outputs(&mut self, outputs: &[(RunId, Arc<Output>)]) -> impl Future<Output = StoreResult<()>> + Send;

    /// Updates the rows of jobs that are still as they were read, in the order of their ids.
    fn update_states(&mut self, writes: &[Write<JobState>]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Deletes the rows of jobs that are still as they were read.
    fn delete_states(&mut self, writes: &[Write<JobState>]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Inserts rows of jobs.
    fn insert_states(
        &mut self,
        writes: &[Write<JobState>],
        partitions: u16,
    ) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Updates the concurrent runs that are still as they were read.
    fn update_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Deletes the concurrent runs that are still as they were read.
    fn delete_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Inserts concurrent runs.
    fn insert_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Inserts the params of manual runs whose rows were just written.
    fn insert_run_params(&mut self, params: &[(FiringKey, Arc<str>)]) -> impl Future<Output = StoreResult<()>> + Send;

    /// Raises the highest version of a deleted row.
    fn raise_highest_version(&mut self, version: u64) -> impl Future<Output = StoreResult<()>> + Send;

    /// Stores new definitions of jobs that are there.
    fn update_definitions(
        &mut self,
        definitions: &[(JobId, Arc<Definition>)],
    ) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Frees the names of deleted jobs.
    fn free_names(&mut self, jobs: &[JobId], now: Timestamp) -> impl Future<Output = StoreResult<()>> + Send;

    /// Stores definitions under ids that were never used; answers how many.
    fn insert_jobs(&mut self, jobs: &[Arc<Job>], now: Timestamp) -> impl Future<Output = StoreResult<u64>> + Send;

    /// Adds entries to the audit log, under ascending ids.
    fn insert_audit(&mut self, entries: &[AuditEntry]) -> impl Future<Output = StoreResult<()>> + Send;

    /// Starts rows, and commits. Only an acknowledged answer is believed.
    fn start_alone(&mut self, start: &SingleStart<'_>) -> impl Future<Output = StoreResult<u64>> + Send;
}
