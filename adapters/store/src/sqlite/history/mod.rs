//! Reading history, sessions, and what a node asks without a lock.

pub(in crate::sqlite) mod purge;

use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{Peek, RowKey, RunRef, UNCLAIMED_PER_PARTITION};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::codec::{run_bytes, run_from};
use crate::feed::{JournalAsk, Numbered};
use crate::sqlite::client::error::statement;
use crate::sqlite::live_output;
use crate::sqlite::rows::{self, CONCURRENT, CONCURRENT_ORDER, RECORD, signed};
use crate::sqlite::select::{all, column, first, json};
use crate::tables::{RecordQuery, Recorded};
use crate::views::select::{Select, history};
use crate::{JobKey, PeekRequest, SessionState, SessionView, StoreResult};

pub(in crate::sqlite) fn ids_of_name(conn: &Connection, key: &JobKey) -> StoreResult<Vec<JobId>> {
    let sql = "SELECT id FROM job WHERE namespace = ?1 AND name = ?2 AND deleted_at IS NULL UNION ALL \
               SELECT id FROM job WHERE namespace = ?1 AND name = ?2 AND deleted_at IS NOT NULL";
    all(conn, sql, [&key.namespace, &key.name], |row| Ok(JobId(column::<i64>(row)? as u64)))
}

/// The text of a list of jobs to look in, where one is given.
pub(in crate::sqlite) fn job_list(jobs: Option<&[JobId]>) -> StoreResult<Option<String>> {
    jobs.map(|jobs| json(&jobs.iter().map(|job| job.0).collect::<Vec<_>>())).transpose()
}

const HISTORY: &str = "run r JOIN job j ON j.id = r.job_id LEFT JOIN output o ON o.run_seq = r.seq";

pub(in crate::sqlite) fn record(conn: &Connection, run: RunId) -> StoreResult<Option<Recorded>> {
    let sql = format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM {HISTORY} WHERE r.id = ?1");
    first(conn, &sql, [run_bytes(run)], rows::recorded)
}

pub(in crate::sqlite) fn records(conn: &Connection, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
    let Select { sql, params } = history(query);
    let sql = format!("SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated FROM {HISTORY} WHERE TRUE{sql}");
    all(conn, &sql, params_from_iter(params), rows::recorded)
}

/// The params that were given for a manual run.
pub(in crate::sqlite) fn run_params(conn: &Connection, firing: &FiringKey) -> StoreResult<Option<Arc<str>>> {
    let sql = "SELECT params FROM run_params WHERE job_id = ?1 AND due_at = ?2";
    first(conn, sql, params![signed(firing.job.0), firing.due_at.as_ms()], column::<String>)
        .map(|text| text.map(Arc::from))
}

/// History by its numbers.
pub(in crate::sqlite) fn numbered(conn: &Connection, ask: &JournalAsk) -> StoreResult<Numbered<Recorded>> {
    let newest = first(conn, "SELECT coalesce(max(seq), 0) FROM run", [], column::<i64>)?;
    let read = |condition: &str, params: &[i64]| {
        let sql = format!(
            "SELECT {RECORD}, r.node, j.namespace, j.name, o.truncated, r.seq FROM {HISTORY} WHERE {condition} \
             ORDER BY r.seq LIMIT ?"
        );
        let numbered = |row: &Row<'_>| {
            let seq: i64 = row.get("seq").map_err(statement)?;
            Ok((seq as u64, rows::recorded(row)?))
        };
        all(conn, &sql, params_from_iter(params), numbered)
    };
    let mut found = Vec::new();
    for span in &ask.gaps {
        found.extend(read("r.seq BETWEEN ? AND ?", &[signed(span.first), signed(span.last), i64::MAX])?);
    }
    if ask.limit > 0 {
        let limit = i64::try_from(ask.limit).unwrap_or(i64::MAX);
        found.extend(read("r.seq > ?", &[signed(ask.after), limit])?);
    }
    Ok(Numbered { newest: newest.unwrap_or(0) as u64, rows: found })
}

/// The newest record of a job.
pub(in crate::sqlite) fn last_record(conn: &Connection, job: JobId) -> StoreResult<Option<RunRecord>> {
    let sql = format!(
        "SELECT {RECORD} FROM run r WHERE r.job_id = ?1 ORDER BY r.due_at DESC, r.attempt DESC, r.id DESC LIMIT 1"
    );
    first(conn, &sql, [signed(job.0)], rows::record)
}

const SESSION: &str =
    "SELECT id, node, address, version, state, seq, started_at, heartbeat_at, wrote_back FROM session";

