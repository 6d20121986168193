//! Reading history, sessions, and what a node asks without a lock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{Peek, RowKey, RunRef, UNCLAIMED_PER_PARTITION};
use carillon_domain::run::RunRecord;
use mysql_async::Value;

use crate::codec::run_bytes;
use crate::mysql::encoding::rows::{self, CONCURRENT, CONCURRENT_ORDER, Columns, RECORD, SESSION};
use crate::mysql::read::select::{limit_of, marks};
use crate::mysql::transaction::{Transaction, list};
use crate::tables::{RecordQuery, Recorded};
use crate::{JobKey, Output, PeekRequest, SessionView, StoreResult};

/// The columns beside a row of `run r`.
const HISTORY: &str = "STRAIGHT_JOIN job j ON j.id = r.job_id LEFT JOIN output o ON o.run = r.id";

/// The newest due time in the history of a job, from the end of its part of the index. MySQL reads and sorts all of that
/// part unless the order begins as the index does.
pub(in crate::mysql) fn newest_due(job: &str) -> String {
    format!(
        "(SELECT m.due_at FROM run m FORCE INDEX (run_attempt) WHERE m.job_id = {job} \
         ORDER BY m.job_id DESC, m.due_at DESC LIMIT 1)"
    )
}

impl Transaction {
    pub(in crate::mysql) async fn select_ids_of_name(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        let sql = "SELECT id FROM job FORCE INDEX (job_name) WHERE namespace = ? AND name = ? ORDER BY id";
        let rows = self.line.select(sql, (&key.namespace, &key.name)).await?;
        rows.into_iter().map(|row| Columns::of(row).next().map(JobId)).collect()
    }

