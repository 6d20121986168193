//! MySQL behind the operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::RunRef;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::guarded::guarded;
use crate::mysql::encoding::rows::{self, CONCURRENT_ORDER};
use crate::mysql::read::select::limit_of;
use crate::mysql::transaction::{Transaction, list};
use crate::tables::{ConcurrentJob, JobRow, JobRows, RecordQuery, Recorded, SeenJob, Standing, Tables, WriteSet};
use crate::{ClaimRequest, JobKey, JobQuery, NewSession, Output, RecordedLoss, SessionState, SessionView, StoreResult};

impl Transaction {
    pub(in crate::mysql) async fn change_session(
        &mut self,
        sql: &str,
        params: Vec<mysql_async::Value>,
    ) -> StoreResult<()> {
        self.wrote = true;
        self.line.exec(sql, params).await.map(|_| ())
    }
}

impl Tables for Transaction {
    fn now(&self) -> Timestamp {
        Transaction::now(self)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    fn partitions(&self) -> u16 {
        self.context.partitions
    }

    async fn lock_partitions(&mut self, partitions: &[u16]) -> StoreResult<()> {
        self.lock_partition_rows(partitions).await
    }

    async fn jobs_by_id(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<JobRow>>> {
        self.select_jobs(ids).await
    }

    async fn jobs_of_runs(&mut self, _ids: &[JobId], runs: &[RunRef]) -> StoreResult<Vec<Option<JobRow>>> {
        self.select_jobs_of_runs(runs).await
    }

    async fn jobs_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobRow>>> {
        self.select_jobs_by_key(keys).await
    }

    async fn seen_job(&mut self, key: &JobKey) -> StoreResult<Option<SeenJob>> {
        self.select_seen_job(key).await
    }

    async fn job_by_run(&mut self, run: RunId) -> StoreResult<Option<JobRow>> {
        self.select_job_by_run(run).await
    }

    async fn due_jobs(&mut self, request: &ClaimRequest) -> StoreResult<Vec<JobRow>> {
        self.select_due_jobs(request).await
    }

    async fn held_jobs(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<JobRow>> {
        // To an optimizer that thinks it common, what nobody holds any more is worth a look at each row in the order of numbers.
        let held = "job_state s FORCE INDEX (job_state_held) WHERE s.held_session = ?";
        let rest = format!("{held} ORDER BY s.id LIMIT {}", limit_of(limit));
        self.jobs(&rest, vec![session.as_u64().into()]).await
    }

    async fn job_page(&mut self, query: &JobQuery) -> StoreResult<JobRows> {
        self.select_job_page(query).await
    }

    async fn highest_version(&mut self) -> StoreResult<u64> {
        self.select_highest_version().await
    }

    async fn ids_of_name(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        self.select_ids_of_name(key).await
    }

    async fn concurrent_by_key(&mut self, keys: &[FiringKey]) -> StoreResult<Vec<Option<ConcurrentJob>>> {
        self.select_concurrent(keys).await
    }

    async fn concurrent_by_run(&mut self, run: RunId) -> StoreResult<Option<ConcurrentJob>> {
        self.select_active_by_run(run).await
    }

    async fn due_concurrent(&mut self, request: &ClaimRequest) -> StoreResult<Vec<ConcurrentJob>> {
        if !self.concurrent_runs.may_be_claimed() {
            return Ok(Vec::new());
        }
        self.select_due_concurrent(request).await
    }

    async fn held_concurrent(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<ConcurrentJob>> {
        let limit = limit_of(limit);
        let held = "concurrent_run a FORCE INDEX (concurrent_run_held) WHERE a.held_session = ?";
        let rest = format!("{held} ORDER BY {CONCURRENT_ORDER} LIMIT {limit}");
        self.concurrent(&rest, vec![session.as_u64().into()]).await
    }

    async fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<JobRow>> {
        let rest = match jobs {
            // Left to itself, the optimizer reads the whole table now and then, as its statistics are drawn by lot.
            None => "(SELECT id FROM job_state FORCE INDEX (job_state_held) WHERE held_session IS NOT NULL UNION \
                     SELECT id FROM job_state FORCE INDEX (job_state_manual) WHERE manual_run IS NOT NULL) live \
                     STRAIGHT_JOIN job_state s ON s.id = live.id"
                .to_owned(),
            Some([]) => return Ok(Vec::new()),
            Some(jobs) => format!(
                "job_state s FORCE INDEX (PRIMARY) WHERE s.id IN ({}) \
                 AND (s.held_session IS NOT NULL OR s.manual_run IS NOT NULL)",
                list(jobs)
            ),
        };
        self.jobs(&rest, Vec::new()).await
    }

    async fn live_concurrent(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<ConcurrentJob>> {
        match jobs {
            None => self.concurrent("concurrent_run a", Vec::new()).await,
            // A start names a version that was written before this transaction began, and its write is guarded by it. Whoever
            // adds a concurrent run writes the job's row as well: the run was listed with the standing, or the guard fails.
            Some(jobs) => match self.concurrent_runs.of(jobs)[..] {
                [] => Ok(Vec::new()),
                ref some => {
                    let rest = format!("concurrent_run a WHERE a.job_id IN ({})", list(some));
                    self.concurrent(&rest, Vec::new()).await
                }
            },
        }
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        self.select_record(run).await
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        self.select_records(query).await
    }

    async fn last_records(&mut self, jobs: &[JobId]) -> StoreResult<BTreeMap<JobId, RunRecord>> {
        self.select_last_records(jobs).await
    }

    async fn output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        self.select_output(run).await
    }

    async fn insert_session(&mut self, session: &NewSession) -> StoreResult<()> {
        let sql = "INSERT INTO session (id, node, address, version, state, seq, started_at, heartbeat_at) \
                   VALUES (?, ?, ?, ?, ?, 0, ?, ?)";
        let (id, now) = (session.id.as_u64(), Transaction::now(self).as_ms());
        let NewSession { node, address, version, .. } = session;
        let params = vec![
            id.into(),
            node.into(),
            address.into(),
            version.into(),
            SessionState::Live.as_str().into(),
            now.into(),
            now.into(),
        ];
        self.change_session(sql, params).await
    }

    async fn session_state(&mut self, session: SessionId) -> StoreResult<Option<SessionState>> {
        let sql = "SELECT state FROM session WHERE id = ?";
        let row = self.line.select(sql, (session.as_u64(),)).await?.pop();
        row.map(rows::session_state).transpose()
    }

    async fn beat(&mut self, session: SessionId, seq: u64, state: SessionState) -> StoreResult<()> {
        let sql =
            "UPDATE session SET seq = ?, state = ?, heartbeat_at = ? WHERE id = ? AND state <> 'ended' AND seq < ?";
        let sql = match enabled(Guard::HeartbeatNotEnded) {
            true => guarded(Guard::HeartbeatNewer, sql, "seq < ?", "0 <= ?"),
            false => guarded(Guard::HeartbeatNotEnded, sql, "state <> 'ended'", "TRUE"),
        };
        let (now, id) = (Transaction::now(self).as_ms(), session.as_u64());
        self.change_session(&sql, vec![seq.into(), state.as_str().into(), now.into(), id.into(), seq.into()]).await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> StoreResult<()> {
        let sql = "UPDATE session SET state = 'ended' WHERE id = ? AND seq = ? AND state <> 'ended'";
        let sql = guarded(Guard::EndSeen, sql, "seq = ?", "0 <= ?");
        self.change_session(&sql, vec![session.as_u64().into(), seen_seq.into()]).await
    }

    async fn spend_session(&mut self, session: SessionId) -> StoreResult<()> {
        self.move_to_spent(session).await
    }

    async fn standing(&mut self, session: SessionId) -> StoreResult<Standing> {
        self.select_standing(session).await
    }

    async fn spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        self.select_spent_seq(session).await
    }

    async fn last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        self.select_last_spent_at().await
    }

    async fn note_window(&mut self, window: &RecordedLoss) -> StoreResult<()> {
        self.upsert_window(window).await
    }

    async fn windows(&mut self, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
        self.select_windows(accepted_since).await
    }

    async fn accept_windows(&mut self) -> StoreResult<()> {
        let sql = "UPDATE loss_window SET is_open = NULL, accepted_at = ? WHERE is_open = 1";
        self.change_session(sql, vec![Transaction::now(self).as_ms().into()]).await
    }

    async fn sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        self.select_sessions(with_counts).await
    }

    async fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> StoreResult<Vec<JobId>> {
        self.insert_jobs(jobs).await
    }

    async fn write(&mut self, changes: WriteSet) -> StoreResult<()> {
        self.write_changes(changes).await
    }
}