pub(in crate::sqlite) fn sessions(conn: &Connection, with_counts: bool) -> StoreResult<Vec<SessionView>> {
    let mut sessions = all(conn, &format!("{SESSION} ORDER BY id"), [], rows::session)?;
    if with_counts {
        let sql = "SELECT held_session, started_at IS NOT NULL, count(*) FROM \
                   (SELECT held_session, started_at FROM job_state WHERE held_session IS NOT NULL UNION ALL \
                   SELECT held_session, started_at FROM concurrent_run WHERE held_session IS NOT NULL) GROUP BY 1, 2";
        let read =
            |row: &Row<'_>| -> rusqlite::Result<(i64, bool, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
        for (session, started, count) in all(conn, sql, [], |row| read(row).map_err(statement))? {
            let holder = sessions.iter_mut().find(|view| signed(view.beat.id.as_u64()) == session);
            if let Some(view) = holder {
                *(if started { &mut view.executing } else { &mut view.prepared }) = count as u64;
            }
        }
    }
    Ok(sessions)
}

/// One statement for all partitions and both tables: of each partition the first entries in the index.
pub(in crate::sqlite) fn peek(
    conn: &Connection,
    request: &PeekRequest,
    partitions: u16,
    now: Timestamp,
) -> StoreResult<Peek> {
    let sql = format!(
        "SELECT s.partition_id, s.executor, s.claim_at, s.version, s.id, NULL, NULL FROM json_each(?1) p \
         CROSS JOIN job_state s WHERE s.id IN (SELECT id FROM job_state WHERE partition_id = p.value \
         AND claim_at <= ?2 AND executor IN (SELECT value FROM json_each(?3)) ORDER BY claim_at, id LIMIT ?4) UNION ALL \
         SELECT partition_id, executor, claim_at, version, job_id, due_at, trigger FROM (SELECT s.partition_id, \
         s.executor, a.claim_at, a.version, a.job_id, a.due_at, a.trigger, row_number() OVER \
         (PARTITION BY s.partition_id ORDER BY a.claim_at, {CONCURRENT_ORDER}) AS place \
         FROM concurrent_run a CROSS JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ?2 \
         AND s.executor IN (SELECT value FROM json_each(?3))) WHERE place <= ?4"
    );
    let (all_partitions, executors) = (json(&(0..partitions).collect::<Vec<_>>())?, json(&request.executors)?);
    let params = params![all_partitions, request.until.as_ms(), executors, UNCLAIMED_PER_PARTITION as i64];
    let found = all(conn, &sql, params, rows::unclaimed)?;
    let cancels = "SELECT held_run FROM job_state WHERE cancel IS NOT NULL AND held_session = ?1 UNION ALL \
                   SELECT held_run FROM concurrent_run WHERE cancel IS NOT NULL AND held_session = ?1";
    let cancels = all(conn, cancels, [signed(request.session.as_u64())], |row| Ok(run_from(column(row)?)))?;
    let wanted_outputs = live_output::wanted(conn, request.session, now)?;
    let live = [SessionState::Live.as_str()];
    let claimants = all(conn, "SELECT id FROM session WHERE state = ?1", live, |row| {
        Ok(SessionId::from_random(column::<i64>(row)? as u64))
    })?;
    Ok(Peek { claimants, cancels, wanted_outputs, ..carillon_domain::store::peek(&request.partitions, found) })
}

pub(in crate::sqlite) fn held(conn: &Connection, session: SessionId) -> StoreResult<Vec<RunRef>> {
    let session = signed(session.as_u64());
    let jobs = "SELECT id, held_run, version FROM job_state WHERE held_session = ?1 ORDER BY id";
    let of_job = |row: &Row<'_>| -> rusqlite::Result<RunRef> {
        let row_key = RowKey::Job(JobId(row.get::<_, i64>(0)? as u64));
        Ok(RunRef { row: row_key, run: run_from(row.get(1)?), version: row.get::<_, i64>(2)? as u64 })
    };
    let mut held = all(conn, jobs, [session], |row| of_job(row).map_err(statement))?;
    let concurrent =
        format!("SELECT {CONCURRENT} FROM concurrent_run a WHERE a.held_session = ?1 ORDER BY {CONCURRENT_ORDER}");
    for row in all(conn, &concurrent, [session], rows::concurrent)? {
        let run = row.phase.held().map(|held| held.run);
        held.extend(run.map(|run| RunRef { row: RowKey::Concurrent(row.key), run, version: row.version }));
    }
    Ok(held)
}

pub(in crate::sqlite) fn output(conn: &Connection, run: RunId) -> StoreResult<Option<crate::Output>> {
    let sql = "SELECT o.bytes, o.truncated FROM run r JOIN output o ON o.run_seq = r.seq WHERE r.id = ?1";
    let read = |row: &Row<'_>| Ok(crate::Output { bytes: row.get(0)?, truncated: row.get(1)? });
    conn.prepare_cached(sql).and_then(|mut found| found.query_row([run_bytes(run)], read).optional()).map_err(statement)
}
