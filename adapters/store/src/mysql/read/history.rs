//! Jobs and history as people see them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use carillon_domain::id::{JobId, RunId};
use carillon_domain::run::RunRecord;
use mysql_async::Value;

use crate::alerts::port::RunHead;
use crate::cluster::port::{CachedDefinition, ReadForPeople};
use crate::codec::run_bytes;
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::{self, Columns, RECORD};
use crate::mysql::read::select::{conditions, limit_of};
use crate::tables::{RecordQuery, Recorded, SeenJob};
use crate::{AuditQuery, AuditRows, JobKey, Output, StoreResult};

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

impl MySqlConnection {
    async fn numbered(&mut self, condition: &str, limit: usize) -> StoreResult<Vec<(u64, Recorded)>> {
        let sql = format!(
            "SELECT r.seq, {RECORD}, r.node, j.namespace, j.name, o.truncated FROM run r FORCE INDEX (PRIMARY) {HISTORY} \
             WHERE {condition} ORDER BY r.seq LIMIT {}",
            limit_of(limit)
        );
        let read = |row| {
            let mut from = Columns::of(row);
            Ok((from.next()?, rows::recorded_of(&mut from)?))
        };
        self.query(&sql).await?.into_iter().map(read).collect()
    }
}

impl ReadForPeople for MySqlConnection {
    async fn jobs_by_name(
        &mut self,
        keys: &[JobKey],
        cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<StoreResult<Option<SeenJob>>>> {
        self.select_jobs_by_name(keys, cached).await
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        let sql =
            format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM run r {HISTORY} WHERE r.id = ?");
        let mut rows = self.select(&sql, (run_bytes(run).to_vec(),)).await?;
        rows.pop().map(rows::recorded).transpose()
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
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
        if let Some(due) = query.covering {
            add("r.due_at >= ? AND r.first_due_at <= ?", vec![due.as_ms().into(), due.as_ms().into()]);
        }
        if let Some(after) = query.after {
            let (due_at, run) = (after.due_at.as_ms(), run_bytes(after.run).to_vec());
            add("r.due_at <= ?", vec![due_at.into()]);
            let place = vec![due_at.into(), after.attempt.into(), after.attempt.into(), run.into()];
            add("(r.due_at < ? OR r.attempt < ? OR (r.attempt = ? AND r.id < ?))", place);
        }
        let limit = limit_of(query.limit);
        let _infallible = write!(sql, " ORDER BY r.due_at DESC, r.attempt DESC, r.id DESC LIMIT {limit}");
        self.select(&sql, params).await?.into_iter().map(rows::recorded).collect()
    }

    async fn runs_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<Recorded>> {
        let newest = self.query("SELECT COALESCE(MAX(seq), 0) FROM run").await?.pop();
        let newest = newest.map_or(Ok(0), |row| Columns::of(row).next())?;
        let mut rows = Vec::new();
        for (condition, limit) in conditions("r.seq", ask) {
            rows.extend(self.numbered(&condition, limit).await?);
        }
        Ok(Numbered { newest, rows })
    }

    async fn run_heads(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<RunHead>> {
        self.select_run_heads(ask).await
    }

    async fn runs_with_output(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        self.select_with_output(runs).await
    }

    async fn audit_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<AuditLine>> {
        self.select_lines(ask).await
    }

    /// The newest record of each job: the newest due time from the index, then the last of its attempts.
    async fn last_records(&mut self, jobs: &[JobId]) -> StoreResult<BTreeMap<JobId, RunRecord>> {
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
        for row in self.query(&sql).await? {
            let record = rows::record(row)?;
            let newest =
                last.get(&record.job).is_none_or(|known| (known.attempt, known.id) < (record.attempt, record.id));
            if newest {
                last.insert(record.job, record);
            }
        }
        Ok(last)
    }

    async fn audit(&mut self, query: &AuditQuery) -> StoreResult<AuditRows> {
        self.select_audit(query).await
    }

    async fn output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        let sql = "SELECT bytes, truncated FROM output WHERE run = ?";
        let row = self.select(sql, (run_bytes(run).to_vec(),)).await?.pop();
        row.map(|row| {
            let mut from = Columns::of(row);
            Ok(Output { bytes: from.next()?, truncated: from.next()? })
        })
        .transpose()
    }
}
