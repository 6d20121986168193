//! The audit log as people see it.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;
use mysql_async::Row;

use crate::audit::document::from_text;
use crate::audit::select::{Index, end_of_part, page};
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::history::values;
use crate::mysql::read::select::{conditions, limit_of};
use crate::views::select::Select;
use crate::{AuditQuery, AuditRows, AuditView, JobKey, StoreResult};

const fn hint(index: Index) -> &'static str {
    match index {
        Index::Primary => "FORCE INDEX (PRIMARY)",
        Index::Namespace => "FORCE INDEX (audit_namespace)",
        Index::Job => "FORCE INDEX (audit_job)",
    }
}

impl MySqlConnection {
    pub(in crate::mysql) async fn select_audit(&mut self, query: &AuditQuery) -> StoreResult<AuditRows> {
        let rows = self.select_entries(page(query, hint)).await?;
        let rows = rows.into_iter().map(entry).collect::<StoreResult<Vec<_>>>()?;
        let looked_until = match end_of_part(query, hint) {
            Some(end) if rows.len() < query.limit => self.select_entries(end).await?.pop().map(place).transpose()?,
            _ => None,
        };
        Ok(AuditRows { rows, looked_until })
    }

    /// The log by its numbers.
    pub(in crate::mysql) async fn select_lines(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<AuditLine>> {
        let newest = self.query("SELECT COALESCE(MAX(id), 0) FROM audit").await?.pop();
        let newest = newest.map_or(Ok(0), |row| Columns::of(row).next())?;
        let mut rows = Vec::new();
        for (condition, limit) in conditions("a.id", ask) {
            let sql = format!(
                "SELECT a.id, a.at, a.who, a.action, a.namespace, a.job, a.generation FROM audit a \
                 FORCE INDEX (PRIMARY) WHERE {condition} ORDER BY a.id LIMIT {}",
                limit_of(limit)
            );
            let found = self.query(&sql).await?.into_iter().map(line);
            rows.extend(found.collect::<StoreResult<Vec<_>>>()?);
        }
        Ok(Numbered { newest, rows })
    }

    async fn select_entries(&mut self, Select { sql, params }: Select) -> StoreResult<Vec<Row>> {
        self.select(&sql, values(params)).await
    }
}

fn place(row: Row) -> StoreResult<(u64, Timestamp)> {
    let mut from = Columns::of(row);
    Ok((from.next()?, from.time()?))
}

fn line(row: Row) -> StoreResult<(u64, AuditLine)> {
    let mut from = Columns::of(row);
    let (id, at, who, action) = (from.next()?, from.time()?, from.next()?, from.next()?);
    let (namespace, name): (Option<String>, Option<String>) = (from.next()?, from.next()?);
    let job = namespace.zip(name).map(|(namespace, name)| JobKey { namespace, name });
    Ok((id, AuditLine { at, who, action, job, generation: from.next()? }))
}

fn entry(row: Row) -> StoreResult<AuditView> {
    let mut from = Columns::of(row);
    let (id, at, who, origin, action) = (from.next()?, from.time()?, from.next()?, from.next()?, from.next()?);
    let (namespace, job): (Option<String>, Option<String>) = (from.next()?, from.next()?);
    let job_id = from.next::<Option<u64>>()?.map(JobId);
    let (generation, run) = (from.next()?, from.maybe_run_id()?);
    let key = namespace.clone().zip(job.clone()).map(|(namespace, name)| JobKey { namespace, name });
    let mut state = || from.next::<Option<String>>().map(|text| text.map(|text| from_text(key.as_ref(), text)));
    let (before, after) = (state()?, state()?);
    Ok(AuditView { id, at, who, origin, action, namespace, job, job_id, generation, run, before, after })
}
