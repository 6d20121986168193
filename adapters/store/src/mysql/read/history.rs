//! Jobs and history as people see them.

use std::collections::BTreeMap;

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
use crate::tables::{GivenParams, JobRows, RecordQuery, Recorded, SeenJob};
use crate::views::select::{Param, Select, history, number};
use crate::{AuditQuery, AuditRows, JobKey, JobQuery, Output, RunCursor, RunView, StoreResult};

/// The columns beside a row of `run r`.
pub(in crate::mysql) const HISTORY: &str = "STRAIGHT_JOIN job j ON j.id = r.job_id LEFT JOIN output o ON o.run = r.id";

/// So many records more than are asked for are looked at. The index has those of one due time by their triggers, the answer by their
/// attempts.
const BESIDE: usize = 200;

/// The newest due time in the history of a job, from the end of its part of the index. MySQL reads and sorts all of that
/// part unless the order begins as the index does.
pub(in crate::mysql) fn newest_due(job: &str) -> String {
    format!(
        "(SELECT m.due_at FROM run m FORCE INDEX (run_attempt) WHERE m.job_id = {job} \
         ORDER BY m.job_id DESC, m.due_at DESC LIMIT 1)"
    )
}

/// Parameters as the driver takes them.
pub(in crate::mysql) fn values(params: Vec<Param>) -> Vec<Value> {
    let value = |param| match param {
        Param::Text(text) => Value::from(text),
        Param::Number(number) => Value::from(number),
        Param::Bytes(bytes) => Value::from(bytes),
    };
    params.into_iter().map(value).collect()
}

/// The rows `r` of history that a query asks for, from FROM on. MariaDB would read and sort all of a history, or all of a job's, unless
/// it is led along the index. The index of a job's records has them in the order of their due times.
pub(in crate::mysql) fn from_history(query: &RecordQuery) -> Select {
    let Select { sql, mut params } = history(query);
    let one = query.jobs.as_deref().and_then(|jobs| <[JobId; 1]>::try_from(jobs).ok());
    let run = match one {
        Some([job]) if query.status.is_none() && query.covering.is_none() => {
            let mut newest = Select::default();
            newest.add("m.job_id = ?", [number(job.0)]);
            newest.add_if("m.due_at < ?", query.until);
            newest.add_if("m.due_at >= ?", query.since);
            newest.add_if("m.due_at <= ?", query.after.map(|after| after.due_at));
            if let Some(RunCursor { due_at, attempt, .. }) = query.after {
                let place = [Param::Number(due_at.as_ms()), Param::Number(i64::from(attempt))];
                newest.add("(m.due_at < ? OR m.attempt <= ?)", place);
            }
            let most = limit_of(query.limit.saturating_add(BESIDE));
            params.splice(0..0, newest.params);
            format!(
                "(SELECT m.seq FROM run m FORCE INDEX (run_attempt) WHERE TRUE{} ORDER BY m.job_id DESC, m.due_at DESC, \
                 m.trigger_name DESC, m.attempt DESC LIMIT {most}) newest STRAIGHT_JOIN run r ON r.seq = newest.seq",
                newest.sql
            )
        }
        Some(_) => "run r FORCE INDEX (run_attempt)".to_owned(),
        None if query.jobs.is_none() => "run r FORCE INDEX (run_due)".to_owned(),
        None => "run r".to_owned(),
    };
    Select { sql: format!("FROM {run} {HISTORY} WHERE TRUE{sql}"), params }
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

    async fn job_page(
        &mut self,
        query: &JobQuery,
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<JobRows> {
        self.select_page(query, partitions, cached).await
    }

    async fn seen_run(&mut self, run: RunId) -> StoreResult<Option<(RunView, GivenParams)>> {
        self.select_run(run).await
    }

    async fn seen_runs_of(&mut self, jobs: &[JobId], query: &RecordQuery) -> StoreResult<Vec<RunView>> {
        self.select_runs_of(jobs, query).await
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        let sql =
            format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM run r {HISTORY} WHERE r.id = ?");
        let mut rows = self.select(&sql, (run_bytes(run).to_vec(),)).await?;
        rows.pop().map(rows::recorded).transpose()
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        let Select { sql, params } = from_history(query);
        let sql = format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated {sql}");
        self.select(&sql, values(params)).await?.into_iter().map(rows::recorded).collect()
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

    async fn recorded_runs(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        self.select_among(runs, "SELECT id FROM run WHERE id").await
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
