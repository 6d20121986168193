//! Rows of SQLite as the codec's columns.

use carillon_domain::firing::{ConcurrentRun, Firing, JobState};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::measured::Usage;
use carillon_domain::node::port::Unclaimed;
use carillon_domain::run::{Reason, RunRecord, Status};
use carillon_domain::time::Timestamp;
use rusqlite::types::{ToSqlOutput, Type};
use rusqlite::{Row, ToSql};

use crate::codec::{
    ConcurrentColumns, HeldColumns, StateColumns, cancel_from, firing_from, named, row_key, run_from, trigger_from,
};
use crate::sqlite::client::error::{statement, unreadable};
use crate::tables::Recorded;
use crate::views::select::Param;
use crate::{JobKey, SessionBeat, SessionState, SessionView, StoreResult};

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Param::Text(text) => text.to_sql(),
            Param::Number(number) => number.to_sql(),
            Param::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

pub(in crate::sqlite) const STATE: &str = "s.id, s.claim_at, s.version, s.generation, s.anchor_at, s.cursor_at, s.armed, s.manual, \
     s.manual_run, s.last_manual_at, s.catch_up_until, s.held, s.held_run, s.held_session, s.started_at, \
     s.fencing_token, s.pause_since, s.pause_until, s.pause_reason, s.cancel, s.deleted, s.last_status, \
     s.troubled_since";

pub(in crate::sqlite) const CONCURRENT: &str = "a.job_id, a.due_at, a.trigger, a.claim_at, a.version, a.waiting, a.waiting_run, a.held, \
     a.held_run, a.held_session, a.started_at, a.fencing_token, a.cancel, a.withdrawn";

/// The order of `FiringKey`.
pub(in crate::sqlite) const CONCURRENT_ORDER: &str = "a.job_id, a.due_at, instr('schedule manual misfire', a.trigger)";

pub(in crate::sqlite) const RECORD: &str = "r.id, r.job_id, r.due_at, r.trigger, r.attempt, r.status, r.reason, r.exit_code, \
     r.signal, r.started_at, r.finished_at, r.lag_ms, r.session, r.fencing_token, r.count, r.first_due_at, \
     r.prepared_ms, r.cpu_ms, r.peak_memory_kib";

/// SQLite knows only signed numbers.
pub(in crate::sqlite) const fn signed(number: u64) -> i64 {
    number as i64
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}

fn maybe_unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number as u64))
}

fn firing(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Firing>> {
    let text: Option<String> = row.get(column)?;
    let unreadable = |why: String| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into());
    text.map(|text| firing_from(&text)).transpose().map_err(unreadable)
}

pub(in crate::sqlite) fn held(row: &Row<'_>, from: usize) -> rusqlite::Result<HeldColumns> {
    Ok(HeldColumns {
        firing: firing(row, from)?,
        run: row.get(from + 1)?,
        session: maybe_unsigned(row, from + 2)?,
        started_at: row.get(from + 3)?,
        fencing_token: unsigned(row, from + 4)?,
    })
}

fn cancel(text: Option<String>) -> StoreResult<Option<carillon_domain::firing::CancelledBy>> {
    text.map(|text| cancel_from(&text)).transpose().map_err(unreadable)
}

fn state_columns(row: &Row<'_>) -> rusqlite::Result<(StateColumns, Option<String>)> {
    let columns = StateColumns {
        id: unsigned(row, 0)?,
        claim_at: row.get(1)?,
        version: unsigned(row, 2)?,
        generation: unsigned(row, 3)?,
        anchor_at: row.get(4)?,
        cursor_at: row.get(5)?,
        armed: firing(row, 6)?,
        manual: firing(row, 7)?,
        manual_run: row.get(8)?,
        last_manual_at: row.get(9)?,
        catch_up_until: row.get(10)?,
        held: held(row, 11)?,
        pause_since: row.get(16)?,
        pause_until: row.get(17)?,
        pause_reason: row.get(18)?,
        cancel: None,
        deleted: row.get(20)?,
        last_status: row.get(21)?,
        troubled_since: row.get(22)?,
    };
    Ok((columns, row.get(19)?))
}

/// A row of [`STATE`].
pub(in crate::sqlite) fn state(row: &Row<'_>) -> StoreResult<JobState> {
    let (columns, who) = state_columns(row).map_err(statement)?;
    Ok(StateColumns { cancel: cancel(who)?, ..columns }.state())
}

