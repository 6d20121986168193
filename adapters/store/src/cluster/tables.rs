//! A transaction as calls and views see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::RunRef;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::alerts::port::RunHead;
use crate::cluster::job_loader;
use crate::cluster::port::{
    ConcurrentQuery, Connection, Database, ReadForPeople, ReadRows, Sessions, StateQuery, WriteRows,
};
use crate::cluster::transaction::Transaction;
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::tables::{
    ConcurrentJob, GivenParams, JobRow, JobRows, RecordQuery, Recorded, SeenJob, Standing, Tables, WriteSet, seen_runs,
};
use crate::{
    AuditQuery, AuditRows, ClaimRequest, JobKey, JobQuery, NewSession, Output, RecordedLoss, RunView, SessionState,
    SessionView, StoreError, StoreResult,
};

impl<D: Database> Tables for Transaction<D> {
    type Alerts = D::Connection;

    fn alerts(&mut self) -> &mut D::Connection {
        &mut self.connection
    }

    fn alerts_to_write(&mut self) -> &mut D::Connection {
        self.wrote = true;
        &mut self.connection
    }

    fn now(&self) -> Timestamp {
        Transaction::now(self)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    async fn highest_version(&mut self) -> StoreResult<u64> {
        self.connection.highest_version().await
    }

    fn partitions(&self) -> u16 {
        self.shared.partitions
    }

    async fn lock_partitions(&mut self, partitions: &[u16]) -> StoreResult<()> {
        self.lock_partition_rows(partitions).await
    }

    async fn jobs_by_id(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<JobRow>>> {
        self.read_by_id(ids).await
    }

    async fn jobs_of_runs(&mut self, _ids: &[JobId], runs: &[RunRef]) -> StoreResult<Vec<Option<JobRow>>> {
        self.read_of_runs(runs).await
    }

    async fn jobs_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobRow>>> {
        self.read_by_key(keys).await
    }

    async fn seen_job(&mut self, key: &JobKey) -> StoreResult<Option<SeenJob>> {
        let (keys, committed) = (std::slice::from_ref(key), !self.wrote);
        let mut found = job_loader::read(&mut self.connection, &self.shared, keys, committed).await?;
        found.pop().unwrap_or(Ok(None))
    }

    async fn job_by_run(&mut self, run: RunId) -> StoreResult<Option<JobRow>> {
        self.read_by_run(run).await
    }

    async fn due_jobs(&mut self, request: &ClaimRequest) -> StoreResult<Vec<JobRow>> {
        self.read_due(request).await
    }

    async fn held_jobs(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<JobRow>> {
        self.read_rows(StateQuery::HeldBy(session, limit)).await
    }

    async fn job_page(&mut self, query: &JobQuery) -> StoreResult<JobRows> {
        let Self { connection, shared, .. } = self;
        let page = connection.job_page(query, shared.partitions, &|id, of| shared.definition(id, of)).await?;
        if !self.wrote {
            let mut known = self.shared.definitions();
            page.rows.iter().for_each(|seen| known.put(seen.row.state.id, seen.row.definition.clone()));
        }
        Ok(page)
    }

    async fn ids_of_name(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        self.connection.ids_ever_named(key).await
    }

    async fn concurrent_by_key(&mut self, keys: &[FiringKey]) -> StoreResult<Vec<Option<ConcurrentJob>>> {
        self.read_concurrent_by_key(keys).await
    }

    async fn concurrent_by_run(&mut self, run: RunId) -> StoreResult<Option<ConcurrentJob>> {
        self.read_concurrent_by_run(run).await
    }

    async fn due_concurrent(&mut self, request: &ClaimRequest) -> StoreResult<Vec<ConcurrentJob>> {
        if !self.concurrent_runs.may_be_claimed() || request.partitions.is_empty() || request.runs.is_empty() {
            return Ok(Vec::new());
        }
        self.read_concurrent(ConcurrentQuery::Due(request)).await
    }

    async fn held_concurrent(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<ConcurrentJob>> {
        self.read_concurrent(ConcurrentQuery::HeldBy(session, limit)).await
    }

    async fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<JobRow>> {
        if jobs.is_some_and(<[JobId]>::is_empty) {
            return Ok(Vec::new());
        }
        self.read_rows(StateQuery::Live(jobs)).await
    }

    async fn executing_jobs(&mut self) -> StoreResult<Vec<JobRow>> {
        self.read_readable(StateQuery::Executing).await
    }

    async fn live_concurrent(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<ConcurrentJob>> {
        let Some(jobs) = jobs else { return self.read_concurrent(ConcurrentQuery::All).await };
        // A start names a version that was written before this transaction began, and its write is guarded by it. A call that adds
        // a concurrent run writes the job's row as well. So the run was listed with the standing, or the guard fails.
        let some = self.concurrent_runs.of(jobs);
        if some.is_empty() {
            return Ok(Vec::new());
        }
        self.read_concurrent(ConcurrentQuery::OfJobs(&some)).await
    }

    async fn seen_run(&mut self, run: RunId) -> StoreResult<Option<(RunView, GivenParams)>> {
        self.connection.seen_run(run).await
    }

    async fn seen_runs(&mut self, query: &RecordQuery) -> StoreResult<Vec<RunView>> {
        match query.jobs.as_deref() {
            Some(jobs) => self.connection.seen_runs_of(jobs, query).await,
            None => seen_runs(self, query).await,
        }
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        self.connection.record(run).await
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        self.connection.records(query).await
    }

    async fn runs_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<Recorded>> {
        self.connection.runs_numbered(ask).await
    }

    async fn run_heads(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<RunHead>> {
        self.connection.run_heads(ask).await
    }

    async fn runs_with_output(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        if runs.is_empty() { Ok(Vec::new()) } else { self.connection.runs_with_output(runs).await }
    }

    async fn recorded_runs(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        if runs.is_empty() { Ok(Vec::new()) } else { self.connection.recorded_runs(runs).await }
    }

    async fn audit_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<AuditLine>> {
        self.connection.audit_numbered(ask).await
    }

    async fn last_records(&mut self, jobs: &[JobId]) -> StoreResult<BTreeMap<JobId, RunRecord>> {
        self.connection.last_records(jobs).await
    }

    async fn audit(&mut self, query: &AuditQuery) -> StoreResult<AuditRows> {
        self.connection.audit(query).await
    }

    async fn output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        self.connection.output(run).await
    }

    async fn run_params(&mut self, firings: &[FiringKey]) -> StoreResult<Vec<Option<Arc<str>>>> {
        self.connection.run_params(firings).await
    }

    async fn insert_session(&mut self, session: &NewSession) -> StoreResult<()> {
        self.wrote = true;
        let now = Transaction::now(self);
        self.connection.insert_session(session, now).await
    }

    async fn session_state(&mut self, session: SessionId) -> StoreResult<Option<SessionState>> {
        self.connection.session_state(session).await
    }

    async fn beat(&mut self, session: SessionId, seq: u64, state: SessionState) -> StoreResult<()> {
        self.wrote = true;
        let now = Transaction::now(self);
        self.connection.write_heartbeat(session, seq, state, now).await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> StoreResult<()> {
        self.wrote = true;
        self.connection.end_session(session, seen_seq).await
    }

    async fn note_written_back(&mut self, session: SessionId, until: Timestamp) -> StoreResult<()> {
        self.wrote = true;
        self.connection.note_written_back(session, until).await
    }

    async fn spend_session(&mut self, session: SessionId) -> StoreResult<()> {
        self.wrote = true;
        let now = Transaction::now(self);
        self.connection.spend_session(session, now).await
    }

    async fn standing(&mut self, session: SessionId) -> StoreResult<Standing> {
        self.read_standing(session).await
    }

    async fn spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        self.read_spent_seq(session).await
    }

    async fn last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        self.connection.last_spent_at().await
    }

    async fn note_window(&mut self, loss: &RecordedLoss) -> StoreResult<()> {
        self.confirm_loss(loss.session).await?;
        self.shared.forget_lost(Some(loss.window.until_at));
        self.wrote = true;
        self.connection.note_window(loss).await
    }

    async fn windows(&mut self, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
        self.connection.windows(accepted_since).await
    }

    async fn accept_windows(&mut self, until: Timestamp) -> StoreResult<bool> {
        self.wrote = true;
        let now = Transaction::now(self);
        self.connection.accept_windows(until, now).await
    }

    async fn sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        self.connection.sessions(with_counts).await
    }

    async fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> StoreResult<Vec<JobId>> {
        self.wrote = true;
        let now = Transaction::now(self);
        if self.connection.insert_jobs(jobs, now).await? != jobs.len() as u64 {
            return Err(self.connection.moved_on());
        }
        let keys: Vec<JobKey> = jobs.iter().map(|job| JobKey::of(job)).collect();
        let ids: Option<Vec<JobId>> = self.connection.ids_by_name(&keys).await?.into_iter().collect();
        ids.ok_or_else(|| StoreError::Permanent("a job that was just stored is not there".to_owned()))
    }

    async fn write(&mut self, changes: WriteSet) -> StoreResult<()> {
        self.write_all(changes).await
    }
}
