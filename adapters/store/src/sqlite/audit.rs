//! The audit log.

use carillon_domain::id::JobId;
use carillon_domain::store::AuditDocument;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::audit::document::{from_text, to_text};
use crate::audit::select::{Index, end_of_part, page};
use crate::codec::{run_bytes, run_from};
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::sqlite::change::execute;
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, column, first};
use crate::views::select::Select;
use crate::{AuditEntry, AuditQuery, AuditRows, AuditView, JobKey, StoreResult};

const fn hint(index: Index) -> &'static str {
    match index {
        Index::Primary => "NOT INDEXED",
        Index::Namespace => "INDEXED BY audit_namespace",
        Index::Job => "INDEXED BY audit_job",
    }
}

/// Adds an entry.
pub(in crate::sqlite) fn write(conn: &Connection, entry: &AuditEntry) -> StoreResult<()> {
    let sql = "INSERT INTO audit (at, who, origin, action, namespace, job, job_id, generation, run, before_doc, \
               after_doc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let text = |document: &Option<AuditDocument>| document.as_ref().map(to_text).transpose();
    let job = entry.job.as_ref();
    let params = params![
        entry.at.as_ms(),
        &*entry.author.name,
        &*entry.author.origin,
        entry.action.as_str(),
        job.map(|(key, _)| &key.namespace),
        job.map(|(key, _)| &key.name),
        job.map(|(_, id)| signed(id.0)),
        entry.generation.map(signed),
        entry.run.map(run_bytes),
        text(&entry.before)?,
        text(&entry.after)?,
    ];
    execute(conn, sql, params).map(|_| ())
}

/// A page, newest first.
pub(in crate::sqlite) fn rows(conn: &Connection, query: &AuditQuery) -> StoreResult<AuditRows> {
    let Select { sql, params } = page(query, hint);
    let rows = all(conn, &sql, params_from_iter(params), entry)?;
    let looked_until = match end_of_part(query, hint) {
        Some(Select { sql, params }) if rows.len() < query.limit => {
            first(conn, &sql, params_from_iter(params), |row| place(row).map_err(statement))?
        }
        _ => None,
    };
    Ok(AuditRows { rows, looked_until })
}

fn place(row: &Row<'_>) -> rusqlite::Result<(u64, Timestamp)> {
    Ok((row.get::<_, i64>(0)? as u64, Timestamp::from_ms(row.get(1)?)))
}

fn entry(row: &Row<'_>) -> StoreResult<AuditView> {
    read(row).map_err(statement)
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditView> {
    let (namespace, job): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
    let key = namespace.clone().zip(job.clone()).map(|(namespace, name)| JobKey { namespace, name });
    let state = |column| -> rusqlite::Result<_> {
        Ok(row.get::<_, Option<String>>(column)?.map(|text| from_text(key.as_ref(), text)))
    };
    let (id, at) = place(row)?;
    Ok(AuditView {
        id,
        at,
        who: row.get(2)?,
        origin: row.get(3)?,
        action: row.get(4)?,
        job_id: row.get::<_, Option<i64>>(7)?.map(|id| JobId(id as u64)),
        generation: row.get::<_, Option<i64>>(8)?.map(|generation| generation as u64),
        run: row.get::<_, Option<[u8; 16]>>(9)?.map(run_from),
        before: state(10)?,
        after: state(11)?,
        namespace,
        job,
    })
}

const NUMBERED: &str = "SELECT a.id, a.at, a.who, a.action, a.namespace, a.job, a.generation FROM audit a";

/// The audit log by its numbers.
pub(in crate::sqlite) fn numbered(conn: &Connection, ask: &JournalAsk) -> StoreResult<Numbered<AuditLine>> {
    let newest = first(conn, "SELECT coalesce(max(id), 0) FROM audit", [], column::<i64>)?;
    let read = |condition: &str, params: &[i64]| {
        let sql = format!("{NUMBERED} WHERE {condition} ORDER BY a.id LIMIT ?");
        all(conn, &sql, params_from_iter(params), |row| line(row).map_err(statement))
    };
    let mut rows = Vec::new();
    for span in &ask.gaps {
        rows.extend(read("a.id BETWEEN ? AND ?", &[signed(span.first), signed(span.last), i64::MAX])?);
    }
    if ask.limit > 0 {
        let limit = i64::try_from(ask.limit).unwrap_or(i64::MAX);
        rows.extend(read("a.id > ?", &[signed(ask.after), limit])?);
    }
    Ok(Numbered { newest: newest.unwrap_or(0) as u64, rows })
}

fn line(row: &Row<'_>) -> rusqlite::Result<(u64, AuditLine)> {
    let (namespace, name): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
    let job = namespace.zip(name).map(|(namespace, name)| JobKey { namespace, name });
    let generation = row.get::<_, Option<i64>>(6)?.map(|generation| generation as u64);
    let (id, at) = place(row)?;
    Ok((id, AuditLine { at, who: row.get(2)?, action: row.get(3)?, job, generation }))
}

/// Deletes up to `limit` entries that are older than `before`.
pub(in crate::sqlite) fn purge(conn: &Connection, before: Timestamp, limit: usize) -> StoreResult<usize> {
    let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at, id LIMIT ?2)";
    execute(conn, sql, params![before.as_ms(), i64::try_from(limit).unwrap_or(i64::MAX)])
}
