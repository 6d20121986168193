//! Everything that is stored, as ordered maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, Firing, FiringKey, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{Peek, RowKey, RunRef, UNCLAIMED_PER_PARTITION, Unclaimed};
use carillon_domain::partition::partition_of;
use carillon_domain::run::{RunRecord, Trigger};
use carillon_domain::time::Timestamp;

use super::alerts::Alerts;
use super::journal::RunNumbers;
use carillon_domain::store::Definition;
use carillon_domain::store::SPENT_KEPT;
use carillon_store::Clock;
use carillon_store::OutcomeCounts;
use carillon_store::live_output::LiveRow;
use carillon_store::reports::tally::Tally;
use carillon_store::tables::{ConcurrentJob, JobRow, MAX_OUTPUT_BYTES, Recorded, Write, WriteSet};
use carillon_store::{
    AuditView, JobKey, LinkDigest, Output, PeekRequest, RecordedLoss, SessionState, SessionView, SigningKey,
    StoreError, StoreResult,
};

/// A record's place in the order in which runs are listed.
pub(super) type Place = (Timestamp, u32, RunId);

/// Everything that is stored.
#[derive(Clone)]
pub struct Data {
    pub clock: Arc<dyn Clock>,
    pub alerts: Alerts,
    pub partitions: u16,
    pub last_id: u64,
    pub definitions: BTreeMap<JobId, Arc<Definition>>,
    pub names: BTreeMap<JobKey, JobId>,
    pub states: BTreeMap<JobId, Arc<JobState>>,
    pub due: BTreeSet<(u16, Timestamp, JobId)>,
    pub concurrent: BTreeMap<FiringKey, ConcurrentRun>,
    pub records: BTreeMap<Place, (RunRecord, Option<String>)>,
    pub places: BTreeMap<RunId, Place>,
    pub numbers: RunNumbers,
    /// The same of each job, so that its newest is found at once.
    pub of_job: BTreeSet<(JobId, Place)>,
    facts: BTreeSet<(JobId, Timestamp, Trigger, u32)>,
    pub outputs: BTreeMap<RunId, Output>,
    pub run_params: BTreeMap<FiringKey, Arc<str>>,
    pub live: BTreeMap<RunId, LiveRow>,
    pub signing_key: Option<SigningKey>,
    /// Links that sign somebody in, and when they expire.
    pub links: BTreeMap<LinkDigest, Timestamp>,
    pub sessions: BTreeMap<SessionId, SessionView>,
    /// Sessions that are over: their last sequence, and when they went.
    pub spent: BTreeMap<SessionId, (u64, Timestamp)>,
    pub windows: Vec<RecordedLoss>,
    pub audit: BTreeMap<u64, AuditView>,
    pub last_audit_id: u64,
    /// Records that no count includes yet.
    pub uncounted: BTreeSet<Place>,
    pub activity: Tally,
    /// By the number of the day.
    pub job_days: BTreeMap<(JobId, i64), OutcomeCounts>,
    pub record_conflicts: usize,
    /// How often the lock row of each partition was written.
    pub epochs: Vec<u64>,
    /// Of all rows that were deleted.
    pub highest_version: u64,
}

impl Data {
    pub fn new(clock: Arc<dyn Clock>, partitions: u16) -> Self {
        Self {
            clock,
            alerts: Alerts::default(),
            partitions: partitions.max(1),
            last_id: 0,
            definitions: BTreeMap::new(),
            names: BTreeMap::new(),
            states: BTreeMap::new(),
            due: BTreeSet::new(),
            concurrent: BTreeMap::new(),
            records: BTreeMap::new(),
            places: BTreeMap::new(),
            numbers: RunNumbers::default(),
            of_job: BTreeSet::new(),
            facts: BTreeSet::new(),
            outputs: BTreeMap::new(),
            run_params: BTreeMap::new(),
            live: BTreeMap::new(),
            signing_key: None,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            spent: BTreeMap::new(),
            windows: Vec::new(),
            audit: BTreeMap::new(),
            last_audit_id: 0,
            uncounted: BTreeSet::new(),
            activity: Tally::default(),
            job_days: BTreeMap::new(),
            record_conflicts: 0,
            epochs: vec![0; usize::from(partitions.max(1))],
            highest_version: 0,
        }
    }

    pub fn peek(&self, request: &PeekRequest) -> Peek {
        let (claimants, cancels) = self.news(request.session);
        let wanted_outputs = self.wanted_outputs(request.session);
        let found = self.unclaimed(request);
        Peek { cancels, claimants, wanted_outputs, ..carillon_domain::store::peek(&request.partitions, found) }
    }

