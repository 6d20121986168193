//! The writes of the protocol, each with the locks that InnoDB takes for it.

use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lost_commits::commits_were_lost;
use carillon_domain::run::RunRecord;
use carillon_domain::store::Definition;
use carillon_domain::time::Timestamp;

use super::database::standing;
use super::locks::Row;
use super::model_connection::ModelConnection;
use super::server::lock;
use crate::data::Data;
use carillon_store::cluster::port::{Sessions, SingleStart, WriteRows};
use carillon_store::tables::{Tables, Write, WriteSet, at_once};
use carillon_store::{
    AuditEntry, JobKey, NewSession, Output, RecordedLoss, SessionBeat, SessionState, SessionView, StoreError,
    StoreResult,
};

impl ModelConnection {
    /// A statement that locks rows before it writes them.
    async fn locking(&mut self, rows: &[Row]) -> StoreResult<()> {
        self.statement().await?;
        self.lock(rows).await
    }

    /// Keeps changes until the COMMIT.
    fn keep(&mut self, changes: WriteSet) -> StoreResult<()> {
        self.write(|server, trx| server.own(trx).map(|own| own.changes.push(changes))).map(|_| ())
    }

    /// The part of `writes` whose rows still match; an UPDATE or a DELETE.
    async fn matching<R: Clone>(
        &mut self,
        writes: Vec<&Write<R>>,
        row: impl Fn(&R) -> Row,
        matches: impl Fn(&Data, &R) -> bool,
    ) -> StoreResult<Vec<Write<R>>> {
        let before: Vec<Row> = writes.iter().filter_map(|write| write.before.as_deref()).map(row).collect();
        self.locking(&before).await?;
        self.write(|server, trx| {
            server.read(trx, |data| {
                let stands = |write: &&&Write<R>| write.before.as_deref().is_some_and(|before| matches(data, before));
                writes.iter().filter(stands).map(|write| Write::clone(write)).collect()
            })
        })
    }

    /// Rows that are new, if none of them is there.
    async fn new_rows<R: Clone>(
        &mut self,
        writes: &[Write<R>],
        row: impl Fn(&R) -> Row,
        is_there: impl Fn(&Data, &R) -> bool,
    ) -> StoreResult<Vec<Write<R>>> {
        let new: Vec<Write<R>> = writes.iter().filter(|write| write.before.is_none()).cloned().collect();
        let after = || new.iter().filter_map(|write| write.after.as_deref());
        self.locking(&after().map(row).collect::<Vec<_>>()).await?;
        let taken = self.write(|server, trx| server.read(trx, |data| after().any(|after| is_there(data, after))))?;
        if taken { Err(self.duplicate()) } else { Ok(new) }
    }

    async fn write_states(&mut self, gone: bool, writes: &[Write<JobState>]) -> StoreResult<u64> {
        let of_kind = writes.iter().filter(|write| write.before.is_some() && write.after.is_none() == gone).collect();
        let jobs = self.matching(of_kind, |state| Row::State(state.id), is_as_read).await?;
        let matched = jobs.len() as u64;
        self.keep(WriteSet { jobs, ..WriteSet::default() })?;
        Ok(matched)
    }

    async fn write_concurrent(&mut self, gone: bool, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        let of_kind = writes.iter().filter(|write| write.before.is_some() && write.after.is_none() == gone).collect();
        let at_version = |data: &Data, before: &ConcurrentRun| {
            data.concurrent.get(&before.key).is_some_and(|row| row.version == before.version)
        };
        let concurrent = self.matching(of_kind, |row| Row::Active(row.key), at_version).await?;
        let matched = concurrent.len() as u64;
        self.keep(WriteSet { concurrent, ..WriteSet::default() })?;
        Ok(matched)
    }

    async fn write_session(&mut self, id: SessionId, change: impl FnOnce(&mut SessionView) + Send) -> StoreResult<()> {
        self.locking(&[Row::Session(id)]).await?;
        self.write(|server, trx| {
            let view = server.read(trx, |data| data.sessions.get(&id).cloned());
            if let (Some(mut view), Some(own)) = (view, server.own(trx)) {
                change(&mut view);
                own.sessions.insert(id, Some(view));
            }
        })
    }
}

