//! The tables as ordered maps.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::sync::Arc;

use carillon_domain::firing::{ActiveRow, FiringKey, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::node::port::{Peek, RowKey, RunRef};
use carillon_domain::partition::partition_of;
use carillon_domain::run::{RunRecord, Trigger};
use carillon_domain::time::Timestamp;

use crate::store::clock::Clock;
use crate::store::definition::Definition;
use crate::store::tables::{ActiveJob, Changes, JobRow, MAX_OUTPUT_BYTES, RecordQuery, Recorded, Tables, Write};
use crate::store::{
    ClaimRequest, JobKey, JobQuery, NewSession, Output, RunCursor, SessionBeat, SessionState, SessionView, StoreError,
};

type Answer<T> = Result<T, StoreError>;

/// A record's place in the order in which runs are listed.
type Place = (Timestamp, u32, RunId);

/// Everything that is stored.
pub(super) struct Data {
    pub clock: Arc<dyn Clock>,
    partitions: u16,
    last_id: u64,
    definitions: BTreeMap<JobId, Arc<Definition>>,
    names: BTreeMap<JobKey, JobId>,
    states: BTreeMap<JobId, JobState>,
    due: BTreeSet<(u16, Timestamp, JobId)>,
    active: BTreeMap<FiringKey, ActiveRow>,
    records: BTreeMap<Place, (RunRecord, Option<String>)>,
    places: BTreeMap<RunId, Place>,
    facts: BTreeSet<(JobId, Timestamp, Trigger, u32)>,
    outputs: BTreeMap<RunId, Output>,
    sessions: BTreeMap<SessionId, SessionView>,
    pub record_conflicts: usize,
}

impl Data {
    pub fn new(clock: Arc<dyn Clock>, partitions: u16) -> Self {
        Self {
            clock,
            partitions: partitions.max(1),
            last_id: 0,
            definitions: BTreeMap::new(),
            names: BTreeMap::new(),
            states: BTreeMap::new(),
            due: BTreeSet::new(),
            active: BTreeMap::new(),
            records: BTreeMap::new(),
            places: BTreeMap::new(),
            facts: BTreeSet::new(),
            outputs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            record_conflicts: 0,
        }
    }

    /// A transaction: the time stands still in it.
    pub fn begin(&mut self) -> Transaction<'_> {
        let now_us = self.clock.now_us();
        Transaction { data: self, now_us }
    }

    pub fn peek(&self, session: SessionId, partitions: &[u16]) -> Peek {
        let first_of = |partition: &u16| {
            let from = (*partition, Timestamp::from_ms(i64::MIN), JobId(0));
            self.due.range(from..).next().filter(|(of, ..)| of == partition).map(|(_, at, _)| *at)
        };
        let rows = partitions.iter().filter_map(first_of);
        let beside = self.active.values().filter(|row| partitions.contains(&self.partition(row.key.job)));
        let earliest = rows.chain(beside.filter_map(ActiveRow::claim_at)).min();
        let mine =
            |phase: &Phase, asked: bool| phase.held().filter(|held| asked && held.session == session).map(|h| h.run);
        let jobs = self.states.values().filter_map(|state| mine(&state.phase, state.cancel.is_some()));
        let active = self.active.values().filter_map(|row| mine(&row.phase, row.cancel.is_some()));
        Peek { earliest_claim_at: earliest.filter(|at| *at < Timestamp::MAX), cancels: jobs.chain(active).collect() }
    }

    pub fn held(&self, session: SessionId) -> Vec<RunRef> {
        let mine = |phase: &Phase| phase.held().filter(|held| held.session == session).map(|held| held.run);
        let jobs = self.states.values().filter_map(|state| {
            mine(&state.phase).map(|run| RunRef { row: RowKey::Job(state.id), run, version: state.version })
        });
        let active = self.active.values().filter_map(|row| {
            mine(&row.phase).map(|run| RunRef { row: RowKey::Active(row.key), run, version: row.version })
        });
        jobs.chain(active).collect()
    }

    fn partition(&self, job: JobId) -> u16 {
        self.definitions.get(&job).map_or(0, |definition| self.partition_of(definition))
    }

    fn partition_of(&self, definition: &Definition) -> u16 {
        partition_of(&definition.job.namespace, &definition.job.name, self.partitions)
    }

    fn row(&self, id: JobId) -> Option<JobRow> {
        Some(JobRow { state: self.states.get(&id)?.clone(), definition: self.definitions.get(&id)?.clone() })
    }

    fn beside(&self, key: &FiringKey) -> Option<ActiveJob> {
        let row = self.active.get(key)?.clone();
        Some(ActiveJob { definition: self.definitions.get(&key.job)?.clone(), row })
    }

    fn rows(&self, wanted: impl Fn(&JobState) -> bool) -> impl Iterator<Item = JobRow> {
        self.states.values().filter(move |state| wanted(state)).filter_map(|state| self.row(state.id))
    }

    fn besides(&self, wanted: impl Fn(&ActiveRow) -> bool) -> impl Iterator<Item = ActiveJob> {
        self.active.values().filter(move |row| wanted(row)).filter_map(|row| self.beside(&row.key))
    }

    fn recorded(&self, place: &Place) -> Option<Recorded> {
        let (record, node) = self.records.get(place)?;
        let key = self.definitions.get(&record.job)?.key();
        let output_truncated = self.outputs.get(&record.id).is_some_and(|output| output.truncated);
        Some(Recorded { record: record.clone(), key, node: node.clone(), output_truncated })
    }

    fn check(&self, changes: &Changes) -> Answer<()> {
        let moved = |at: bool| if at { Ok(()) } else { Err(StoreError::Retryable("a row has moved on".to_owned())) };
        for write in &changes.jobs {
            let before = write.before.as_ref().map(|before| (before.id, before.version));
            moved(before.is_none_or(|(id, version)| self.states.get(&id).is_some_and(|row| row.version == version)))?;
        }
        for write in &changes.active {
            let before = write.before.as_ref().map(|before| (before.key, before.version));
            moved(before.is_none_or(|(key, version)| self.active.get(&key).is_some_and(|row| row.version == version)))?;
        }
        let largest = changes.outputs.iter().map(|(_, output)| output.bytes.len()).max().unwrap_or(0);
        if largest > MAX_OUTPUT_BYTES {
            return Err(StoreError::Permanent(format!("an output of {largest} bytes is too large")));
        }
        Ok(())
    }

    fn write_job(&mut self, write: Write<JobState>) {
        let partition = self.partition_of(&write.definition);
        if let Some(before) = write.before {
            if let Some(at) = before.claim_at() {
                self.due.remove(&(partition, at, before.id));
            }
            self.states.remove(&before.id);
        }
        if let Some(after) = write.after {
            if let Some(at) = after.claim_at() {
                self.due.insert((partition, at, after.id));
            }
            self.definitions.insert(after.id, write.definition);
            self.states.insert(after.id, after);
        }
    }

    fn write_record(&mut self, record: RunRecord) {
        if self.places.contains_key(&record.id) {
            return;
        }
        if !self.facts.insert((record.job, record.due_at, record.trigger, record.attempt)) {
            self.record_conflicts += 1;
            return;
        }
        let place = (record.due_at, record.attempt, record.id);
        let node = record.session.and_then(|session| self.sessions.get(&session)).map(|session| session.node.clone());
        self.places.insert(record.id, place);
        self.records.insert(place, (record, node));
    }

    fn apply(&mut self, changes: Changes) {
        for write in changes.jobs {
            self.write_job(write);
        }
        for write in changes.active {
            if let Some(before) = write.before {
                self.active.remove(&before.key);
            }
            if let Some(after) = write.after {
                self.active.insert(after.key, after);
            }
        }
        for (id, definition) in changes.definitions {
            self.definitions.insert(id, definition);
        }
        for id in changes.deleted {
            self.names.retain(|_, named| *named != id);
        }
        changes.records.into_iter().for_each(|record| self.write_record(record));
        self.outputs.extend(changes.outputs);
    }

    /// Deletes old history, then what is left of deleted jobs.
    pub fn purge(&mut self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> usize {
        let old = self.old_records(before, max_runs_per_job, limit);
        for place in &old {
            if let Some((record, _)) = self.records.remove(place) {
                self.places.remove(&record.id);
                self.outputs.remove(&record.id);
                self.facts.remove(&(record.job, record.due_at, record.trigger, record.attempt));
            }
        }
        self.forget_deleted();
        old.len()
    }

    fn old_records(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Vec<Place> {
        let mut kept: BTreeMap<JobId, u32> = BTreeMap::new();
        let mut beyond: Vec<Place> = Vec::new();
        for (place, (record, _)) in self.records.iter().rev() {
            let newer = kept.entry(record.job).or_default();
            if *newer >= max_runs_per_job || record.finished_at < before {
                beyond.push(*place);
            } else {
                *newer += 1;
            }
        }
        beyond.truncate(limit);
        beyond
    }

    fn forget_deleted(&mut self) {
        let mut used: BTreeSet<JobId> = self.states.keys().copied().collect();
        used.extend(self.names.values());
        used.extend(self.active.keys().map(|key| key.job));
        used.extend(self.records.values().map(|(record, _)| record.job));
        self.definitions.retain(|id, _| used.contains(id));
    }
}

/// One call's view of the data.
pub(super) struct Transaction<'a> {
    data: &'a mut Data,
    now_us: i64,
}

fn done<T: Send>(value: T) -> impl Future<Output = Answer<T>> + Send {
    ready(Ok(value))
}

fn carries(phase: &Phase, waiting: Option<RunId>, run: RunId) -> bool {
    phase.held().is_some_and(|held| held.run == run) || waiting == Some(run)
}

impl Tables for Transaction<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    fn partitions(&self) -> u16 {
        self.data.partitions
    }

    fn lock_partitions(&mut self, partitions: &[u16]) -> impl Future<Output = Answer<()>> + Send {
        let missing = partitions.iter().find(|partition| **partition >= self.data.partitions);
        ready(
            missing
                .map_or(Ok(()), |missing| Err(StoreError::Permanent(format!("partition {missing} has no lock row")))),
        )
    }

    fn jobs_by_id(&mut self, ids: &[JobId]) -> impl Future<Output = Answer<Vec<Option<JobRow>>>> + Send {
        done(ids.iter().map(|id| self.data.row(*id)).collect())
    }

    fn jobs_by_key(&mut self, keys: &[JobKey]) -> impl Future<Output = Answer<Vec<Option<JobRow>>>> + Send {
        done(keys.iter().map(|key| self.data.row(*self.data.names.get(key)?)).collect())
    }

    fn job_by_run(&mut self, run: RunId) -> impl Future<Output = Answer<Option<JobRow>>> + Send {
        let waiting = |state: &JobState| state.manual.and_then(|manual| manual.run);
        done(self.data.rows(|state| carries(&state.phase, waiting(state), run)).next())
    }

    fn due_jobs(&mut self, request: &ClaimRequest) -> impl Future<Output = Answer<Vec<JobRow>>> + Send {
        let mut due: Vec<(Timestamp, JobId)> = Vec::new();
        for partition in &request.partitions {
            let from = (*partition, Timestamp::from_ms(i64::MIN), JobId(0));
            let until = (*partition, request.until, JobId(u64::MAX));
            due.extend(self.data.due.range(from..=until).map(|(_, at, id)| (*at, *id)));
        }
        due.sort_unstable();
        let rows = due.into_iter().filter_map(|(_, id)| self.data.row(id));
        let runnable = rows.filter(|row| request.executors.contains(&row.definition.job.executor));
        done(runnable.take(request.runs.len()).collect())
    }

    fn held_jobs(&mut self, session: SessionId, limit: usize) -> impl Future<Output = Answer<Vec<JobRow>>> + Send {
        let mine = |state: &JobState| state.phase.held().is_some_and(|held| held.session == session);
        done(self.data.rows(mine).take(limit).collect())
    }

    fn job_page(&mut self, query: &JobQuery) -> impl Future<Output = Answer<Vec<JobRow>>> + Send {
        let after = |key: &JobKey| query.after.as_ref().is_none_or(|after| key > after);
        let names = self.data.names.iter().filter(|(key, _)| after(key));
        let rows = names.filter_map(|(_, id)| self.data.row(*id)).filter(|row| matches(row, query));
        done(rows.take(query.limit).collect())
    }

    fn ids_of_name(&mut self, key: &JobKey) -> impl Future<Output = Answer<Vec<JobId>>> + Send {
        let named = self.data.definitions.iter().filter(|(_, definition)| definition.key() == *key);
        done(named.map(|(id, _)| *id).collect())
    }

    fn active_by_key(&mut self, keys: &[FiringKey]) -> impl Future<Output = Answer<Vec<Option<ActiveJob>>>> + Send {
        done(keys.iter().map(|key| self.data.beside(key)).collect())
    }

    fn active_by_run(&mut self, run: RunId) -> impl Future<Output = Answer<Option<ActiveJob>>> + Send {
        let waiting = |row: &ActiveRow| row.waiting.and_then(|waiting| waiting.run);
        done(self.data.besides(|row| carries(&row.phase, waiting(row), run)).next())
    }

    fn active_of_job(&mut self, job: JobId) -> impl Future<Output = Answer<Vec<ActiveJob>>> + Send {
        done(self.data.besides(|row| row.key.job == job).collect())
    }

    fn due_active(&mut self, request: &ClaimRequest) -> impl Future<Output = Answer<Vec<ActiveJob>>> + Send {
        let due = |row: &ActiveRow| row.claim_at().is_some_and(|at| at <= request.until);
        let here = |active: &ActiveJob| {
            request.partitions.contains(&self.data.partition_of(&active.definition))
                && request.executors.contains(&active.definition.job.executor)
        };
        let mut rows: Vec<ActiveJob> = self.data.besides(due).filter(here).collect();
        rows.sort_by_key(|active| (active.row.claim_at(), active.row.key));
        rows.truncate(request.runs.len());
        done(rows)
    }

    fn held_active(&mut self, session: SessionId, limit: usize) -> impl Future<Output = Answer<Vec<ActiveJob>>> + Send {
        let mine = |row: &ActiveRow| row.phase.held().is_some_and(|held| held.session == session);
        done(self.data.besides(mine).take(limit).collect())
    }

    fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> impl Future<Output = Answer<Vec<JobRow>>> + Send {
        let live = |state: &JobState| {
            jobs.is_none_or(|jobs| jobs.contains(&state.id)) && (state.phase.held().is_some() || state.manual.is_some())
        };
        done(self.data.rows(live).collect())
    }

    fn live_active(&mut self, jobs: Option<&[JobId]>) -> impl Future<Output = Answer<Vec<ActiveJob>>> + Send {
        done(self.data.besides(|row| jobs.is_none_or(|jobs| jobs.contains(&row.key.job))).collect())
    }

    fn record(&mut self, run: RunId) -> impl Future<Output = Answer<Option<Recorded>>> + Send {
        done(self.data.places.get(&run).and_then(|place| self.data.recorded(place)))
    }

    fn records(&mut self, query: &RecordQuery) -> impl Future<Output = Answer<Vec<Recorded>>> + Send {
        let wanted = |at: &Place, recorded: &Recorded| {
            let cursor = RunCursor { due_at: at.0, attempt: at.1, run: at.2 };
            query.after.is_none_or(|after| cursor < after)
                && query.jobs.as_ref().is_none_or(|jobs| jobs.contains(&recorded.record.job))
                && query.namespace.as_ref().is_none_or(|namespace| *namespace == recorded.key.namespace)
                && query.status.is_none_or(|status| status == recorded.record.status)
                && query.since.is_none_or(|since| at.0 >= since)
                && query.until.is_none_or(|until| at.0 < until)
        };
        let newest_first = self.data.records.keys().rev();
        let rows = newest_first.filter_map(|at| self.data.recorded(at).filter(|recorded| wanted(at, recorded)));
        done(rows.take(query.limit).collect())
    }

    fn last_records(&mut self, jobs: &[JobId]) -> impl Future<Output = Answer<BTreeMap<JobId, RunRecord>>> + Send {
        let mut last = BTreeMap::new();
        for (record, _) in self.data.records.values().filter(|(record, _)| jobs.contains(&record.job)) {
            last.insert(record.job, record.clone());
        }
        done(last)
    }

    fn output(&mut self, run: RunId) -> impl Future<Output = Answer<Option<Output>>> + Send {
        done(self.data.outputs.get(&run).cloned())
    }

    fn insert_session(&mut self, session: &NewSession) -> impl Future<Output = Answer<()>> + Send {
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
        self.data.sessions.insert(session.id, view);
        done(())
    }

    fn session_state(&mut self, session: SessionId) -> impl Future<Output = Answer<Option<SessionState>>> + Send {
        done(self.data.sessions.get(&session).map(|session| session.beat.state))
    }

    fn beat(&mut self, session: SessionId, seq: u64, state: SessionState) -> impl Future<Output = Answer<()>> + Send {
        let now = self.now();
        let found = self.data.sessions.get_mut(&session);
        if let Some(found) = found.filter(|found| found.beat.state != SessionState::Ended && found.beat.seq < seq) {
            found.beat = SessionBeat { id: session, seq, state };
            found.heartbeat_at = now;
        }
        done(())
    }

    fn end_session(&mut self, session: SessionId, seen_seq: u64) -> impl Future<Output = Answer<()>> + Send {
        if let Some(found) = self.data.sessions.get_mut(&session).filter(|found| found.beat.seq == seen_seq) {
            found.beat.state = SessionState::Ended;
        }
        done(())
    }

    fn remove_session(&mut self, session: SessionId) -> impl Future<Output = Answer<()>> + Send {
        self.data.sessions.remove(&session);
        done(())
    }

    fn sessions(&mut self, with_counts: bool) -> impl Future<Output = Answer<Vec<SessionView>>> + Send {
        let mut sessions: Vec<SessionView> = self.data.sessions.values().cloned().collect();
        if with_counts {
            let phases = self.data.states.values().map(|state| &state.phase);
            let phases: Vec<&Phase> = phases.chain(self.data.active.values().map(|row| &row.phase)).collect();
            for session in &mut sessions {
                let mine =
                    phases.iter().filter(|phase| phase.held().is_some_and(|held| held.session == session.beat.id));
                let (executing, prepared): (Vec<&Phase>, Vec<&Phase>) =
                    mine.partition(|phase| matches!(phase, Phase::Executing(_)));
                (session.prepared, session.executing) = (prepared.len() as u64, executing.len() as u64);
            }
        }
        done(sessions)
    }

    fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> impl Future<Output = Answer<Vec<JobId>>> + Send {
        let mut ids = Vec::with_capacity(jobs.len());
        for job in jobs {
            self.data.last_id += 1;
            let key = JobKey { namespace: job.namespace.clone(), name: job.name.clone() };
            self.data.names.insert(key, JobId(self.data.last_id));
            ids.push(JobId(self.data.last_id));
        }
        done(ids)
    }

    fn write(&mut self, changes: Changes) -> impl Future<Output = Answer<()>> + Send {
        ready(self.data.check(&changes).map(|()| self.data.apply(changes)))
    }
}

fn matches(row: &JobRow, query: &JobQuery) -> bool {
    let job = &row.definition.job;
    query.namespace.as_ref().is_none_or(|namespace| job.namespace == *namespace)
        && query.prefix.as_ref().is_none_or(|prefix| job.name.starts_with(prefix.as_str()))
        && query.state.as_ref().is_none_or(|state| row.state.phase.as_str() == state)
        && query.paused.is_none_or(|paused| row.state.pause.is_some() == paused)
        && query.label.as_ref().is_none_or(|(label, value)| {
            job.labels.get(label).is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
        })
}
