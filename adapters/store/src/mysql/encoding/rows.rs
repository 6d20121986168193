//! Rows of MySQL as the codec's columns, read from left to right.

use carillon_domain::firing::{ConcurrentRun, Firing, JobState};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::measured::Usage;
use carillon_domain::node::port::Unclaimed;
use carillon_domain::run::{Reason, RunRecord, Status};
use carillon_domain::time::Timestamp;
use mysql_async::prelude::FromValue;
use mysql_async::{Row, Value};

use crate::codec::{
    ConcurrentColumns, HeldColumns, StateColumns, cancel_from, firing_from, named, row_key, run_from, trigger_from,
};
use crate::mysql::client::agreement::terms_of;
use crate::mysql::client::error::unreadable;
use crate::mysql::write::update::NOT_STARTED;
use crate::tables::Recorded;
use crate::{JobKey, SessionBeat, SessionState, SessionView, StoreResult};

pub(in crate::mysql) const STATE: &str = "s.id, s.claim_at, s.version, s.generation, s.anchor_at, s.cursor_at, s.armed, \
     s.manual, s.manual_run, s.last_manual_at, s.catch_up_until, s.held, s.held_run, s.held_session, s.started_at, \
     s.fencing_token, s.pause_since, s.pause_until, s.pause_reason, s.cancel, s.deleted, s.last_status, \
     s.troubled_since";

pub(in crate::mysql) const CONCURRENT: &str = "a.job_id, a.due_at, a.trigger_name, a.claim_at, a.version, a.waiting, a.waiting_run, \
     a.held, a.held_run, a.held_session, a.started_at, a.fencing_token, a.cancel, a.withdrawn";

/// The order of `FiringKey`.
pub(in crate::mysql) const CONCURRENT_ORDER: &str =
    "a.job_id, a.due_at, FIELD(a.trigger_name, 'schedule', 'manual', 'misfire')";

pub(in crate::mysql) const RECORD: &str = "r.id, r.job_id, r.due_at, r.trigger_name, r.attempt, r.status, r.reason, r.exit_code, \
     r.signal_number, r.started_at, r.finished_at, r.lag_ms, r.session, r.fencing_token, r.due_count, r.first_due_at, \
     r.prepared_ms, r.cpu_ms, r.peak_memory_kib";

pub(in crate::mysql) const SESSION: &str = "n.id, n.node, n.address, n.version, n.state, n.seq, n.started_at, n.heartbeat_at, n.server, \
     n.dead_after_ms, n.expire_after_ms, n.wrote_back";

/// The columns of one row.
pub(in crate::mysql) struct Columns {
    row: Row,
    at: usize,
}

impl Columns {
    pub fn of(row: Row) -> Self {
        Self { row, at: 0 }
    }

    /// The next column.
    pub fn next<T: FromValue>(&mut self) -> StoreResult<T> {
        let at = self.at;
        self.at += 1;
        match self.row.take_opt(at) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(unreadable(format!("column {at}: {error}"))),
            None => Err(unreadable(format!("column {at} is not there"))),
        }
    }

    /// Leaves out as many columns as `columns` names.
    pub fn skip(&mut self, columns: &str) {
        self.at += columns.split(',').count();
    }

    /// Whether the next column is NULL.
    pub fn is_null(&self) -> bool {
        self.row.as_ref(self.at).is_none_or(|value| *value == Value::NULL)
    }

    fn maybe_run(&mut self) -> StoreResult<Option<[u8; 16]>> {
        let bytes: Option<Vec<u8>> = self.next()?;
        let wrong = |bytes: Vec<u8>| unreadable(format!("a run id of {} bytes", bytes.len()));
        bytes.map(|bytes| bytes.try_into().map_err(wrong)).transpose()
    }

    /// A run id, if there is one.
    pub fn maybe_run_id(&mut self) -> StoreResult<Option<RunId>> {
        Ok(self.maybe_run()?.map(run_from))
    }

    pub fn run(&mut self) -> StoreResult<RunId> {
        self.maybe_run()?.map(run_from).ok_or_else(|| unreadable("a run id is NULL"))
    }

    pub fn time(&mut self) -> StoreResult<Timestamp> {
        self.next().map(Timestamp::from_ms)
    }

    pub fn maybe_time(&mut self) -> StoreResult<Option<Timestamp>> {
        self.next::<Option<i64>>().map(|at| at.map(Timestamp::from_ms))
    }

    /// A name of which `all` has the value.
    fn name<T: Copy>(&mut self, all: &[T], name: impl Fn(T) -> &'static str) -> StoreResult<T> {
        named(all, name, &self.next::<String>()?).map_err(unreadable)
    }

    /// A firing, if there is one.
    pub fn firing(&mut self) -> StoreResult<Option<Firing>> {
        self.next::<Option<String>>()?.map(|text| firing_from(&text)).transpose().map_err(unreadable)
    }

    pub fn held(&mut self) -> StoreResult<HeldColumns> {
        Ok(HeldColumns {
            firing: self.firing()?,
            run: self.maybe_run()?,
            session: self.next()?,
            started_at: self.next::<Option<i64>>()?.filter(|at| *at != NOT_STARTED),
            fencing_token: self.next()?,
        })
    }

    fn cancel(&mut self) -> StoreResult<Option<carillon_domain::firing::CancelledBy>> {
        self.next::<Option<String>>()?.map(|text| cancel_from(&text)).transpose().map_err(unreadable)
    }
}