    /// The first rows of each partition that may be claimed, of both tables.
    pub fn unclaimed(&self, request: &PeekRequest) -> Vec<Unclaimed> {
        let mut found = Vec::new();
        for partition in 0..self.partitions {
            let from = (partition, Timestamp::from_ms(i64::MIN), JobId(0));
            let until = (partition, request.until, JobId(u64::MAX));
            let due = self.due.range(from..=until).filter_map(|(_, at, id)| {
                let version = self.states.get(id)?.version;
                self.unclaimed_row(request, *id, (*at, RowKey::Job(*id), version))
            });
            found.extend(due.take(UNCLAIMED_PER_PARTITION));
        }
        let concurrent = |row: &ConcurrentRun| Some((row.claim_at()?, RowKey::Concurrent(row.key), row.version));
        let due = |row: &ConcurrentRun| concurrent(row).filter(|(at, ..)| *at <= request.until);
        found.extend(self.concurrent.values().filter_map(|row| self.unclaimed_row(request, row.key.job, due(row)?)));
        found
    }

    /// Notes that a session has written back every run that it knows.
    pub fn note_written_back(&mut self, session: SessionId, until: Timestamp) {
        if let Some(found) = self.sessions.get_mut(&session) {
            found.wrote_back = found.wrote_back.max(Some(until));
        }
    }

    /// Accepts the open window that ends then; answers whether there was one.
    pub fn accept_open(&mut self, until: Timestamp, now: Timestamp) -> bool {
        let is_it = |loss: &&mut RecordedLoss| loss.accepted_at.is_none() && loss.window.until_at == until;
        self.windows.iter_mut().find(is_it).is_some_and(|loss| loss.accepted_at.replace(now).is_none())
    }

    /// The live sessions, and the runs of `session` that somebody asked to end.
    pub fn news(&self, session: SessionId) -> (Vec<SessionId>, Vec<RunId>) {
        let mine = |phase: &Phase, asked: bool| {
            phase.held().filter(|held| asked && held.session == session).map(|held| held.run)
        };
        let jobs = self.states.values().filter_map(|state| mine(&state.phase, state.cancel.is_some()));
        let concurrent = self.concurrent.values().filter_map(|row| mine(&row.phase, row.cancel.is_some()));
        let live = self.sessions.values().filter(|view| view.beat.state == SessionState::Live);
        (live.map(|view| view.beat.id).collect(), jobs.chain(concurrent).collect())
    }

    /// Whether the record, or another one of its attempt, is stored.
    pub fn is_recorded(&self, record: &RunRecord) -> bool {
        let attempt = (record.job, record.due_at, record.trigger, record.attempt);
        self.places.contains_key(&record.id) || self.facts.contains(&attempt)
    }

    fn unclaimed_row(&self, request: &PeekRequest, job: JobId, row: (Timestamp, RowKey, u64)) -> Option<Unclaimed> {
        let definition = self.definitions.get(&job)?;
        let executor = definition.job.executor.clone();
        let (claim_at, row, version) = row;
        let partition = self.partition_of(definition);
        request.executors.contains(&executor).then_some(Unclaimed { partition, claim_at, row, version, executor })
    }

    pub fn held(&self, session: SessionId) -> Vec<RunRef> {
        let mine = |phase: &Phase| phase.held().filter(|held| held.session == session).map(|held| held.run);
        let jobs = self.states.values().filter_map(|state| {
            mine(&state.phase).map(|run| RunRef { row: RowKey::Job(state.id), run, version: state.version })
        });
        let concurrent = self.concurrent.values().filter_map(|row| {
            mine(&row.phase).map(|run| RunRef { row: RowKey::Concurrent(row.key), run, version: row.version })
        });
        jobs.chain(concurrent).collect()
    }

    pub fn partition_of(&self, definition: &Definition) -> u16 {
        partition_of(&definition.job.namespace, &definition.job.name, self.partitions)
    }

    pub fn row(&self, id: JobId) -> Option<JobRow> {
        Some(JobRow { state: self.states.get(&id)?.clone(), definition: self.definitions.get(&id)?.clone() })
    }

    pub fn beside(&self, key: &FiringKey) -> Option<ConcurrentJob> {
        let row = self.concurrent.get(key)?.clone();
        Some(ConcurrentJob { definition: self.definitions.get(&key.job)?.clone(), row })
    }

    pub fn rows(&self, wanted: impl Fn(&JobState) -> bool) -> impl Iterator<Item = JobRow> {
        self.states.values().filter(move |state| wanted(state)).filter_map(|state| self.row(state.id))
    }

    pub fn besides(&self, wanted: impl Fn(&ConcurrentRun) -> bool) -> impl Iterator<Item = ConcurrentJob> {
        self.concurrent.values().filter(move |row| wanted(row)).filter_map(|row| self.beside(&row.key))
    }

    pub fn recorded(&self, place: &Place) -> Option<Recorded> {
        let (record, node) = self.records.get(place)?;
        let key = self.definitions.get(&record.job)?.key();
        let output_truncated = self.outputs.get(&record.id).is_some_and(|output| output.truncated);
        Some(Recorded { record: record.clone(), key, node: node.clone(), output_truncated })
    }