/// The row has the version that was read, and the same session still holds it.
fn is_as_read(data: &Data, before: &JobState) -> bool {
    let holder = |state: &JobState| state.phase.held().map(|held| held.session);
    let row = data.states.get(&before.id).filter(|row| row.version == before.version);
    row.is_some_and(|row| holder(before).is_none_or(|session| holder(row) == Some(session)))
}

impl WriteRows for ModelConnection {
    async fn insert_records(&mut self, records: &[RunRecord]) -> StoreResult<u64> {
        let keys = |record: &RunRecord| {
            let attempt = Row::Attempt(record.job, record.due_at, record.trigger, record.attempt);
            [Row::Record(record.id), attempt]
        };
        self.locking(&records.iter().flat_map(keys).collect::<Vec<_>>()).await?;
        let duplicates = self.write(|server, trx| {
            server.read(trx, |data| records.iter().filter(|record| data.is_recorded(record)).count())
        })?;
        self.write(|server, _| records.iter().for_each(|record| server.data.numbers.draw(record.id)))?;
        self.keep(WriteSet { records: records.to_vec(), ..WriteSet::default() })?;
        Ok(duplicates as u64)
    }

    async fn stored_records(&mut self, records: &[RunRecord]) -> StoreResult<Vec<RunId>> {
        let ids = |data: &mut Data| {
            records.iter().map(|record| record.id).filter(|id| data.places.contains_key(id)).collect()
        };
        self.read(ids).await
    }

    async fn insert_outputs(&mut self, outputs: &[(RunId, Arc<Output>)]) -> StoreResult<()> {
        self.locking(&outputs.iter().map(|(run, _)| Row::Record(*run)).collect::<Vec<_>>()).await?;
        let changes = WriteSet { outputs: outputs.to_vec(), ..WriteSet::default() };
        self.write(|server, _| server.data.check_outputs(&changes))??;
        self.keep(changes)
    }

    async fn update_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<u64> {
        self.write_states(false, writes).await
    }

    async fn delete_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<u64> {
        self.write_states(true, writes).await
    }

    async fn insert_states(&mut self, writes: &[Write<JobState>], _partitions: u16) -> StoreResult<u64> {
        let is_there = |data: &Data, after: &JobState| data.states.contains_key(&after.id);
        let jobs = self.new_rows(writes, |state| Row::State(state.id), is_there).await?;
        let inserted = jobs.len() as u64;
        self.keep(WriteSet { jobs, ..WriteSet::default() })?;
        Ok(inserted)
    }