    pub(in crate::mysql) async fn select_record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        let sql =
            format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM run r {HISTORY} WHERE r.id = ?");
        let mut rows = self.line.select(&sql, (run_bytes(run).to_vec(),)).await?;
        rows.pop().map(rows::recorded).transpose()
    }

    pub(in crate::mysql) async fn select_records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        // MariaDB would read and sort all of a history that it has not counted yet.
        let newest_first = if query.jobs.is_none() { "FORCE INDEX (run_due)" } else { "" };
        let mut sql = format!(
            "SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM run r {newest_first} {HISTORY} WHERE TRUE"
        );
        let mut params: Vec<Value> = Vec::new();
        let mut add = |condition: &str, values: Vec<Value>| {
            sql.push_str(" AND ");
            sql.push_str(condition);
            params.extend(values);
        };
        match query.jobs.as_deref() {
            None => {}
            Some([]) => return Ok(Vec::new()),
            Some(jobs) => add(&format!("r.job_id IN ({})", list(jobs)), vec![]),
        }
        if let Some(namespace) = &query.namespace {
            add("j.namespace = ?", vec![namespace.into()]);
        }
        if let Some(status) = query.status {
            add("r.status = ?", vec![status.as_str().into()]);
        }
        if let Some(since) = query.since {
            add("r.due_at >= ?", vec![since.as_ms().into()]);
        }
        if let Some(until) = query.until {
            add("r.due_at < ?", vec![until.as_ms().into()]);
        }
        if let Some(after) = query.after {
            let (due_at, run) = (after.due_at.as_ms(), run_bytes(after.run).to_vec());
            add("r.due_at <= ?", vec![due_at.into()]);
            let place = vec![due_at.into(), after.attempt.into(), after.attempt.into(), run.into()];
            add("(r.due_at < ? OR r.attempt < ? OR (r.attempt = ? AND r.id < ?))", place);
        }
        let limit = limit_of(query.limit);
        let _infallible = write!(sql, " ORDER BY r.due_at DESC, r.attempt DESC, r.id DESC LIMIT {limit}");
        self.line.select(&sql, params).await?.into_iter().map(rows::recorded).collect()
    }

    /// The newest record of each job: the newest due time from the index, then the last of its attempts.
    pub(in crate::mysql) async fn select_last_records(
        &mut self,
        jobs: &[JobId],
    ) -> StoreResult<BTreeMap<JobId, RunRecord>> {
        let mut last: BTreeMap<JobId, RunRecord> = BTreeMap::new();
        if jobs.is_empty() {
            return Ok(last);
        }
        let sql = format!(
            "SELECT {RECORD} FROM (SELECT j.id, {} AS due_at FROM job j WHERE j.id IN ({})) m \
             STRAIGHT_JOIN run r FORCE INDEX (run_attempt) ON r.job_id = m.id AND r.due_at = m.due_at",
            newest_due("j.id"),
            list(jobs)
        );
        for row in self.line.query(&sql).await? {
            let record = rows::record(row)?;
            let newest =
                last.get(&record.job).is_none_or(|known| (known.attempt, known.id) < (record.attempt, record.id));
            if newest {
                last.insert(record.job, record);
            }
        }
        Ok(last)
    }

    pub(in crate::mysql) async fn select_output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        let sql = "SELECT bytes, truncated FROM output WHERE run = ?";
        let row = self.line.select(sql, (run_bytes(run).to_vec(),)).await?.pop();
        row.map(|row| {
            let mut from = Columns::of(row);
            Ok(Output { bytes: from.next()?, truncated: from.next()? })
        })
        .transpose()
    }

    pub(in crate::mysql) async fn select_sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        let rows = self.line.query(&format!("SELECT {SESSION} FROM session ORDER BY id")).await?;
        let mut sessions = rows.into_iter().map(rows::session).collect::<StoreResult<Vec<_>>>()?;
        if !with_counts {
            return Ok(sessions);
        }
        for table in ["job_state", "concurrent_run"] {
            let sql = format!(
                "SELECT held_session, COALESCE(started_at, 0) <> 0 AS started, COUNT(*) FROM {table} FORCE INDEX ({table}_held) \
                 WHERE held_session IS NOT NULL GROUP BY held_session, started"
            );
            for row in self.line.query(&sql).await? {
                let mut from = Columns::of(row);
                let (session, started, count): (u64, bool, u64) = (from.next()?, from.next()?, from.next()?);
                if let Some(view) = sessions.iter_mut().find(|view| view.beat.id.as_u64() == session) {
                    *(if started { &mut view.executing } else { &mut view.prepared }) += count;
                }
            }
        }
        Ok(sessions)
    }

    /// One statement for all partitions and both tables: of each partition the first entries in the index.
    pub(in crate::mysql) async fn peek(&mut self, request: &PeekRequest) -> StoreResult<Peek> {
        let places = if request.executors.is_empty() { "NULL".to_owned() } else { marks(request.executors.len()) };
        let first_of = |partition: u16| {
            format!(
                "(SELECT partition_id, executor, claim_at, id FROM job_state FORCE INDEX (job_state_due) \
                 WHERE partition_id = {partition} AND claim_at <= ? AND executor IN ({places}) \
                 ORDER BY claim_at, id LIMIT {UNCLAIMED_PER_PARTITION})"
            )
        };
        let partitions = self.context.partitions;
        let sql = format!(
            "SELECT t.partition_id, t.executor, t.claim_at, s.version, t.id, NULL, NULL FROM ({}) t \
             STRAIGHT_JOIN job_state s ON s.id = t.id UNION ALL \
             SELECT partition_id, executor, claim_at, version, job_id, due_at, trigger_name FROM \
             (SELECT s.partition_id, s.executor, a.claim_at, a.version, a.job_id, a.due_at, a.trigger_name, \
             ROW_NUMBER() OVER (PARTITION BY s.partition_id ORDER BY a.claim_at, {CONCURRENT_ORDER}) AS place \
             FROM concurrent_run a STRAIGHT_JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ? \
             AND s.executor IN ({places})) beside WHERE place <= {UNCLAIMED_PER_PARTITION}",
            (0..partitions).map(first_of).collect::<Vec<_>>().join(" UNION ALL ")
        );
        let mut params: Vec<Value> = Vec::new();
        for _ in 0..=partitions {
            params.push(request.until.as_ms().into());
            params.extend(request.executors.iter().map(Value::from));
        }
        let found =
            self.line.select(&sql, params).await?.into_iter().map(rows::unclaimed).collect::<StoreResult<_>>()?;
        let me = request.session.as_u64();
        let news = format!(
            "SELECT id, NULL FROM session WHERE state = 'live' UNION ALL \
             SELECT NULL, held_run FROM job_state FORCE INDEX (job_state_held) WHERE held_session = {me} AND cancel IS NOT NULL UNION ALL \
             SELECT NULL, held_run FROM concurrent_run FORCE INDEX (concurrent_run_held) WHERE held_session = {me} AND cancel IS NOT NULL"
        );
        let (mut claimants, mut cancels) = (Vec::new(), Vec::new());
        for row in self.line.query(&news).await? {
            let mut from = Columns::of(row);
            match from.next::<Option<u64>>()? {
                Some(session) => claimants.push(SessionId::from_random(session)),
                None => cancels.push(from.run()?),
            }
        }
        let wanted_outputs = self.wanted_outputs(request.session).await?;
        Ok(Peek { claimants, cancels, wanted_outputs, ..carillon_domain::store::peek(&request.partitions, found) })
    }

    pub(in crate::mysql) async fn held(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        let session = session.as_u64();
        let jobs = format!(
            "SELECT id, held_run, version FROM job_state FORCE INDEX (job_state_held) \
             WHERE held_session = {session} ORDER BY id"
        );
        let mut held = Vec::new();
        for row in self.line.query(&jobs).await? {
            let mut from = Columns::of(row);
            let row = RowKey::Job(JobId(from.next()?));
            held.push(RunRef { row, run: from.run()?, version: from.next()? });
        }
        let concurrent = format!(
            "SELECT {CONCURRENT} FROM concurrent_run a FORCE INDEX (concurrent_run_held) \
             WHERE a.held_session = {session} ORDER BY {CONCURRENT_ORDER}"
        );
        for row in self.line.query(&concurrent).await? {
            let row = rows::concurrent(row)?;
            let run = row.phase.held().map(|held| held.run);
            held.extend(run.map(|run| RunRef { row: RowKey::Concurrent(row.key), run, version: row.version }));
        }
        Ok(held)
    }
}