    pub fn check(&self, changes: &WriteSet) -> StoreResult<()> {
        let moved = |at: bool| if at { Ok(()) } else { Err(StoreError::Retryable("a row has moved on".to_owned())) };
        for write in &changes.jobs {
            let before = write.before.as_ref().map(|before| (before.id, before.version));
            moved(before.is_none_or(|(id, version)| self.states.get(&id).is_some_and(|row| row.version == version)))?;
        }
        for write in &changes.concurrent {
            let before = write.before.as_ref().map(|before| (before.key, before.version));
            moved(
                before.is_none_or(|(key, version)| self.concurrent.get(&key).is_some_and(|row| row.version == version)),
            )?;
        }
        self.check_outputs(changes)
    }

    /// Refuses an output that is too large.
    pub fn check_outputs(&self, changes: &WriteSet) -> StoreResult<()> {
        let largest = changes.outputs.iter().map(|(_, output)| output.bytes.len()).max().unwrap_or(0);
        if largest > MAX_OUTPUT_BYTES {
            return Err(StoreError::Permanent(format!("an output of {largest} bytes is too large")));
        }
        Ok(())
    }

    /// Where a job's row stands in the index of what is due.
    pub fn due_place(&self, id: JobId) -> Option<(u16, Timestamp, JobId)> {
        let at = self.states.get(&id)?.claim_at()?;
        Some((self.partition_of(self.definitions.get(&id)?), at, id))
    }

    fn write_job(&mut self, write: Write<JobState>) {
        self.highest_version = self.highest_version.max(write.deleted_version().unwrap_or(0));
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
        self.numbers.show(record.id, place);
        self.of_job.insert((record.job, place));
        self.uncounted.insert(place);
        self.records.insert(place, (record, node));
    }

    /// Takes a record out, and its output.
    pub fn forget_record(&mut self, place: &Place) {
        if let Some((record, _)) = self.records.remove(place) {
            self.places.remove(&record.id);
            self.uncounted.remove(place);
            self.numbers.hide(record.id);
            self.of_job.remove(&(record.job, *place));
            self.outputs.remove(&record.id);
            self.facts.remove(&(record.job, record.due_at, record.trigger, record.attempt));
            let firing = FiringKey { job: record.job, due_at: record.due_at, trigger: record.trigger };
            if !self.knows(&firing) {
                self.run_params.remove(&firing);
            }
        }
    }

    /// Whether an attempt of the firing waits, executes or has a record.
    fn knows(&self, firing: &FiringKey) -> bool {
        let is_it = |other: &Firing| other.due_at == firing.due_at && other.trigger == firing.trigger;
        let in_row = self.states.get(&firing.job).is_some_and(|state| {
            state.phase.held().is_some_and(|held| is_it(&held.firing))
                || state.manual.is_some_and(|manual| is_it(&manual.firing))
        });
        let first = (firing.job, firing.due_at, firing.trigger, 0);
        let last = (firing.job, firing.due_at, firing.trigger, u32::MAX);
        in_row || self.concurrent.contains_key(firing) || self.facts.range(first..=last).next().is_some()
    }

    /// The newest record of a job.
    pub fn last_record(&self, job: JobId) -> Option<&RunRecord> {
        let at = |ms: i64| (job, (Timestamp::from_ms(ms), 0, RunId::from_parts(0, 0)));
        let (_, newest) = self.of_job.range(at(i64::MIN)..at(i64::MAX)).next_back()?;
        self.records.get(newest).map(|(record, _)| record)
    }

    pub fn apply(&mut self, changes: WriteSet) {
        for write in changes.jobs {
            self.write_job(write);
        }
        for write in changes.concurrent {
            if let Some(before) = write.before {
                self.concurrent.remove(&before.key);
            }
            if let Some(after) = write.after {
                self.concurrent.insert(after.key, Arc::unwrap_or_clone(after));
            }
        }
        for (id, definition) in changes.definitions {
            self.definitions.insert(id, definition);
        }
        for id in changes.deleted {
            self.names.retain(|_, named| *named != id);
        }
        changes.records.into_iter().for_each(|record| self.write_record(record));
        self.run_params.extend(changes.run_params);
        self.outputs.extend(changes.outputs.into_iter().map(|(run, output)| (run, Output::clone(&output))));
        changes.audit.into_iter().for_each(|entry| self.write_audit(entry));
    }

    /// Deletes old history, then what is left of deleted jobs.
    pub fn purge(&mut self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> usize {
        let old = self.old_records(before, max_runs_per_job, limit);
        old.iter().for_each(|place| self.forget_record(place));
        self.forget_deleted();
        let oldest = self.clock.now() - SPENT_KEPT;
        self.spent.retain(|_, (_, ended_at)| *ended_at >= oldest);
        self.purge_live();
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
        used.extend(self.concurrent.keys().map(|key| key.job));
        used.extend(self.records.values().map(|(record, _)| record.job));
        self.definitions.retain(|id, _| used.contains(id));
    }
}