/// A row of [`CONCURRENT`].
pub(in crate::sqlite) fn concurrent(row: &Row<'_>) -> StoreResult<ConcurrentRun> {
    let trigger: String = row.get(2).map_err(statement)?;
    let trigger = trigger_from(&trigger).map_err(unreadable)?;
    let columns = || {
        Ok(ConcurrentColumns {
            job_id: unsigned(row, 0)?,
            due_at: row.get(1)?,
            trigger,
            claim_at: row.get(3)?,
            version: unsigned(row, 4)?,
            waiting: firing(row, 5)?,
            waiting_run: row.get(6)?,
            held: held(row, 7)?,
            cancel: None,
            withdrawn: row.get(13)?,
        })
    };
    let who = row.get(12).map_err(statement)?;
    Ok(ConcurrentColumns { cancel: cancel(who)?, ..columns().map_err(statement)? }.row())
}

/// A row of [`RECORD`].
pub(in crate::sqlite) fn record(row: &Row<'_>) -> StoreResult<RunRecord> {
    let trigger: String = row.get(3).map_err(statement)?;
    let status: String = row.get(5).map_err(statement)?;
    let trigger = trigger_from(&trigger).map_err(unreadable)?;
    let status = named(&Status::ALL, Status::as_str, &status).map_err(unreadable)?;
    let time = |column| row.get(column).map(Timestamp::from_ms);
    let maybe = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(Timestamp::from_ms));
    let columns = || {
        Ok(RunRecord {
            id: run_from(row.get(0)?),
            job: JobId(unsigned(row, 1)?),
            due_at: time(2)?,
            trigger,
            attempt: row.get(4)?,
            status,
            reason: row.get::<_, Option<String>>(6)?.map(|text| Reason::from_text(&text)),
            exit_code: row.get(7)?,
            signal: row.get(8)?,
            started_at: maybe(9)?,
            finished_at: time(10)?,
            lag_ms: row.get(11)?,
            session: maybe_unsigned(row, 12)?.map(SessionId::from_random),
            fencing_token: maybe_unsigned(row, 13)?,
            count: unsigned(row, 14)?,
            first_due_at: time(15)?,
            prepared_ms: maybe_unsigned(row, 16)?,
            usage: Usage { cpu_ms: maybe_unsigned(row, 17)?, peak_memory_kib: maybe_unsigned(row, 18)? },
        })
    };
    columns().map_err(statement)
}

/// A row of [`RECORD`], `node, namespace, name, truncated`.
pub(in crate::sqlite) fn recorded(row: &Row<'_>) -> StoreResult<Recorded> {
    let beside = || {
        let key = JobKey { namespace: row.get(20)?, name: row.get(21)? };
        Ok((row.get(19)?, key, row.get::<_, Option<bool>>(22)?.unwrap_or(false)))
    };
    let (node, key, output_truncated) = beside().map_err(statement)?;
    Ok(Recorded { record: record(row)?, key, node, output_truncated })
}

/// A row of `partition_id, executor, claim_at, version, job_id, due_at, trigger`, the last two NULL for a job's own row.
pub(in crate::sqlite) fn unclaimed(row: &Row<'_>) -> StoreResult<Unclaimed> {
    let columns = || -> rusqlite::Result<_> {
        let claim_at = Timestamp::from_ms(row.get(2)?);
        let key = (JobId(unsigned(row, 4)?), row.get::<_, Option<i64>>(5)?, row.get::<_, Option<String>>(6)?);
        Ok((row.get(0)?, row.get(1)?, claim_at, unsigned(row, 3)?, key))
    };
    let (partition, executor, claim_at, version, (job, due_at, trigger)) = columns().map_err(statement)?;
    let row = row_key(job, due_at, trigger.as_deref()).map_err(unreadable)?;
    Ok(Unclaimed { partition, claim_at, row, version, executor })
}

/// A row of `id, node, address, version, state, seq, started_at, heartbeat_at, wrote_back`.
pub(in crate::sqlite) fn session(row: &Row<'_>) -> StoreResult<SessionView> {
    let state: String = row.get(4).map_err(statement)?;
    let state = named(&SessionState::ALL, SessionState::as_str, &state).map_err(unreadable)?;
    let columns = || {
        Ok(SessionView {
            beat: SessionBeat { id: SessionId::from_random(unsigned(row, 0)?), seq: unsigned(row, 5)?, state },
            node: row.get(1)?,
            address: row.get(2)?,
            version: row.get(3)?,
            started_at: Timestamp::from_ms(row.get(6)?),
            heartbeat_at: Timestamp::from_ms(row.get(7)?),
            server: None,
            terms: None,
            wrote_back: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_ms),
            prepared: 0,
            executing: 0,
        })
    };
    columns().map_err(statement)
}