    async fn update_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        self.write_concurrent(false, writes).await
    }

    async fn delete_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        self.write_concurrent(true, writes).await
    }

    async fn insert_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        let is_there = |data: &Data, after: &ConcurrentRun| data.concurrent.contains_key(&after.key);
        let concurrent = self.new_rows(writes, |row| Row::Active(row.key), is_there).await?;
        let inserted = concurrent.len() as u64;
        self.keep(WriteSet { concurrent, ..WriteSet::default() })?;
        Ok(inserted)
    }

    /// Only the commit that writes the job's row inserts them, so nobody else waits for them.
    async fn insert_run_params(&mut self, params: &[(FiringKey, Arc<str>)]) -> StoreResult<()> {
        self.statement().await?;
        self.keep(WriteSet { run_params: params.to_vec(), ..WriteSet::default() })
    }

    /// The version itself follows from the rows that are deleted.
    async fn raise_highest_version(&mut self, _version: u64) -> StoreResult<()> {
        self.locking(&[Row::HighestVersion]).await
    }

    async fn update_definitions(&mut self, definitions: &[(JobId, Arc<Definition>)]) -> StoreResult<u64> {
        self.locking(&definitions.iter().map(|(id, _)| Row::Definition(*id)).collect::<Vec<_>>()).await?;
        self.keep(WriteSet { definitions: definitions.to_vec(), ..WriteSet::default() })?;
        Ok(definitions.len() as u64)
    }

    async fn free_names(&mut self, jobs: &[JobId], _now: Timestamp) -> StoreResult<()> {
        self.locking(&jobs.iter().copied().map(Row::Definition).collect::<Vec<_>>()).await?;
        self.keep(WriteSet { deleted: jobs.to_vec(), ..WriteSet::default() })
    }

    async fn insert_jobs(&mut self, jobs: &[Arc<Job>], _now: Timestamp) -> StoreResult<u64> {
        let keys: Vec<JobKey> = jobs.iter().map(|job| JobKey::of(job)).collect();
        self.locking(&keys.iter().cloned().map(Row::Name).collect::<Vec<_>>()).await?;
        let inserted = self.write(|server, trx| {
            if server.read(trx, |data| keys.iter().any(|key| data.names.contains_key(key))) {
                return None;
            }
            // Ids that were given out do not come back with a rollback.
            let first = server.data.last_id + 1;
            server.data.last_id += keys.len() as u64;
            let named: Vec<_> = keys.into_iter().zip((first..).map(JobId)).collect();
            let count = named.len() as u64;
            server.own(trx).map(|own| own.names.extend(named))?;
            Some(count)
        })?;
        inserted.ok_or_else(|| self.duplicate())
    }

    /// Nobody waits for a new row at the end of the log.
    async fn insert_audit(&mut self, entries: &[AuditEntry]) -> StoreResult<()> {
        self.locking(&[]).await?;
        self.keep(WriteSet { audit: entries.to_vec(), ..WriteSet::default() })
    }

    async fn start_alone(&mut self, start: &SingleStart<'_>) -> StoreResult<u64> {
        let outcome = self.start_rows(start).await;
        match outcome {
            Ok(matched) if matched == start.writes.len() as u64 => lock(&self.server).counters.single_starts += matched,
            Ok(1..) => lock(&self.server).counters.partial_starts += 1,
            // It is over, and so are its locks.
            Ok(0) => self.release_locks(),
            Err(_) => {}
        }
        match outcome {
            // It commits by itself, so a lost connection tells nothing.
            Err(error) if self.lost => Err(StoreError::Unknown(error.to_string())),
            outcome => outcome,
        }
    }
}

impl ModelConnection {
    async fn start_rows(&mut self, start: &SingleStart<'_>) -> StoreResult<u64> {
        self.statement().await?;
        if enabled(Guard::OptimisticStanding) && !self.write(|server, _| stands(&mut server.data, start))? {
            return Ok(0);
        }
        let before = || start.writes.iter().filter_map(|write| write.before.as_ref());
        self.lock(&before().map(|row| Row::State(row.id)).collect::<Vec<_>>()).await?;
        let matched = self.write(|server, trx| {
            let stands = |write: &&Write<JobState>| {
                let before = write.before.as_ref();
                before
                    .is_some_and(|before| server.data.states.get(&before.id).is_some_and(|row| is_cached(row, before)))
            };
            let jobs: Vec<Write<JobState>> = start.writes.iter().filter(stands).cloned().collect();
            let matched = jobs.len() as u64;
            if let Some(own) = server.own(trx) {
                own.changes.push(WriteSet { jobs, ..WriteSet::default() });
            }
            matched
        })?;
        if matched > 0 {
            self.send_commit().await?;
        }
        Ok(matched)
    }
}

/// The row is the one that was cached.
fn is_cached(row: &JobState, before: &JobState) -> bool {
    let session = |row: &JobState| row.phase.held().map(|held| held.session);
    !enabled(Guard::UpdateVersion) || (row.version == before.version && session(row) == session(before))
}

/// The conditions of the statement beyond its rows.
fn stands(data: &mut Data, start: &SingleStart<'_>) -> bool {
    let early = start.not_before.is_some_and(|at| data.clock.now() < at);
    let Ok(standing) = standing(data, start.me.session) else { return false };
    !early
        && standing.is_in_order()
        && !commits_were_lost(start.me.acked, standing.session.as_ref().map(|own| own.beat.seq))
        && standing.losses_until == start.losses_until
        && !start
            .writes
            .iter()
            .filter_map(|write| write.before.as_ref())
            .any(|row| data.concurrent.keys().any(|key| key.job == row.id))
}

