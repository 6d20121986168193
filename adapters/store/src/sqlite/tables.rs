//! SQLite behind the operations. Nothing here waits: each method answers when it is called.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::alerts::port::RunHead;
use crate::cache::definition_cache::Cache;
use crate::codec::named;
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::guarded::guarded;
use crate::sqlite::client::error::unreadable;
use crate::sqlite::rows::{CONCURRENT_ORDER, signed};
use crate::sqlite::{alerts, audit, change, history, losses, page, select};
use crate::tables::{
    ConcurrentJob, GivenParams, JobRow, JobRows, RecordQuery, Recorded, SeenJob, Standing, Tables, WriteSet, at_once,
    seen_job, seen_jobs, seen_run, seen_runs,
};
use crate::{
    AuditQuery, AuditRows, ClaimRequest, JobKey, JobQuery, NewSession, Output, RecordedLoss, RunView, SessionState,
    SessionView, StoreError, StoreResult,
};

/// One transaction on one connection.
pub struct Transaction<'a> {
    pub(in crate::sqlite) conn: &'a Connection,
    pub(in crate::sqlite) cache: &'a mut Cache,
    pub(in crate::sqlite) now_us: i64,
    pub(in crate::sqlite) partitions: u16,
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Transaction<'_> {
    fn jobs(&mut self, rest: &str, params: impl rusqlite::Params) -> StoreResult<Vec<JobRow>> {
        select::jobs(self.conn, self.cache, rest, params)
    }

    fn concurrent(&mut self, rest: &str, params: impl rusqlite::Params) -> StoreResult<Vec<ConcurrentJob>> {
        select::concurrent(self.conn, self.cache, rest, params)
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> StoreResult<()> {
        change::execute(self.conn, sql, params).map(|_| ())
    }

    fn session_state_of(&self, session: SessionId) -> StoreResult<Option<SessionState>> {
        let read = |row: &Row<'_>| {
            let state: String = select::column(row)?;
            named(&SessionState::ALL, SessionState::as_str, &state).map_err(unreadable)
        };
        select::first(self.conn, "SELECT state FROM session WHERE id = ?1", [signed(session.as_u64())], read)
    }

    fn live_jobs_of(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<JobRow>> {
        match history::job_list(jobs)? {
            None => self.jobs(
                "job_state s WHERE s.id IN (SELECT id FROM job_state WHERE held_session IS NOT NULL UNION ALL \
                 SELECT id FROM job_state WHERE manual_run IS NOT NULL)",
                [],
            ),
            Some(list) => self.jobs(
                "job_state s WHERE s.id IN (SELECT value FROM json_each(?1)) \
                 AND (s.held_session IS NOT NULL OR s.manual_run IS NOT NULL)",
                [list],
            ),
        }
    }

    fn live_active_of(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<ConcurrentJob>> {
        match history::job_list(jobs)? {
            None => self.concurrent("concurrent_run a", []),
            Some(list) => {
                self.concurrent("concurrent_run a WHERE a.job_id IN (SELECT value FROM json_each(?1))", [list])
            }
        }
    }

    fn page(&mut self, query: &JobQuery) -> StoreResult<JobRows> {
        let (rows, looked_until) = page::job_page(self.conn, self.cache, query, self.partitions)?;
        Ok(JobRows { rows: at_once(seen_jobs(self, rows))?, looked_until })
    }

    fn insert(&mut self, session: &NewSession) -> StoreResult<()> {
        let sql = "INSERT INTO session (id, node, address, version, state, seq, started_at, heartbeat_at, wrote_back) \
                   VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, 0)";
        let (id, live, now) = (signed(session.id.as_u64()), SessionState::Live.as_str(), self.now().as_ms());
        self.execute(sql, params![id, session.node, session.address, session.version, live, now])
    }
}

impl Tables for Transaction<'_> {
    type Alerts = Self;

    fn alerts(&mut self) -> &mut Self {
        self
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    fn highest_version(&mut self) -> impl Future<Output = StoreResult<u64>> + Send {
        ready(change::highest_version(self.conn))
    }

    fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The writing transaction is the lock of all of them; what is left to check is that they exist.
    fn lock_partitions(&mut self, partitions: &[u16]) -> impl Future<Output = StoreResult<()>> + Send {
        let missing = partitions.iter().find(|partition| **partition >= self.partitions);
        ready(missing.map_or(Ok(()), |missing| {
            Err(StoreError::Permanent(format!(
                "there is no partition {missing}: this database has {}",
                self.partitions
            )))
        }))
    }

    fn jobs_by_id(&mut self, ids: &[JobId]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send {
        ready(ids.iter().map(|id| select::job(self.conn, self.cache, *id)).collect())
    }

    fn jobs_by_key(&mut self, keys: &[JobKey]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send {
        ready(keys.iter().map(|key| select::job_by_key(self.conn, self.cache, key)).collect())
    }

    fn seen_job(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Option<SeenJob>>> + Send {
        ready(at_once(seen_job(self, key)))
    }

    fn job_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<JobRow>>> + Send {
        ready(select::job_by_run(self.conn, self.cache, run))
    }

    fn due_jobs(&mut self, request: &ClaimRequest) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        ready(select::due_jobs(self.conn, self.cache, request))
    }

    fn held_jobs(&mut self, session: SessionId, limit: usize) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        let params = params![signed(session.as_u64()), limit_of(limit)];
        ready(self.jobs("job_state s WHERE s.held_session = ?1 ORDER BY s.id LIMIT ?2", params))
    }

    fn job_page(&mut self, query: &JobQuery) -> impl Future<Output = StoreResult<JobRows>> + Send {
        ready(self.page(query))
    }

    fn ids_of_name(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        ready(history::ids_of_name(self.conn, key))
    }

    fn concurrent_by_key(
        &mut self,
        keys: &[FiringKey],
    ) -> impl Future<Output = StoreResult<Vec<Option<ConcurrentJob>>>> + Send {
        ready(keys.iter().map(|key| select::concurrent_by_key(self.conn, self.cache, key)).collect())
    }

    fn concurrent_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<ConcurrentJob>>> + Send {
        ready(select::concurrent_by_run(self.conn, self.cache, run))
    }

    fn due_concurrent(
        &mut self,
        request: &ClaimRequest,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        ready(select::due_concurrent(self.conn, self.cache, request))
    }

    fn held_concurrent(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        let rest = format!("concurrent_run a WHERE a.held_session = ?1 ORDER BY {CONCURRENT_ORDER} LIMIT ?2");
        ready(self.concurrent(&rest, params![signed(session.as_u64()), limit_of(limit)]))
    }

    fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        ready(self.live_jobs_of(jobs))
    }

    fn executing_jobs(&mut self) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        ready(self.jobs("job_state s WHERE s.held_session IS NOT NULL AND s.started_at IS NOT NULL", []))
    }

    fn live_concurrent(
        &mut self,
        jobs: Option<&[JobId]>,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        ready(self.live_active_of(jobs))
    }

    fn seen_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<(RunView, GivenParams)>>> + Send {
        ready(at_once(seen_run(self, run)))
    }

    fn seen_runs(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<RunView>>> + Send {
        ready(at_once(seen_runs(self, query)))
    }

    fn record(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Recorded>>> + Send {
        ready(history::record(self.conn, run))
    }

    fn records(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<Recorded>>> + Send {
        ready(history::records(self.conn, query))
    }

    fn runs_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<Recorded>>> + Send {
        ready(history::numbered(self.conn, ask))
    }

    fn run_heads(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<RunHead>>> + Send {
        ready(alerts::run_heads(self.conn, ask))
    }

    fn runs_with_output(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send {
        ready(alerts::with_output(self.conn, runs))
    }

    fn recorded_runs(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send {
        ready(alerts::among(self.conn, runs, "SELECT 1 FROM run WHERE id = ?1"))
    }

    fn audit_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<AuditLine>>> + Send {
        ready(audit::numbered(self.conn, ask))
    }

    fn last_records(&mut self, jobs: &[JobId]) -> impl Future<Output = StoreResult<BTreeMap<JobId, RunRecord>>> + Send {
        let found = jobs.iter().filter_map(|job| {
            let record = history::last_record(self.conn, *job).transpose()?;
            Some(record.map(|record| (*job, record)))
        });
        ready(found.collect())
    }

    fn audit(&mut self, query: &AuditQuery) -> impl Future<Output = StoreResult<AuditRows>> + Send {
        ready(audit::rows(self.conn, query))
    }

    fn output(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Output>>> + Send {
        ready(history::output(self.conn, run))
    }

    fn run_params(&mut self, firings: &[FiringKey]) -> impl Future<Output = StoreResult<Vec<Option<Arc<str>>>>> + Send {
        let read = |firing: &FiringKey| history::run_params(self.conn, firing);
        ready(firings.iter().map(read).collect())
    }

    fn insert_session(&mut self, session: &NewSession) -> impl Future<Output = StoreResult<()>> + Send {
        ready(self.insert(session))
    }

    fn session_state(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<SessionState>>> + Send {
        ready(self.session_state_of(session))
    }

    fn beat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        let sql = "UPDATE session SET seq = ?2, state = ?3, heartbeat_at = ?4 \
                   WHERE id = ?1 AND state <> 'ended' AND seq < ?2";
        let sql = match enabled(Guard::HeartbeatNotEnded) {
            true => guarded(Guard::HeartbeatNewer, sql, " AND seq < ?2", ""),
            false => guarded(Guard::HeartbeatNotEnded, sql, " AND state <> 'ended'", ""),
        };
        let params = params![signed(session.as_u64()), signed(seq), state.as_str(), self.now().as_ms()];
        ready(self.execute(&sql, params))
    }

    fn end_session(&mut self, session: SessionId, seen_seq: u64) -> impl Future<Output = StoreResult<()>> + Send {
        let sql = "UPDATE session SET state = 'ended' WHERE id = ?1 AND seq = ?2 AND state <> 'ended'";
        let sql = guarded(Guard::EndSeen, sql, "seq = ?2", "0 <= ?2");
        ready(self.execute(&sql, params![signed(session.as_u64()), signed(seen_seq)]))
    }

    fn note_written_back(
        &mut self,
        session: SessionId,
        until: Timestamp,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        let sql = "UPDATE session SET wrote_back = ?2 WHERE id = ?1 AND wrote_back < ?2";
        ready(self.execute(sql, params![signed(session.as_u64()), until.as_ms()]))
    }

    fn spend_session(&mut self, session: SessionId) -> impl Future<Output = StoreResult<()>> + Send {
        ready(losses::spend(self.conn, session, self.now()))
    }

    fn standing(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Standing>> + Send {
        let standing = losses::standing(self.conn, session);
        if let Ok(standing) = &standing {
            self.cache.forget_lost(standing.losses_until);
        }
        ready(standing)
    }

    fn spent_seq(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<u64>>> + Send {
        ready(losses::spent_seq(self.conn, session))
    }

    fn last_spent_at(&mut self) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send {
        ready(losses::last_spent_at(self.conn))
    }

    fn note_window(&mut self, window: &RecordedLoss) -> impl Future<Output = StoreResult<()>> + Send {
        self.cache.forget_lost(Some(window.window.until_at));
        ready(losses::note(self.conn, window))
    }

    fn windows(&mut self, accepted_since: Timestamp) -> impl Future<Output = StoreResult<Vec<RecordedLoss>>> + Send {
        ready(losses::windows(self.conn, accepted_since))
    }

    fn accept_windows(&mut self, until: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send {
        let sql = "UPDATE loss_window SET is_open = NULL, accepted_at = ?1 WHERE is_open = 1 AND until_at = ?2";
        ready(change::execute(self.conn, sql, [self.now().as_ms(), until.as_ms()]).map(|accepted| accepted > 0))
    }

    fn sessions(&mut self, with_counts: bool) -> impl Future<Output = StoreResult<Vec<SessionView>>> + Send {
        ready(history::sessions(self.conn, with_counts))
    }

    fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        ready(change::create_jobs(self.conn, jobs, self.now()))
    }

    fn write(&mut self, changes: WriteSet) -> impl Future<Output = StoreResult<()>> + Send {
        ready(change::write(self.conn, changes, self.partitions, self.now()))
    }
}
