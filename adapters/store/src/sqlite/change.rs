//! The writes of a commit. Every row of a state is matched by the version that was read.

use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, JobState};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::job::Job;
use carillon_domain::partition::partition_of;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Params, ToSql, params};

use crate::codec::{ConcurrentColumns, StateColumns, cancel_name, firing_text, run_bytes};
use crate::definition::{Definition, to_document};
use crate::guarded::guarded;
use crate::sqlite::audit;
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select;
use crate::tables::{Write, WriteSet};
use crate::{Output, StoreError, StoreResult};

pub(in crate::sqlite) fn execute(conn: &Connection, sql: &str, params: impl Params) -> StoreResult<usize> {
    conn.prepare_cached(sql).and_then(|mut prepared| prepared.execute(params)).map_err(statement)
}

fn exactly_one(conn: &Connection, sql: &str, params: impl Params) -> StoreResult<()> {
    match execute(conn, sql, params)? {
        1 => Ok(()),
        _ if !enabled(Guard::UpdateMatches) => Ok(()),
        _ => Err(StoreError::Retryable("a row has moved on since it was read".to_owned())),
    }
}

/// Writes all of it, inside the transaction of the caller.
pub(in crate::sqlite) fn write(
    conn: &Connection,
    changes: WriteSet,
    partitions: u16,
    now: Timestamp,
) -> StoreResult<()> {
    for write in &changes.jobs {
        write_job(conn, write, partitions)?;
    }
    if let Some(version) = changes.jobs.iter().filter_map(Write::deleted_version).max() {
        keep_highest_version(conn, version)?;
    }
    for write in &changes.concurrent {
        write_concurrent(conn, write)?;
    }
    for (id, definition) in &changes.definitions {
        write_definition(conn, *id, definition)?;
    }
    for id in &changes.deleted {
        execute(conn, "UPDATE job SET deleted_at = ?2 WHERE id = ?1", params![signed(id.0), now.as_ms()])?;
    }
    for (firing, params) in &changes.run_params {
        let sql = "INSERT INTO run_params (job_id, due_at, params) VALUES (?1, ?2, ?3)";
        execute(conn, sql, params![signed(firing.job.0), firing.due_at.as_ms(), params.as_ref()])?;
    }
    changes.records.iter().try_for_each(|record| write_record(conn, record))?;
    changes.outputs.iter().try_for_each(|(run, output)| write_output(conn, *run, output))?;
    changes.audit.iter().try_for_each(|entry| audit::write(conn, entry))
}

fn keep_highest_version(conn: &Connection, version: u64) -> StoreResult<()> {
    let sql = "INSERT INTO meta (name, value) VALUES ('highest_version', ?1) ON CONFLICT (name) \
               DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))";
    execute(conn, sql, [version.to_string()]).map(|_| ())
}

/// The highest version of a deleted job, 0 if there was none.
pub(in crate::sqlite) fn highest_version(conn: &Connection) -> StoreResult<u64> {
    let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'highest_version'";
    Ok(select::first(conn, sql, [], select::column::<i64>)?.unwrap_or(0) as u64)
}

/// Of a held row that stays held, as at a start: no index is touched.
const UPDATE_UNINDEXED: &str = "UPDATE job_state SET version = ?3, generation = ?4, anchor_at = ?5, cursor_at = ?6, \
     armed = ?7, manual = ?8, last_manual_at = ?9, catch_up_until = ?10, held = ?11, started_at = ?12, \
     fencing_token = ?13, pause_since = ?14, pause_until = ?15, pause_reason = ?16, deleted = ?17 \
     WHERE id = ?1 AND version = ?2";

const UPDATE: &str = "UPDATE job_state SET version = ?3, generation = ?4, anchor_at = ?5, cursor_at = ?6, \
     armed = ?7, manual = ?8, last_manual_at = ?9, catch_up_until = ?10, held = ?11, started_at = ?12, \
     fencing_token = ?13, pause_since = ?14, pause_until = ?15, pause_reason = ?16, deleted = ?17, \
     executor = ?18, claim_at = ?19, manual_run = ?20, held_run = ?21, held_session = ?22, cancel = ?23, \
     last_status = ?24, troubled_since = ?25 \
     WHERE id = ?1 AND version = ?2";

