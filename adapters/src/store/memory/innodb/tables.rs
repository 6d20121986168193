//! The operations' view of a transaction: each method is the statements of `store/mysql`, with the locks that these take and
//! in their order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_domain::firing::{ActiveRow, FiringKey, JobState};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::super::data::Data;
use super::line::Line;
use super::locks::Row;
use crate::store::held::{HeldRows, Known};
use crate::store::tables::{
    ActiveJob, Changes, JobRow, JobRows, RecordQuery, Recorded, SeenJob, Standing, Tables, Write, at_once,
};
use crate::store::work::key_of;
use crate::store::{
    ClaimRequest, JobKey, JobQuery, NewSession, Output, SessionBeat, SessionState, SessionView, StoreError,
    UncertainWindow,
};

type Answer<T> = Result<T, StoreError>;

/// The lock row of the sessions; that of a partition is its number and 1.
const SESSIONS: u32 = 0;

/// What is locked besides the rows that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locks {
    /// Nothing, or what the operation locks itself.
    Rows,
    /// The sessions.
    Sessions,
}

/// One transaction.
pub(super) struct Transaction {
    line: Line,
    partitions: u16,
    now_us: i64,
    wrote: bool,
    known: Known,
    held: Arc<Mutex<HeldRows>>,
}

impl Transaction {
    pub async fn new(line: Line, partitions: u16, locks: Locks, held: Arc<Mutex<HeldRows>>) -> Answer<Self> {
        let mut this = Self { line, partitions, now_us: 0, wrote: false, known: Known::default(), held };
        let begun = match locks {
            Locks::Rows => this.look_at_the_clock().await,
            Locks::Sessions => this.lock_rows(&[SESSIONS]).await,
        };
        match begun {
            Ok(()) => Ok(this),
            Err(error) => {
                this.line.give_up().await;
                Err(error)
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldRows> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_at_the_clock(&mut self) -> Answer<()> {
        self.now_us = self.line.read(|data| data.clock.now_us()).await?;
        let now = self.now();
        self.line.write(|server, trx| server.own(trx).map(|own| own.now = now))?;
        Ok(())
    }

    /// Writes lock rows. The time is that after the wait.
    pub async fn lock_rows(&mut self, ids: &[u32]) -> Answer<()> {
        if !ids.is_empty() {
            self.line.statement().await?;
            let rows: Vec<Row> = ids.iter().map(|id| Row::Lock(*id)).collect();
            self.line.lock(&rows).await?;
            self.line.write(|server, trx| server.own(trx).map(|own| own.epochs.extend(ids)))?;
        }
        self.look_at_the_clock().await
    }

    /// Commits what succeeded, rolls back what did not. `true` when it lost against another one and may be tried again.
    pub async fn end<T, E>(mut self, answer: Result<T, E>) -> (Result<T, E>, bool)
    where
        E: From<StoreError>,
        for<'a> &'a E: Into<Failed>,
    {
        let answer = match answer {
            Ok(answer) if self.wrote => self.line.commit().await.map(|()| answer).map_err(E::from),
            answer => answer,
        };
        self.known.end(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner), answer.is_ok());
        let failed = answer.as_ref().is_err_and(|error| matches!(error.into(), Failed::OfTheDatabase));
        let again = failed && self.line.has_conflict();
        match answer {
            Ok(_) if self.wrote => self.line.give_back(),
            _ => self.line.give_up().await,
        }
        (answer, again)
    }

    /// A statement that locks rows and writes them if they are as it wants them.
    async fn statement(&mut self, rows: &[Row]) -> Answer<()> {
        self.line.statement().await?;
        self.wrote = true;
        self.line.lock(rows).await
    }

    /// Updates, then deletions, then insertions of one table.
    async fn write_rows<R>(
        &mut self,
        writes: &[Write<R>],
        row: impl Fn(&R) -> Row,
        stands: impl Fn(&Data, &R) -> bool,
        known: impl Fn(&Data, &R) -> bool,
    ) -> Answer<()> {
        for gone in [false, true] {
            let of_kind = writes.iter().filter(|write| write.after.is_none() == gone);
            let before: Vec<&R> = of_kind.filter_map(|write| write.before.as_ref()).collect();
            if before.is_empty() {
                continue;
            }
            let rows: Vec<Row> = before.iter().map(|before| row(before)).collect();
            self.statement(&rows).await?;
            let all = self
                .line
                .write(|server, trx| server.read(trx, |data| before.iter().all(|before| stands(data, before))))?;
            if !all {
                return Err(self.line.moved_on());
            }
        }
        let fresh = |write: &Write<R>| write.before.is_none();
        let after: Vec<&R> =
            writes.iter().filter(|write| fresh(write)).filter_map(|write| write.after.as_ref()).collect();
        if after.is_empty() {
            return Ok(());
        }
        let rows: Vec<Row> = after.iter().map(|after| row(after)).collect();
        self.statement(&rows).await?;
        let taken =
            self.line.write(|server, trx| server.read(trx, |data| after.iter().any(|after| known(data, after))))?;
        if taken { Err(self.line.duplicate()) } else { Ok(()) }
    }

    async fn write_session(&mut self, id: SessionId, change: impl FnOnce(&mut SessionView, Timestamp)) -> Answer<()> {
        self.statement(&[Row::Session(id)]).await?;
        let now = self.now();
        self.line.write(|server, trx| {
            let view = server.read(trx, |data| data.sessions.get(&id).cloned());
            if let (Some(mut view), Some(own)) = (view, server.own(trx)) {
                change(&mut view, now);
                own.sessions.insert(id, Some(view));
            }
        })
    }
}

/// Whether it is the database that failed, and nothing of the transaction was applied.
pub(super) enum Failed {
    OfTheDatabase,
    Otherwise,
}

impl From<&StoreError> for Failed {
    fn from(error: &StoreError) -> Self {
        if matches!(error, StoreError::Unknown(_)) { Failed::Otherwise } else { Failed::OfTheDatabase }
    }
}

impl From<&crate::store::ControlError> for Failed {
    fn from(error: &crate::store::ControlError) -> Self {
        match error {
            crate::store::ControlError::Store(error) => error.into(),
            _ => Failed::Otherwise,
        }
    }
}

/// One statement that reads.
macro_rules! look {
    ($self:ident, $($call:tt)+) => {
        $self.line.read(|data| at_once(data.begin().$($call)+)).await?
    };
}

impl Tables for Transaction {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    async fn highest_version(&mut self) -> Answer<u64> {
        look!(self, highest_version())
    }

    fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn lock_partitions(&mut self, partitions: &[u16]) -> Answer<()> {
        let count = self.partitions;
        if let Some(unknown) = partitions.iter().find(|partition| **partition >= count) {
            return Err(StoreError::Permanent(format!("there is no partition {unknown} among {count}")));
        }
        let mut ids: Vec<u32> = partitions.iter().map(|partition| u32::from(*partition) + 1).collect();
        ids.sort_unstable();
        ids.dedup();
        self.lock_rows(&ids).await
    }

    async fn jobs_by_id(&mut self, ids: &[JobId]) -> Answer<Vec<Option<JobRow>>> {
        look!(self, jobs_by_id(ids))
    }

    async fn jobs_of_runs(&mut self, _ids: &[JobId], runs: &[RunRef]) -> Answer<Vec<Option<JobRow>>> {
        let (mut rows, mut unknown) = (BTreeMap::new(), Vec::new());
        for at in runs {
            let RowKey::Job(id) = at.row else { continue };
            let state = self.held().get(at).cloned();
            // Where a newer definition is stored the row has moved on.
            let definition = self.line.write(|server, _| server.data.definitions.get(&id).cloned())?;
            match state.zip(definition).filter(|(state, definition)| state.generation == definition.generation) {
                Some((state, definition)) => _ = rows.insert(id, JobRow { state, definition }),
                None => unknown.push(id),
            }
        }
        unknown.iter().for_each(|id| _ = rows.remove(id));
        rows.keys().for_each(|id| self.known.take(*id));
        let read = if unknown.is_empty() { Vec::new() } else { self.jobs_by_id(&unknown).await? };
        Ok(rows.into_values().map(Some).chain(read).collect())
    }

    async fn jobs_by_key(&mut self, keys: &[JobKey]) -> Answer<Vec<Option<JobRow>>> {
        look!(self, jobs_by_key(keys))
    }

    async fn seen_job(&mut self, key: &JobKey) -> Answer<Option<SeenJob>> {
        look!(self, seen_job(key))
    }

    async fn job_by_run(&mut self, run: RunId) -> Answer<Option<JobRow>> {
        look!(self, job_by_run(run))
    }

    async fn due_jobs(&mut self, request: &ClaimRequest) -> Answer<Vec<JobRow>> {
        look!(self, due_jobs(request))
    }

    async fn held_jobs(&mut self, session: SessionId, limit: usize) -> Answer<Vec<JobRow>> {
        look!(self, held_jobs(session, limit))
    }

    async fn job_page(&mut self, query: &JobQuery) -> Answer<JobRows> {
        look!(self, job_page(query))
    }

    async fn ids_of_name(&mut self, key: &JobKey) -> Answer<Vec<JobId>> {
        look!(self, ids_of_name(key))
    }

    async fn active_by_key(&mut self, keys: &[FiringKey]) -> Answer<Vec<Option<ActiveJob>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        look!(self, active_by_key(keys))
    }

    async fn active_by_run(&mut self, run: RunId) -> Answer<Option<ActiveJob>> {
        look!(self, active_by_run(run))
    }

    async fn active_of_job(&mut self, job: JobId) -> Answer<Vec<ActiveJob>> {
        look!(self, active_of_job(job))
    }

    async fn due_active(&mut self, request: &ClaimRequest) -> Answer<Vec<ActiveJob>> {
        look!(self, due_active(request))
    }

    async fn held_active(&mut self, session: SessionId, limit: usize) -> Answer<Vec<ActiveJob>> {
        look!(self, held_active(session, limit))
    }

    async fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> Answer<Vec<JobRow>> {
        look!(self, live_jobs(jobs))
    }

    async fn live_active(&mut self, jobs: Option<&[JobId]>) -> Answer<Vec<ActiveJob>> {
        look!(self, live_active(jobs))
    }

    async fn record(&mut self, run: RunId) -> Answer<Option<Recorded>> {
        look!(self, record(run))
    }

    async fn records(&mut self, query: &RecordQuery) -> Answer<Vec<Recorded>> {
        look!(self, records(query))
    }

    async fn last_records(&mut self, jobs: &[JobId]) -> Answer<BTreeMap<JobId, RunRecord>> {
        look!(self, last_records(jobs))
    }

    async fn output(&mut self, run: RunId) -> Answer<Option<Output>> {
        look!(self, output(run))
    }

    async fn insert_session(&mut self, session: &NewSession) -> Answer<()> {
        self.statement(&[Row::Session(session.id)]).await?;
        let now = self.now();
        let view = SessionView {
            beat: SessionBeat { id: session.id, seq: 0, state: SessionState::Live },
            node: session.node.clone(),
            address: session.address.clone(),
            version: session.version.clone(),
            started_at: now,
            heartbeat_at: now,
            prepared: 0,
            executing: 0,
        };
        let taken = self.line.write(|server, trx| {
            let known = server.read(trx, |data| data.sessions.contains_key(&view.beat.id));
            if let Some(own) = server.own(trx).filter(|_| !known) {
                own.sessions.insert(view.beat.id, Some(view));
            }
            known
        })?;
        if taken { Err(self.line.duplicate()) } else { Ok(()) }
    }

    async fn session_state(&mut self, session: SessionId) -> Answer<Option<SessionState>> {
        look!(self, session_state(session))
    }

    async fn standing(&mut self, session: SessionId) -> Answer<Standing> {
        let standing: Answer<Standing> = look!(self, standing(session));
        let standing = standing?;
        self.held().forget_lost(standing.uncertain_until);
        Ok(standing)
    }

    async fn spent_seq(&mut self, session: SessionId) -> Answer<Option<u64>> {
        look!(self, spent_seq(session))
    }

    async fn last_spent_at(&mut self) -> Answer<Option<Timestamp>> {
        look!(self, last_spent_at())
    }

    async fn note_window(&mut self, window: &UncertainWindow) -> Answer<()> {
        self.held().forget_lost(Some(window.window.until_at));
        self.statement(&[Row::OpenWindow]).await?;
        self.line.write(|server, trx| {
            let mut windows = server.read(trx, |data| data.windows.clone());
            match windows.iter_mut().find(|known| known.accepted_at.is_none()) {
                Some(open) => open.window = open.window.with(window.window),
                None => windows.push(window.clone()),
            }
            server.own(trx).map(|own| own.windows = Some(windows))
        })?;
        Ok(())
    }

    async fn windows(&mut self, accepted_since: Timestamp) -> Answer<Vec<UncertainWindow>> {
        look!(self, windows(accepted_since))
    }

    async fn accept_windows(&mut self) -> Answer<()> {
        self.statement(&[Row::OpenWindow]).await?;
        let now = self.now();
        self.line.write(|server, trx| {
            let mut windows = server.read(trx, |data| data.windows.clone());
            windows.iter_mut().for_each(|window| window.accepted_at = window.accepted_at.or(Some(now)));
            server.own(trx).map(|own| own.windows = Some(windows))
        })?;
        Ok(())
    }

    async fn beat(&mut self, session: SessionId, seq: u64, state: SessionState) -> Answer<()> {
        self.write_session(session, |view, now| {
            if view.beat.state != SessionState::Ended && view.beat.seq < seq {
                view.beat = SessionBeat { id: session, seq, state };
                view.heartbeat_at = now;
            }
        })
        .await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> Answer<()> {
        self.write_session(session, |view, _| {
            if view.beat.seq == seen_seq {
                view.beat.state = SessionState::Ended;
            }
        })
        .await
    }

    async fn spend_session(&mut self, session: SessionId) -> Answer<()> {
        self.statement(&[Row::Session(session)]).await?;
        let now = self.now();
        self.line.write(|server, trx| {
            let seq = server.read(trx, |data| data.sessions.get(&session).map(|view| view.beat.seq));
            if let (Some(seq), Some(own)) = (seq, server.own(trx)) {
                own.sessions.insert(session, None);
                own.spent.push((session, seq, now));
            }
        })
    }

    async fn sessions(&mut self, with_counts: bool) -> Answer<Vec<SessionView>> {
        look!(self, sessions(with_counts))
    }

    async fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> Answer<Vec<JobId>> {
        let keys: Vec<JobKey> = jobs.iter().map(|job| key_of(job)).collect();
        let rows: Vec<Row> = keys.iter().cloned().map(Row::Name).collect();
        self.statement(&rows).await?;
        let ids = self.line.write(|server, trx| {
            if server.read(trx, |data| keys.iter().any(|key| data.names.contains_key(key))) {
                return None;
            }
            // Numbers that were given out do not come back with a rollback.
            let first = server.data.last_id + 1;
            server.data.last_id += keys.len() as u64;
            let named: Vec<_> = keys.into_iter().zip((first..).map(JobId)).collect();
            let ids = named.iter().map(|(_, id)| *id).collect();
            server.own(trx).map(|own| own.names.extend(named))?;
            Some(ids)
        })?;
        ids.ok_or_else(|| self.line.duplicate())
    }

    async fn write(&mut self, changes: Changes) -> Answer<()> {
        if !self.known.are_written(&changes.jobs) {
            return Err(self.line.moved_on());
        }
        let holder = |state: &JobState| state.phase.held().map(|held| held.session);
        let at_version = |data: &Data, before: &JobState| {
            let row = data.states.get(&before.id).filter(|row| row.version == before.version);
            row.is_some_and(|row| holder(before).is_none_or(|session| holder(row) == Some(session)))
        };
        let taken = |data: &Data, after: &JobState| data.states.contains_key(&after.id);
        self.write_rows(&changes.jobs, |state| Row::State(state.id), at_version, taken).await?;
        if changes.jobs.iter().any(|write| write.deleted_version().is_some()) {
            self.statement(&[Row::HighestVersion]).await?;
        }
        let at_version = |data: &Data, before: &ActiveRow| {
            data.active.get(&before.key).is_some_and(|row| row.version == before.version)
        };
        let taken = |data: &Data, after: &ActiveRow| data.active.contains_key(&after.key);
        self.write_rows(&changes.active, |row| Row::Active(row.key), at_version, taken).await?;
        let defined = changes.definitions.iter().map(|(id, _)| *id);
        let rows: Vec<Row> = defined.chain(changes.deleted.iter().copied()).map(Row::Definition).collect();
        if !rows.is_empty() {
            self.statement(&rows).await?;
        }
        if !changes.records.is_empty() {
            let keys = |record: &RunRecord| {
                let attempt = Row::Attempt(record.job, record.due_at, record.trigger, record.attempt);
                [Row::Record(record.id), attempt]
            };
            let rows: Vec<Row> = changes.records.iter().flat_map(keys).collect();
            self.statement(&rows).await?;
        }
        if !changes.outputs.is_empty() {
            let rows: Vec<Row> = changes.outputs.iter().map(|(run, _)| Row::Record(*run)).collect();
            self.statement(&rows).await?;
        }
        self.known.wrote(changes.jobs.clone());
        // What is left to refuse is an output that is too large.
        self.line.write(|server, trx| {
            server.data.check_outputs(&changes)?;
            if let Some(own) = server.own(trx) {
                own.changes.push(changes);
            }
            Ok(())
        })?
    }
}

/// For scripts: single statements over a job's row.
impl Transaction {
    pub async fn lock_statement(&mut self, rows: &[Row]) -> Answer<()> {
        self.statement(rows).await
    }

    pub fn job_write(&mut self, id: JobId) -> Answer<Option<Write<JobState>>> {
        let row = self.line.write(|server, trx| server.read(trx, |data| data.row(id)))?;
        let write =
            |row: JobRow| Write { before: Some(row.state.clone()), after: Some(row.state), definition: row.definition };
        Ok(row.map(write))
    }

    pub fn keep_job(&mut self, write: Write<JobState>) -> Answer<()> {
        let changes = Changes { jobs: vec![write], ..Changes::default() };
        self.line.write(|server, trx| server.own(trx).map(|own| own.changes.push(changes)))?;
        Ok(())
    }
}
