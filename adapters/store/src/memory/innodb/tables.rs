//! The operations' view of a transaction: each method is the statements of `store/mysql`, with the locks that these take and
//! in their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::super::data::Data;
use super::locks::Row;
use super::transaction::Transaction;
use crate::tables::{
    ConcurrentJob, JobRow, JobRows, RecordQuery, Recorded, SeenJob, Standing, Tables, WriteSet, at_once,
};
use crate::{
    ClaimRequest, JobKey, JobQuery, NewSession, Output, RecordedLoss, SessionBeat, SessionState, SessionView,
    StoreError, StoreResult,
};

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

    async fn highest_version(&mut self) -> StoreResult<u64> {
        look!(self, highest_version())
    }

    fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn lock_partitions(&mut self, partitions: &[u16]) -> StoreResult<()> {
        let count = self.partitions;
        if let Some(unknown) = partitions.iter().find(|partition| **partition >= count) {
            return Err(StoreError::Permanent(format!("there is no partition {unknown} among {count}")));
        }
        let mut ids: Vec<u32> = partitions.iter().map(|partition| u32::from(*partition) + 1).collect();
        ids.sort_unstable();
        ids.dedup();
        self.lock_rows(&ids).await
    }

    async fn jobs_by_id(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<JobRow>>> {
        look!(self, jobs_by_id(ids))
    }

    async fn jobs_of_runs(&mut self, _ids: &[JobId], runs: &[RunRef]) -> StoreResult<Vec<Option<JobRow>>> {
        let (mut rows, mut unknown) = (BTreeMap::new(), Vec::new());
        for at in runs {
            let RowKey::Job(id) = at.row else { continue };
            let memory = self.memory.clone();
            match self.line.write(|server, _| memory.known_row(at, &server.data))? {
                Some(row) => _ = rows.insert(id, row),
                None => unknown.push(id),
            }
        }
        unknown.iter().for_each(|id| _ = rows.remove(id));
        rows.keys().for_each(|id| self.known.take(*id));
        let read = if unknown.is_empty() { Vec::new() } else { self.jobs_by_id(&unknown).await? };
        Ok(rows.into_values().map(Some).chain(read).collect())
    }

    async fn jobs_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobRow>>> {
        look!(self, jobs_by_key(keys))
    }

    async fn seen_job(&mut self, key: &JobKey) -> StoreResult<Option<SeenJob>> {
        look!(self, seen_job(key))
    }

    async fn job_by_run(&mut self, run: RunId) -> StoreResult<Option<JobRow>> {
        look!(self, job_by_run(run))
    }

    async fn due_jobs(&mut self, request: &ClaimRequest) -> StoreResult<Vec<JobRow>> {
        look!(self, due_jobs(request))
    }

    async fn held_jobs(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<JobRow>> {
        look!(self, held_jobs(session, limit))
    }

    async fn job_page(&mut self, query: &JobQuery) -> StoreResult<JobRows> {
        look!(self, job_page(query))
    }

    async fn ids_of_name(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        look!(self, ids_of_name(key))
    }

    async fn concurrent_by_key(&mut self, keys: &[FiringKey]) -> StoreResult<Vec<Option<ConcurrentJob>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        look!(self, concurrent_by_key(keys))
    }

    async fn concurrent_by_run(&mut self, run: RunId) -> StoreResult<Option<ConcurrentJob>> {
        look!(self, concurrent_by_run(run))
    }

    async fn due_concurrent(&mut self, request: &ClaimRequest) -> StoreResult<Vec<ConcurrentJob>> {
        look!(self, due_concurrent(request))
    }

    async fn held_concurrent(&mut self, session: SessionId, limit: usize) -> StoreResult<Vec<ConcurrentJob>> {
        look!(self, held_concurrent(session, limit))
    }

    async fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<JobRow>> {
        look!(self, live_jobs(jobs))
    }

    async fn live_concurrent(&mut self, jobs: Option<&[JobId]>) -> StoreResult<Vec<ConcurrentJob>> {
        look!(self, live_concurrent(jobs))
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        look!(self, record(run))
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        look!(self, records(query))
    }

    async fn last_records(&mut self, jobs: &[JobId]) -> StoreResult<BTreeMap<JobId, RunRecord>> {
        look!(self, last_records(jobs))
    }

    async fn output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        look!(self, output(run))
    }

    async fn insert_session(&mut self, session: &NewSession) -> StoreResult<()> {
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

    async fn session_state(&mut self, session: SessionId) -> StoreResult<Option<SessionState>> {
        look!(self, session_state(session))
    }

    async fn standing(&mut self, session: SessionId) -> StoreResult<Standing> {
        let standing: StoreResult<Standing> = look!(self, standing(session));
        let standing = standing?;
        self.held().forget_lost(standing.losses_until);
        self.saw(session, &standing)?;
        Ok(standing)
    }

    async fn spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        look!(self, spent_seq(session))
    }

    async fn last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        look!(self, last_spent_at())
    }

    async fn note_window(&mut self, window: &RecordedLoss) -> StoreResult<()> {
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

    async fn windows(&mut self, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
        look!(self, windows(accepted_since))
    }

    async fn accept_windows(&mut self) -> StoreResult<()> {
        self.statement(&[Row::OpenWindow]).await?;
        let now = self.now();
        self.line.write(|server, trx| {
            let mut windows = server.read(trx, |data| data.windows.clone());
            windows.iter_mut().for_each(|window| window.accepted_at = window.accepted_at.or(Some(now)));
            server.own(trx).map(|own| own.windows = Some(windows))
        })?;
        Ok(())
    }

    async fn beat(&mut self, session: SessionId, seq: u64, state: SessionState) -> StoreResult<()> {
        self.write_session(session, |view, now| {
            if view.beat.state != SessionState::Ended && view.beat.seq < seq {
                view.beat = SessionBeat { id: session, seq, state };
                view.heartbeat_at = now;
            }
        })
        .await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> StoreResult<()> {
        self.write_session(session, |view, _| {
            if view.beat.seq == seen_seq {
                view.beat.state = SessionState::Ended;
            }
        })
        .await
    }

    async fn spend_session(&mut self, session: SessionId) -> StoreResult<()> {
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

    async fn sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        look!(self, sessions(with_counts))
    }

    async fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> StoreResult<Vec<JobId>> {
        let keys: Vec<JobKey> = jobs.iter().map(|job| JobKey::of(job)).collect();
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

    async fn write(&mut self, changes: WriteSet) -> StoreResult<()> {
        if !self.known.are_written(&changes.jobs) {
            return Err(self.line.moved_on());
        }
        // The history first, as in MySQL.
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
        let at_version = |data: &Data, before: &ConcurrentRun| {
            data.concurrent.get(&before.key).is_some_and(|row| row.version == before.version)
        };
        let taken = |data: &Data, after: &ConcurrentRun| data.concurrent.contains_key(&after.key);
        self.write_rows(&changes.concurrent, |row| Row::Active(row.key), at_version, taken).await?;
        let defined = changes.definitions.iter().map(|(id, _)| *id);
        let rows: Vec<Row> = defined.chain(changes.deleted.iter().copied()).map(Row::Definition).collect();
        if !rows.is_empty() {
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