/// A row of [`STATE`].
pub(in crate::mysql) fn state(row: Row) -> StoreResult<JobState> {
    state_of(&mut Columns::of(row))
}

/// The columns of [`STATE`].
pub(in crate::mysql) fn state_of(from: &mut Columns) -> StoreResult<JobState> {
    let columns = StateColumns {
        id: from.next()?,
        claim_at: from.next()?,
        version: from.next()?,
        generation: from.next()?,
        anchor_at: from.next()?,
        cursor_at: from.next()?,
        armed: from.firing()?,
        manual: from.firing()?,
        manual_run: from.maybe_run()?,
        last_manual_at: from.next()?,
        catch_up_until: from.next()?,
        held: from.held()?,
        pause_since: from.next()?,
        pause_until: from.next()?,
        pause_reason: from.next()?,
        cancel: from.cancel()?,
        deleted: from.next()?,
        last_status: from.next()?,
        troubled_since: from.next()?,
    };
    Ok(columns.state())
}

/// A row of [`CONCURRENT`].
pub(in crate::mysql) fn concurrent(row: Row) -> StoreResult<ConcurrentRun> {
    let mut from = Columns::of(row);
    let columns = ConcurrentColumns {
        job_id: from.next()?,
        due_at: from.next()?,
        trigger: trigger_from(&from.next::<String>()?).map_err(unreadable)?,
        claim_at: from.next()?,
        version: from.next()?,
        waiting: from.firing()?,
        waiting_run: from.maybe_run()?,
        held: from.held()?,
        cancel: from.cancel()?,
        withdrawn: from.next()?,
    };
    Ok(columns.row())
}

/// The columns of [`RECORD`].
pub(in crate::mysql) fn record_of(from: &mut Columns) -> StoreResult<RunRecord> {
    Ok(RunRecord {
        id: from.run()?,
        job: JobId(from.next()?),
        due_at: from.time()?,
        trigger: trigger_from(&from.next::<String>()?).map_err(unreadable)?,
        attempt: from.next()?,
        status: from.name(&Status::ALL, Status::as_str)?,
        reason: from.next::<Option<String>>()?.map(|text| Reason::from_text(&text)),
        exit_code: from.next()?,
        signal: from.next()?,
        started_at: from.maybe_time()?,
        finished_at: from.time()?,
        lag_ms: from.next()?,
        session: from.next::<Option<u64>>()?.map(SessionId::from_random),
        fencing_token: from.next()?,
        count: from.next()?,
        first_due_at: from.time()?,
        prepared_ms: from.next()?,
        usage: Usage { cpu_ms: from.next()?, peak_memory_kib: from.next()? },
    })
}

/// A row of [`RECORD`].
pub(in crate::mysql) fn record(row: Row) -> StoreResult<RunRecord> {
    record_of(&mut Columns::of(row))
}

/// A row of [`RECORD`], `node, namespace, name, truncated`.
pub(in crate::mysql) fn recorded(row: Row) -> StoreResult<Recorded> {
    recorded_of(&mut Columns::of(row))
}

/// The columns of [`recorded`].
pub(in crate::mysql) fn recorded_of(from: &mut Columns) -> StoreResult<Recorded> {
    let record = record_of(from)?;
    let node = from.next()?;
    let key = JobKey { namespace: from.next()?, name: from.next()? };
    Ok(Recorded { record, key, node, output_truncated: from.next::<Option<bool>>()?.unwrap_or(false) })
}

/// A row of `partition_id, executor, claim_at, version, job_id, due_at, trigger_name`, the last two NULL for a job's own row.
pub(in crate::mysql) fn unclaimed(row: Row) -> StoreResult<Unclaimed> {
    let mut from = Columns::of(row);
    let (partition, executor, claim_at, version) = (from.next()?, from.next()?, from.time()?, from.next()?);
    let (job, due_at, trigger) = (JobId(from.next()?), from.next()?, from.next::<Option<String>>()?);
    let row = row_key(job, due_at, trigger.as_deref()).map_err(unreadable)?;
    Ok(Unclaimed { partition, claim_at, row, version, executor })
}

/// The columns of [`SESSION`].
pub(in crate::mysql) fn session_of(from: &mut Columns) -> StoreResult<SessionView> {
    let id = SessionId::from_random(from.next()?);
    let (node, address, version) = (from.next()?, from.next()?, from.next()?);
    let state = from.name(&SessionState::ALL, SessionState::as_str)?;
    let beat = SessionBeat { id, seq: from.next()?, state };
    let (started_at, heartbeat_at) = (from.time()?, from.time()?);
    let (server, terms) = (from.next()?, terms_of(from.next()?, from.next()?));
    let wrote_back = from.maybe_time()?;
    let (prepared, executing) = (0, 0);
    Ok(SessionView {
        beat,
        node,
        address,
        version,
        started_at,
        heartbeat_at,
        server,
        terms,
        wrote_back,
        prepared,
        executing,
    })
}

/// The state of a session.
pub(in crate::mysql) fn session_state(row: Row) -> StoreResult<SessionState> {
    Columns::of(row).name(&SessionState::ALL, SessionState::as_str)
}
