//! Reading jobs and runs in flight.

use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId};
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Params, Row, params};

use crate::cache::definition_cache::Cache;
use crate::codec::run_bytes;
use crate::definition::{Definition, from_document};
use crate::sqlite::client::error::{statement, unreadable};
use crate::sqlite::rows::{self, CONCURRENT, CONCURRENT_ORDER, STATE, signed};
use crate::tables::{ConcurrentJob, JobRow};
use crate::{ClaimRequest, JobKey, NamespaceScope, StoreError, StoreResult};

/// Every row that a statement answers.
pub(in crate::sqlite) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    let mut statement_ = conn.prepare_cached(sql).map_err(statement)?;
    let mut found = statement_.query(params).map_err(statement)?;
    let mut answer = Vec::new();
    while let Some(row) = found.next().map_err(statement)? {
        answer.push(read(row)?);
    }
    Ok(answer)
}

/// The first row.
pub(in crate::sqlite) fn first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Option<T>> {
    Ok(all(conn, sql, params, read)?.into_iter().next())
}

/// The first column.
pub(in crate::sqlite) fn column<T: rusqlite::types::FromSql>(row: &Row<'_>) -> StoreResult<T> {
    row.get(0).map_err(statement)
}

pub(in crate::sqlite) fn json<T: serde::Serialize + ?Sized>(list: &T) -> StoreResult<String> {
    serde_json::to_string(list).map_err(|error| StoreError::Permanent(error.to_string()))
}

/// The definition of a job at its newest generation.
pub(in crate::sqlite) fn definition(
    conn: &Connection,
    cache: &mut Cache,
    id: JobId,
    generation: Option<u64>,
) -> StoreResult<Arc<Definition>> {
    let missing = || unreadable(format!("job {id} has no definition"));
    let generation = match generation {
        Some(generation) => generation,
        None => first(conn, "SELECT generation FROM job WHERE id = ?1", [signed(id.0)], column::<i64>)?
            .ok_or_else(missing)? as u64,
    };
    if let Some(found) = cache.get(id, generation) {
        return Ok(found);
    }
    let sql = "SELECT namespace, name, document, generation, anchor_at, created_at, updated_at FROM job WHERE id = ?1";
    let found = first(conn, sql, [signed(id.0)], read_definition)?.ok_or_else(missing)?;
    cache.put(id, found.clone());
    Ok(found)
}

fn read_definition(row: &Row<'_>) -> StoreResult<Arc<Definition>> {
    let columns = || -> rusqlite::Result<_> {
        let key = JobKey { namespace: row.get(0)?, name: row.get(1)? };
        let times: [i64; 3] = [row.get(4)?, row.get(5)?, row.get(6)?];
        Ok((key, row.get::<_, String>(2)?, row.get::<_, i64>(3)?, times.map(Timestamp::from_ms)))
    };
    let (key, document, generation, [anchor_at, created_at, updated_at]) = columns().map_err(statement)?;
    let job = from_document(key, &document)?;
    let timeline = job.timeline(anchor_at).map_err(|error| unreadable(format!("{}: {error}", job.key())))?;
    let (job, generation) = (Arc::new(job), generation as u64);
    Ok(Arc::new(Definition { job, timeline, generation, anchor_at, created_at, updated_at }))
}

/// Job rows, each with its definition.
pub(in crate::sqlite) fn jobs(
    conn: &Connection,
    cache: &mut Cache,
    rest: &str,
    params: impl Params,
) -> StoreResult<Vec<JobRow>> {
    let states = all(conn, &format!("SELECT {STATE} FROM {rest}"), params, rows::state)?;
    let mut found = Vec::with_capacity(states.len());
    for state in states {
        let definition = definition(conn, cache, state.id, Some(state.generation))?;
        found.push(JobRow { definition, state: Arc::new(state) });
    }
    Ok(found)
}

pub(in crate::sqlite) fn job(conn: &Connection, cache: &mut Cache, id: JobId) -> StoreResult<Option<JobRow>> {
    Ok(jobs(conn, cache, "job_state s WHERE s.id = ?1", [signed(id.0)])?.pop())
}

pub(in crate::sqlite) fn job_by_key(conn: &Connection, cache: &mut Cache, key: &JobKey) -> StoreResult<Option<JobRow>> {
    let sql = "SELECT id FROM job WHERE namespace = ?1 AND name = ?2 AND deleted_at IS NULL";
    let id = first(conn, sql, [&key.namespace, &key.name], column::<i64>)?;
    id.map_or(Ok(None), |id| job(conn, cache, JobId(id as u64)))
}