impl Sessions for ModelConnection {
    async fn insert_session(&mut self, new: &NewSession, now: Timestamp) -> StoreResult<()> {
        self.locking(&[Row::Session(new.id)]).await?;
        let view = SessionView {
            beat: SessionBeat { id: new.id, seq: 0, state: SessionState::Live },
            node: new.node.clone(),
            address: new.address.clone(),
            version: new.version.clone(),
            started_at: now,
            heartbeat_at: now,
            server: None,
            terms: None,
            wrote_back: Some(Timestamp::EPOCH),
            prepared: 0,
            executing: 0,
        };
        let taken = self.write(|server, trx| {
            let known = server.read(trx, |data| data.sessions.contains_key(&view.beat.id));
            if let Some(own) = server.own(trx).filter(|_| !known) {
                own.sessions.insert(view.beat.id, Some(view));
            }
            known
        })?;
        if taken { Err(self.duplicate()) } else { Ok(()) }
    }

    async fn session_state(&mut self, session: SessionId) -> StoreResult<Option<SessionState>> {
        self.read(|data| data.sessions.get(&session).map(|view| view.beat.state)).await
    }

    async fn sessions(&mut self, with_counts: bool) -> StoreResult<Vec<SessionView>> {
        self.read(|data| at_once(data.begin().sessions(with_counts))).await?
    }

    async fn write_heartbeat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.write_session(session, |view| {
            let lives = view.beat.state != SessionState::Ended || !enabled(Guard::HeartbeatNotEnded);
            if lives && (view.beat.seq < seq || !enabled(Guard::HeartbeatNewer)) {
                view.beat = SessionBeat { id: session, seq, state };
                view.heartbeat_at = now;
            }
        })
        .await
    }

    async fn end_session(&mut self, session: SessionId, seen_seq: u64) -> StoreResult<()> {
        self.write_session(session, |view| {
            if view.beat.seq == seen_seq || !enabled(Guard::EndSeen) {
                view.beat.state = SessionState::Ended;
            }
        })
        .await
    }

    async fn note_written_back(&mut self, session: SessionId, until: Timestamp) -> StoreResult<()> {
        self.write_session(session, |view| view.wrote_back = view.wrote_back.max(Some(until))).await
    }

    async fn spend_session(&mut self, session: SessionId, now: Timestamp) -> StoreResult<()> {
        self.locking(&[Row::Session(session)]).await?;
        self.write(|server, trx| {
            let seq = server.read(trx, |data| data.sessions.get(&session).map(|view| view.beat.seq));
            if let (Some(seq), Some(own)) = (seq, server.own(trx)) {
                own.sessions.insert(session, None);
                own.spent.push((session, seq, now));
            }
        })
    }

    async fn spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        self.read(|data| at_once(data.begin().spent_seq(session))).await?
    }

    async fn last_spent_at(&mut self) -> StoreResult<Option<Timestamp>> {
        self.read(|data| at_once(data.begin().last_spent_at())).await?
    }

    async fn note_window(&mut self, loss: &RecordedLoss) -> StoreResult<()> {
        self.locking(&[Row::OpenWindow]).await?;
        self.write(|server, trx| {
            let mut windows = server.read(trx, |data| data.windows.clone());
            match windows.iter_mut().find(|known| known.accepted_at.is_none()) {
                Some(open) => open.window = open.window.with(loss.window),
                None => windows.push(loss.clone()),
            }
            server.own(trx).map(|own| own.windows = Some(windows))
        })?;
        Ok(())
    }

    async fn windows(&mut self, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
        self.read(|data| at_once(data.begin().windows(accepted_since))).await?
    }

    async fn accept_windows(&mut self, until: Timestamp, now: Timestamp) -> StoreResult<bool> {
        self.locking(&[Row::OpenWindow]).await?;
        self.write(|server, trx| {
            let (windows, any_open) = server.read(trx, |data| {
                let mut data = data.clone();
                let any_open = data.accept_open(until, now);
                (data.windows, any_open)
            });
            server.own(trx).is_some_and(|own| {
                own.windows = Some(windows);
                any_open
            })
        })
    }
}