const INSERT: &str = "INSERT INTO job_state (id, version, generation, anchor_at, cursor_at, armed, manual, \
     last_manual_at, catch_up_until, held, started_at, fencing_token, pause_since, pause_until, pause_reason, deleted, \
     executor, claim_at, manual_run, held_run, held_session, cancel, last_status, troubled_since, partition_id) VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, \
     ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)";

fn write_job(conn: &Connection, write: &Write<JobState>, partitions: u16) -> StoreResult<()> {
    let guard = write.before.as_ref().map_or(0, |before| signed(before.version));
    let Some(after) = &write.after else {
        let Some(before) = &write.before else { return Ok(()) };
        let sql = "DELETE FROM job_state WHERE id = ?1 AND version = ?2";
        let sql = guarded(Guard::DeleteVersion, sql, "version = ?2", "0 <= ?2");
        return exactly_one(conn, &sql, params![signed(before.id.0), guard]);
    };
    let row = StateColumns::of(after);
    let (id, version, generation) = (signed(row.id), signed(row.version), signed(row.generation));
    let (token, session) = (signed(row.held.fencing_token), row.held.session.map(signed));
    let job = &write.definition.job;
    let [armed, manual, held] = [row.armed, row.manual, row.held.firing].map(|firing| firing.map(firing_text));
    let cancel = row.cancel.map(cancel_name);
    let partition = partition_of(&job.namespace, &job.name, partitions);
    let all: [&dyn ToSql; 26] = [
        &id,
        &guard,
        &version,
        &generation,
        &row.anchor_at,
        &row.cursor_at,
        &armed,
        &manual,
        &row.last_manual_at,
        &row.catch_up_until,
        &held,
        &row.held.started_at,
        &token,
        &row.pause_since,
        &row.pause_until,
        &row.pause_reason,
        &row.deleted,
        &job.executor,
        &row.claim_at,
        &row.manual_run,
        &row.held.run,
        &session,
        &cancel,
        &row.last_status,
        &row.troubled_since,
        &partition,
    ];
    let (sql, length) = match &write.before {
        None => return exactly_one(conn, INSERT, &all[..]),
        Some(before) if same_place(before, after) => (UPDATE_UNINDEXED, 17),
        Some(_) => (UPDATE, 25),
    };
    let sql = guarded(Guard::UpdateVersion, sql, "version = ?2", "0 <= ?2");
    exactly_one(conn, &sql, &all[..length])
}

/// Whether a row stands where it stood in every index.
fn same_place(before: &JobState, after: &JobState) -> bool {
    let held = |state: &JobState| state.phase.held().map(|held| (held.session, held.run));
    let manual = |state: &JobState| state.manual.map(|manual| manual.run);
    before.claim_at() == after.claim_at()
        && held(before) == held(after)
        && manual(before) == manual(after)
        && before.cancel == after.cancel
        && before.last_end == after.last_end
        && before.generation == after.generation
}

fn write_concurrent(conn: &Connection, write: &Write<ConcurrentRun>) -> StoreResult<()> {
    let guard = write.before.as_ref().map_or(0, |before| signed(before.version));
    let Some(row) = write.after.as_deref().or(write.before.as_deref()).map(ConcurrentColumns::of) else {
        return Ok(());
    };
    let (job, trigger) = (signed(row.job_id), row.trigger.as_str());
    if write.after.is_none() {
        let sql = "DELETE FROM concurrent_run WHERE job_id = ?1 AND due_at = ?2 AND trigger = ?3 AND version = ?4";
        let sql = guarded(Guard::DeleteConcurrentVersion, sql, "version = ?4", "0 <= ?4");
        return exactly_one(conn, &sql, params![job, row.due_at, trigger, guard]);
    }
    let sql = match write.before {
        None => {
            "INSERT INTO concurrent_run (job_id, due_at, trigger, claim_at, version, waiting, waiting_run, held, held_run, \
             held_session, started_at, fencing_token, cancel, withdrawn) \
             VALUES (?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
        }
        Some(_) => {
            "UPDATE concurrent_run SET claim_at = ?5, version = ?6, waiting = ?7, waiting_run = ?8, held = ?9, held_run = ?10, \
             held_session = ?11, started_at = ?12, fencing_token = ?13, cancel = ?14, withdrawn = ?15 \
             WHERE job_id = ?1 AND due_at = ?2 AND trigger = ?3 AND version = ?4"
        }
    };
    let sql = match write.before {
        None => sql.into(),
        Some(_) => {
            guarded(Guard::UpdateConcurrentVersion, sql, "trigger = ?3 AND version = ?4", "trigger = ?3 AND 0 <= ?4")
        }
    };
    let params = params![
        job,
        row.due_at,
        trigger,
        guard,
        row.claim_at,
        signed(row.version),
        row.waiting.map(firing_text),
        row.waiting_run,
        row.held.firing.map(firing_text),
        row.held.run,
        row.held.session.map(signed),
        row.held.started_at,
        signed(row.held.fencing_token),
        row.cancel.map(cancel_name),
        row.withdrawn,
    ];
    exactly_one(conn, &sql, params)
}