const SESSIONS: &str = "(SELECT id FROM session)";

pub(in crate::sqlite) fn job_by_run(conn: &Connection, cache: &mut Cache, run: RunId) -> StoreResult<Option<JobRow>> {
    let run = run_bytes(run);
    let held = format!("job_state s WHERE s.held_session IN {SESSIONS} AND s.held_run = ?1");
    if let Some(row) = jobs(conn, cache, &held, [run])?.pop() {
        return Ok(Some(row));
    }
    Ok(jobs(conn, cache, "job_state s WHERE s.manual_run = ?1", [run])?.pop())
}

/// The rows of the partitions that come up first. The index has all that is asked; only what is taken is read.
pub(in crate::sqlite) fn due_jobs(
    conn: &Connection,
    cache: &mut Cache,
    request: &ClaimRequest,
) -> StoreResult<Vec<JobRow>> {
    let sql = "SELECT claim_at, id FROM job_state WHERE partition_id = ?1 AND claim_at <= ?2 \
               AND executor IN (SELECT value FROM json_each(?3)) ORDER BY claim_at, id LIMIT ?4";
    let (executors, limit) = (json(&request.executors)?, request.runs.len() as i64);
    let mut due: Vec<(i64, i64)> = Vec::new();
    for partition in &request.partitions {
        let params = params![partition, request.until.as_ms(), executors, limit];
        due.extend(all(conn, sql, params, |row| Ok((column(row)?, row.get(1).map_err(statement)?)))?);
    }
    due.sort_unstable();
    due.truncate(request.runs.len());
    let mut found = Vec::with_capacity(due.len());
    for (_, id) in due {
        match job(conn, cache, JobId(id as u64)) {
            Ok(row) => found.extend(row),
            // One row of a newer binary must not keep this one from all the others.
            Err(StoreError::Permanent(problem)) => tracing::error!(job = id, problem, "a due job cannot be read"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Active rows, each with its job's definition.
pub(in crate::sqlite) fn concurrent(
    conn: &Connection,
    cache: &mut Cache,
    rest: &str,
    params: impl Params,
) -> StoreResult<Vec<ConcurrentJob>> {
    let found = all(conn, &format!("SELECT {CONCURRENT} FROM {rest}"), params, rows::concurrent)?;
    let mut answer = Vec::with_capacity(found.len());
    for row in found {
        answer.push(ConcurrentJob { definition: definition(conn, cache, row.key.job, None)?, row });
    }
    Ok(answer)
}

pub(in crate::sqlite) fn concurrent_by_key(
    conn: &Connection,
    cache: &mut Cache,
    key: &FiringKey,
) -> StoreResult<Option<ConcurrentJob>> {
    let rest = "concurrent_run a WHERE a.job_id = ?1 AND a.due_at = ?2 AND a.trigger = ?3";
    let params = params![signed(key.job.0), key.due_at.as_ms(), key.trigger.as_str()];
    Ok(concurrent(conn, cache, rest, params)?.pop())
}

pub(in crate::sqlite) fn concurrent_by_run(
    conn: &Connection,
    cache: &mut Cache,
    run: RunId,
) -> StoreResult<Option<ConcurrentJob>> {
    let run = run_bytes(run);
    let held = format!("concurrent_run a WHERE a.held_session IN {SESSIONS} AND a.held_run = ?1");
    if let Some(row) = concurrent(conn, cache, &held, [run])?.pop() {
        return Ok(Some(row));
    }
    Ok(concurrent(conn, cache, "concurrent_run a WHERE a.waiting_run = ?1", [run])?.pop())
}

pub(in crate::sqlite) fn due_concurrent(
    conn: &Connection,
    cache: &mut Cache,
    request: &ClaimRequest,
) -> StoreResult<Vec<ConcurrentJob>> {
    let rest = format!(
        "concurrent_run a JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ?1 \
         AND s.partition_id IN (SELECT value FROM json_each(?2)) \
         AND s.executor IN (SELECT value FROM json_each(?3)) ORDER BY a.claim_at, {CONCURRENT_ORDER} LIMIT ?4"
    );
    let (partitions, executors) = (json(&request.partitions)?, json(&request.executors)?);
    concurrent(conn, cache, &rest, params![request.until.as_ms(), partitions, executors, request.runs.len() as i64])
}

/// The namespaces that are shown as a list; NULL for all.
pub(in crate::sqlite) fn names_of(scope: &NamespaceScope) -> StoreResult<Option<String>> {
    match scope {
        NamespaceScope::All => Ok(None),
        NamespaceScope::Only(names) => json(names).map(Some),
    }
}
