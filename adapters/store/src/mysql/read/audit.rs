//! The audit log as people see it.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;
use mysql_async::{Row, Value};

use crate::audit::document::from_text;
use crate::audit::select::{Index, Param, Select, end_of_part, page};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
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

    async fn select_entries(&mut self, Select { sql, params }: Select) -> StoreResult<Vec<Row>> {
        let value = |param| match param {
            Param::Text(text) => Value::from(text),
            Param::Number(number) => Value::from(number),
        };
        self.select(&sql, params.into_iter().map(value).collect::<Vec<_>>()).await
    }
}

fn place(row: Row) -> StoreResult<(u64, Timestamp)> {
    let mut from = Columns::of(row);
    Ok((from.next()?, from.time()?))
}

fn entry(row: Row) -> StoreResult<AuditView> {
    let mut from = Columns::of(row);
    let (id, at, who, origin, action) = (from.next()?, from.time()?, from.next()?, from.next()?, from.next()?);
    let (namespace, job): (Option<String>, Option<String>) = (from.next()?, from.next()?);
    let job_id = from.next::<Option<u64>>()?.map(JobId);
    let run = from.maybe_run_id()?;
    let key = namespace.clone().zip(job.clone()).map(|(namespace, name)| JobKey { namespace, name });
    let mut state = || from.next::<Option<String>>().map(|text| text.map(|text| from_text(key.as_ref(), text)));
    let (before, after) = (state()?, state()?);
    Ok(AuditView { id, at, who, origin, action, namespace, job, job_id, run, before, after })
}
