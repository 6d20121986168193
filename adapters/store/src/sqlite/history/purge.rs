//! Forgetting: history that is too old or too much, and what is left of deleted jobs.

use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::StoreResult;
use crate::purge_cursor::{Counted, PartOfJob, Purge, PurgePosition};
use crate::sqlite::change::execute;
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, column, first};

/// Jobs with more records than they may have, as far as a part of the index tells. Not for the writing thread.
pub(in crate::sqlite) fn crowded_jobs(conn: &Connection, purge: &Purge, from: PurgePosition) -> StoreResult<Counted> {
    let mut left = purge.looked_at();
    let mut parts: Vec<PartOfJob> = Vec::new();
    for further in ["job_id = ?1 AND due_at > ?2", "job_id > ?1 AND ?2 IS NOT NULL"] {
        let sql = format!(
            "SELECT job_id, count(*), max(due_at) FROM (SELECT job_id, due_at FROM run WHERE {further} \
             ORDER BY job_id, due_at LIMIT ?3) GROUP BY job_id ORDER BY job_id"
        );
        let params = [signed(from.job), from.due_at, i64::try_from(left).unwrap_or(i64::MAX)];
        let read = |row: &Row<'_>| -> rusqlite::Result<(i64, i64, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        for (job, records, last_due_at) in all(conn, &sql, params, |row| read(row).map_err(statement))? {
            let records = usize::try_from(records).unwrap_or(0);
            left = left.saturating_sub(records);
            parts.push(PartOfJob { job: job.cast_unsigned(), records, last_due_at });
        }
    }
    Ok(Counted::of(&parts, purge, from))
}

/// Deletes up to `purge.limit` records, and what is left of deleted jobs.
pub(in crate::sqlite) fn purge(conn: &Connection, purge: &Purge, counted: &Counted) -> StoreResult<usize> {
    let mut purged = old_records(conn, purge.before, purge.limit)?;
    for job in &counted.crowded {
        purged += surplus(conn, signed(*job), purge.max_runs_per_job, purge.limit.saturating_sub(purged))?;
    }
    tombstones(conn, purge.limit)?;
    Ok(purged)
}

/// Deletes up to `limit` records that ended before `before`. History is stored in the order of writing, which is nearly that in which runs
/// ended. So only its beginning is read.
fn old_records(conn: &Connection, before: Timestamp, limit: usize) -> StoreResult<usize> {
    let read = |row: &Row<'_>| -> rusqlite::Result<(i64, i64)> { Ok((row.get(0)?, row.get(1)?)) };
    let sql = "SELECT seq, finished_at FROM run ORDER BY seq LIMIT ?1";
    let oldest = all(conn, sql, [i64::try_from(limit).unwrap_or(i64::MAX)], |row| read(row).map_err(statement))?;
    let old = oldest.into_iter().filter(|(_, finished_at)| *finished_at < before.as_ms());
    delete(conn, old.map(|(seq, _)| seq))
}

/// Deletes up to `limit` of the oldest records of a job beyond its newest `max`.
fn surplus(conn: &Connection, job: i64, max: u32, limit: usize) -> StoreResult<usize> {
    let sql = "SELECT seq FROM run WHERE job_id = ?1 ORDER BY due_at DESC, attempt DESC, id DESC LIMIT ?2 OFFSET ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    delete(conn, all(conn, sql, params![job, limit, max], column)?.into_iter())
}

fn delete(conn: &Connection, records: impl Iterator<Item = i64>) -> StoreResult<usize> {
    let mut deleted = 0;
    for seq in records {
        let firing = "SELECT job_id, due_at FROM run WHERE seq = ?1 AND trigger = 'manual'";
        let read = |row: &Row<'_>| -> rusqlite::Result<(i64, i64)> { Ok((row.get(0)?, row.get(1)?)) };
        let manual = first(conn, firing, [seq], |row| read(row).map_err(statement))?;
        deleted += execute(conn, "DELETE FROM run WHERE seq = ?1", [seq])?;
        if let Some((job, due_at)) = manual {
            forget_run_params(conn, job, due_at)?;
        }
    }
    Ok(deleted)
}

/// Deletes the params of a manual run of which nothing is left. An attempt of it may still wait or execute.
fn forget_run_params(conn: &Connection, job: i64, due_at: i64) -> StoreResult<()> {
    let sql = "DELETE FROM run_params WHERE job_id = ?1 AND due_at = ?2 \
               AND NOT EXISTS (SELECT 1 FROM run WHERE job_id = ?1 AND due_at = ?2 AND trigger = 'manual') \
               AND NOT EXISTS (SELECT 1 FROM concurrent_run WHERE job_id = ?1 AND due_at = ?2 AND trigger = 'manual') \
               AND NOT EXISTS (SELECT 1 FROM job_state WHERE id = ?1 \
               AND (manual LIKE ?2 || ' %' OR held LIKE ?2 || ' % manual %'))";
    execute(conn, sql, [job, due_at]).map(|_| ())
}

/// Deletes up to `limit` definitions of deleted jobs that have neither rows nor history.
fn tombstones(conn: &Connection, limit: usize) -> StoreResult<usize> {
    let sql = "DELETE FROM job WHERE id IN (SELECT j.id FROM job j WHERE j.deleted_at IS NOT NULL \
               AND NOT EXISTS (SELECT 1 FROM job_state WHERE id = j.id) \
               AND NOT EXISTS (SELECT 1 FROM concurrent_run WHERE job_id = j.id) \
               AND NOT EXISTS (SELECT 1 FROM run WHERE job_id = j.id) LIMIT ?1)";
    execute(conn, sql, [i64::try_from(limit).unwrap_or(i64::MAX)])
}
