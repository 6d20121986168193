//! Pages of jobs.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::cache::definition_cache::Cache;
use crate::codec::end_code;
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select::{first, jobs, names_of};
use crate::tables::JobRow;
use crate::{JobCursor, JobQuery, JobSort, StoreResult};

/// How many jobs are looked at for a page of those that come up next.
const LOOKED_AT: usize = 2_000;

/// A page of living jobs in the order asked for.
pub(in crate::sqlite) fn job_page(
    conn: &Connection,
    cache: &mut Cache,
    query: &JobQuery,
    partitions: u16,
) -> StoreResult<(Vec<JobRow>, Option<JobCursor>)> {
    let mut rest = match query.sort {
        JobSort::Name => "job j JOIN job_state s ON s.id = j.id WHERE j.deleted_at IS NULL".to_owned(),
        JobSort::Next => format!(
            "({}) part CROSS JOIN job_state s ON s.id = part.id CROSS JOIN job j ON j.id = s.id WHERE j.deleted_at IS NULL",
            next_entries(query.after_next(), partitions)
        ),
    };
    let mut params: Vec<Value> = Vec::new();
    let mut add = |condition: &str, values: Vec<Value>| {
        rest.push_str(" AND ");
        rest.push_str(condition);
        params.extend(values);
    };
    if let Some(text) = &query.contains {
        add("instr(lower(j.name), ?) > 0", vec![text.to_lowercase().into()]);
    }
    if let Some(status) = query.last_status {
        add("s.last_status = ? AND s.last_status > 0", vec![i64::from(end_code(status)).into()]);
    }
    if let Some(after) = query.after_name() {
        add("(j.namespace, j.name) > (?, ?)", vec![after.namespace.clone().into(), after.name.clone().into()]);
    }
    if let Some(namespace) = &query.namespace {
        add("j.namespace = ?", vec![namespace.clone().into()]);
    }
    if let Some(names) = names_of(&query.scope)? {
        add("j.namespace IN (SELECT value FROM json_each(?))", vec![names.into()]);
    }
    if let Some(prefix) = &query.prefix {
        let prefix = || Value::from(prefix.clone());
        add("j.name >= ? AND substr(j.name, 1, length(?)) = ?", vec![prefix(), prefix(), prefix()]);
    }
    match query.state.as_deref() {
        None => {}
        Some("idle") => add("s.held_session IS NULL", vec![]),
        Some("prepared") => add("s.held_session IS NOT NULL AND s.started_at IS NULL", vec![]),
        Some("executing") => add("s.started_at IS NOT NULL", vec![]),
        Some(_) => add("FALSE", vec![]),
    }
    if let Some(paused) = query.paused {
        add(if paused { "s.pause_since IS NOT NULL" } else { "s.pause_since IS NULL" }, vec![]);
    }
    let labels = "EXISTS (SELECT 1 FROM json_each(j.document, '$.labels') l WHERE l.key = ?";
    match &query.label {
        None => {}
        Some((label, None)) => add(&format!("{labels})"), vec![label.clone().into()]),
        Some((label, Some(value))) => {
            add(&format!("{labels} AND l.value = ?)"), vec![label.clone().into(), value.clone().into()]);
        }
    }
    rest.push_str(match query.sort {
        JobSort::Name => " ORDER BY j.namespace, j.name LIMIT ?",
        JobSort::Next => " ORDER BY part.claim_at, part.id LIMIT ?",
    });
    params.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let rows = jobs(conn, cache, &rest, params_from_iter(params))?;
    let looked_until = match query.sort {
        JobSort::Next if rows.len() < query.limit => end_of_part(conn, query, partitions)?,
        JobSort::Next | JobSort::Name => None,
    };
    Ok((rows, looked_until))
}

/// The last job that was looked at, unless there are no more.
fn end_of_part(conn: &Connection, query: &JobQuery, partitions: u16) -> StoreResult<Option<JobCursor>> {
    let sql = format!("{} OFFSET {}", next_entries(query.after_next(), partitions), LOOKED_AT - 1);
    let read = |row: &Row<'_>| -> rusqlite::Result<_> {
        let claim_at = row.get::<_, Option<i64>>(0)?.map(Timestamp::from_ms);
        Ok(JobCursor::Next { claim_at, id: JobId(row.get::<_, i64>(1)? as u64) })
    };
    first(conn, &sql, [], |row| read(row).map_err(statement))
}

/// The next entries of all partitions in the order in which they come up, each a `claim_at` and an `id`. Rows that a session holds have no
/// time, and stand first.
fn next_entries(after: Option<(Option<Timestamp>, JobId)>, partitions: u16) -> String {
    let (claim_at, id) = after.map_or((None, 0), |(claim_at, id)| (claim_at, signed(id.0)));
    let condition = claim_at.map_or(String::new(), |at| {
        let at = at.as_ms();
        format!(" AND claim_at >= {at} AND (claim_at > {at} OR id > {id})")
    });
    let held = format!(
        "SELECT * FROM (SELECT NULL AS claim_at, id FROM job_state INDEXED BY job_state_held \
         WHERE held_session IS NOT NULL AND id > {id} ORDER BY id LIMIT {LOOKED_AT})"
    );
    let of = |partition: u16| {
        format!(
            "SELECT * FROM (SELECT claim_at, id FROM job_state INDEXED BY job_state_due WHERE partition_id = {partition} \
             AND claim_at IS NOT NULL{condition} ORDER BY claim_at, id LIMIT {LOOKED_AT})"
        )
    };
    let parts: Vec<String> = claim_at.is_none().then_some(held).into_iter().chain((0..partitions).map(of)).collect();
    format!("SELECT claim_at, id FROM ({}) ORDER BY claim_at, id LIMIT {LOOKED_AT}", parts.join(" UNION ALL "))
}