fn write_definition(conn: &Connection, id: JobId, definition: &Definition) -> StoreResult<()> {
    let sql = "UPDATE job SET document = ?2, generation = ?3, anchor_at = ?4, updated_at = ?5 WHERE id = ?1";
    let document = to_document(&definition.job)?;
    let (anchor, updated) = (definition.anchor_at.as_ms(), definition.updated_at.as_ms());
    exactly_one(conn, sql, params![signed(id.0), document, signed(definition.generation), anchor, updated])
}

/// A record whose id is there already is the same fact. A second one for the same attempt would be a broken rule; it must
/// not wedge the row, so it is told and left out.
fn write_record(conn: &Connection, record: &RunRecord) -> StoreResult<()> {
    let sql = "INSERT INTO run (id, job_id, due_at, trigger, attempt, status, reason, exit_code, signal, started_at, \
               finished_at, lag_ms, session, node, fencing_token, count, first_due_at, prepared_ms, cpu_ms, peak_memory_kib) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, (SELECT node FROM session WHERE id = ?13), \
               ?14, ?15, ?16, ?17, ?18, ?19) \
               ON CONFLICT DO NOTHING";
    let sql = guarded(Guard::RecordTwice, sql, "ON CONFLICT DO NOTHING", "");
    let params = params![
        run_bytes(record.id),
        signed(record.job.0),
        record.due_at.as_ms(),
        record.trigger.as_str(),
        record.attempt,
        record.status.as_str(),
        record.reason.as_ref().map(ToString::to_string),
        record.exit_code,
        record.signal,
        record.started_at.map(Timestamp::as_ms),
        record.finished_at.as_ms(),
        record.lag_ms,
        record.session.map(|session| signed(session.as_u64())),
        record.fencing_token.map(signed),
        signed(record.count),
        record.first_due_at.as_ms(),
        record.prepared_ms.map(signed),
        record.usage.cpu_ms.map(signed),
        record.usage.peak_memory_kib.map(signed),
    ];
    if execute(conn, &sql, params)? == 0 {
        let same = "SELECT 1 FROM run WHERE id = ?1";
        if select::first(conn, same, [run_bytes(record.id)], |_| Ok(()))?.is_none() {
            tracing::error!(run = %record.id, job = %record.job, "a second record of one attempt was left out");
        }
    }
    Ok(())
}

fn write_output(conn: &Connection, run: RunId, output: &Output) -> StoreResult<()> {
    let sql = "INSERT INTO output (run_seq, truncated, bytes) SELECT seq, ?2, ?3 FROM run WHERE id = ?1 \
               ON CONFLICT DO NOTHING";
    let sql = guarded(Guard::OutputTwice, sql, "ON CONFLICT DO NOTHING", "");
    execute(conn, &sql, params![run_bytes(run), output.truncated, output.bytes]).map(|_| ())
}

/// Stores new definitions.
pub(in crate::sqlite) fn create_jobs(conn: &Connection, jobs: &[Arc<Job>], now: Timestamp) -> StoreResult<Vec<JobId>> {
    let sql = "INSERT INTO job (namespace, name, generation, anchor_at, document, created_at, updated_at) \
               VALUES (?1, ?2, 1, ?3, ?4, ?3, ?3)";
    let mut ids = Vec::with_capacity(jobs.len());
    for job in jobs {
        exactly_one(conn, sql, params![job.namespace, job.name, now.as_ms(), to_document(job)?])?;
        ids.push(JobId(conn.last_insert_rowid() as u64));
    }
    Ok(ids)
}
