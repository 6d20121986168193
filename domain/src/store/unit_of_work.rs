//! The rows of one decision, as its events have left them so far.
//!
//! Every change of a row goes through [`crate::firing`] here. The write in the end is guarded by the version that was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{AuditEntry, Decided, Definition, JobRow, Rows, SessionWrite, Write, WriteSet};
use crate::firing::{
    ConcurrentRun, Event, FiringKey, Held, JobState, LastEnd, Phase, Rejected, Transition, TransitionKind, apply,
    apply_concurrent, record_of_end, start_concurrent,
};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, RunId, SessionId};
use crate::job::{Job, Overlap};
use crate::node::port::{Claimed, RowKey, RunRef};
use crate::run::{Ending, Output, RunRecord, Trigger};
use crate::time::Timestamp;

/// The effect of one event on a row.
pub(super) struct Applied {
    pub kind: TransitionKind,
    /// The run that became a concurrent run.
    pub concurrent: Option<FiringKey>,
}

/// Rows that were read, changed and not yet written.
pub(super) struct UnitOfWork {
    now: Timestamp,
    jobs: BTreeMap<JobId, Write<JobState>>,
    concurrent: BTreeMap<FiringKey, Write<ConcurrentRun>>,
    write: WriteSet,
}

impl UnitOfWork {
    /// All rows that were read.
    pub fn of(rows: &Rows) -> Self {
        let unchanged = |JobRow { state, definition }: &JobRow| Write {
            before: Some(state.clone()),
            after: Some(state.clone()),
            definition: definition.clone(),
        };
        let jobs = rows.jobs.iter().filter_map(|(id, row)| Some((*id, unchanged(row.as_ref()?))));
        let concurrent = rows.concurrent.iter().filter_map(|(key, run)| {
            let run = run.as_ref()?;
            let row = Arc::new(run.row.clone());
            let definition = run.definition.clone();
            Some((*key, Write { before: Some(row.clone()), after: Some(row), definition }))
        });
        Self { now: rows.now, jobs: jobs.collect(), concurrent: concurrent.collect(), write: WriteSet::default() }
    }

    /// The time of the transaction.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Adds the row of a job whose definition was just created.
    pub fn add_new_job(&mut self, state: JobState, definition: Arc<Definition>) {
        self.jobs.insert(state.id, Write { before: None, after: Some(Arc::new(state)), definition });
    }

    pub fn job(&self, id: JobId) -> Option<(&Arc<JobState>, &Arc<Definition>)> {
        let entry = self.jobs.get(&id)?;
        entry.after.as_ref().map(|state| (state, &entry.definition))
    }

    pub fn concurrent(&self, key: &FiringKey) -> Option<(&ConcurrentRun, &Arc<Definition>)> {
        let entry = self.concurrent.get(key)?;
        entry.after.as_deref().map(|row| (row, &entry.definition))
    }

    pub fn job_row(&self, id: JobId) -> Option<JobRow> {
        self.job(id).map(|(state, definition)| JobRow { state: state.clone(), definition: definition.clone() })
    }

    /// Where a row stands, with its version and definition.
    pub fn phase(&self, row: &RowKey) -> Option<(Phase, u64, &Arc<Definition>)> {
        match row {
            RowKey::Job(id) => self.job(*id).map(|(state, definition)| (state.phase, state.version, definition)),
            RowKey::Concurrent(key) => {
                self.concurrent(key).map(|(row, definition)| (row.phase, row.version, definition))
            }
        }
    }

    /// Whether the row carries the run.
    pub fn carries(&self, at: &RunRef) -> bool {
        self.phase(&at.row).is_some_and(|(phase, ..)| phase.held().is_some_and(|held| held.run == at.run))
    }

    /// When the row may be claimed.
    pub fn claim_at(&self, row: &RowKey) -> Option<Timestamp> {
        match row {
            RowKey::Job(id) => self.job(*id).and_then(|(state, _)| state.claim_at()),
            RowKey::Concurrent(key) => self.concurrent(key).and_then(|(row, _)| row.claim_at()),
        }
    }

    /// When a newer firing replaces the run in this row.
    pub fn replace_at(&self, row: &RowKey) -> Option<Timestamp> {
        let RowKey::Job(id) = row else { return None };
        let (state, definition) = self.job(*id)?;
        state.replace_at(&definition.job, &definition.timeline, self.now)
    }

    /// The row as its holder is told after a claim.
    pub fn claimed(&self, row: &RowKey) -> Option<Claimed> {
        let (phase, version, definition) = self.phase(row)?;
        let held = *phase.held()?;
        Some(Claimed {
            at: RunRef { row: *row, run: held.run, version },
            held,
            replace_at: None,
            job: definition.job.clone(),
            generation: definition.generation,
        })
    }

    /// Jobs whose runs may not overlap.
    pub fn jobs_without_overlap(&self) -> Vec<JobId> {
        let alone = self.jobs.iter().filter(|(_, entry)| entry.definition.job.overlap != Overlap::Allow);
        alone.map(|(id, _)| *id).collect()
    }

    pub fn apply(&mut self, id: JobId, event: &Event) -> Result<Applied, Rejected> {
        let entry = self.jobs.get_mut(&id).ok_or(Rejected::Deleted)?;
        let state = entry.after.as_ref().ok_or(Rejected::Deleted)?;
        let definition = entry.definition.clone();
        let Transition { next, kind, records, concurrent } =
            apply(&definition.job, &definition.timeline, state, event, self.now)?;
        entry.after = next.map(Arc::new);
        let concurrent = concurrent.map(|row| {
            let key = row.key;
            self.concurrent.insert(key, Write { before: None, after: Some(Arc::new(row)), definition });
            key
        });
        self.write.records.extend(records);
        Ok(Applied { kind, concurrent })
    }

    pub fn apply_concurrent(&mut self, key: &FiringKey, event: &Event) -> Result<Applied, Rejected> {
        let entry = self.concurrent.get_mut(key).ok_or(Rejected::NothingDue)?;
        let row = entry.after.as_ref().ok_or(Rejected::NothingDue)?;
        let done = apply_concurrent(&entry.definition.job, row, event, self.now)?;
        entry.after = done.next.map(Arc::new);
        self.note_ends(key.job, &done.records);
        self.write.records.extend(done.records);
        Ok(Applied { kind: done.kind, concurrent: None })
    }

    /// The job's row learns how a concurrent run of it ended, unless that changes nothing or the row was not read.
    fn note_ends(&mut self, job: JobId, records: &[RunRecord]) {
        let Some(state) = self.jobs.get_mut(&job).and_then(|entry| entry.after.as_mut()) else { return };
        let last_end = records.iter().fold(state.last_end, LastEnd::after);
        if last_end != state.last_end {
            let state = Arc::make_mut(state);
            (state.last_end, state.version) = (last_end, state.version + 1);
        }
    }

    /// Applies the event to whichever row it is.
    pub fn apply_to(&mut self, row: &RowKey, event: &Event) -> Result<Applied, Rejected> {
        match row {
            RowKey::Job(id) => self.apply(*id, event),
            RowKey::Concurrent(key) => self.apply_concurrent(key, event),
        }
    }

    /// Applies the event to the concurrent runs of a job. Most of them are not concerned and reject it.
    pub fn propagate(&mut self, job: JobId, event: &Event) {
        if enabled(Guard::PropagateToConcurrent) {
            for key in self.concurrent_of(job) {
                let _unconcerned = self.apply_concurrent(&key, event);
            }
        }
    }

    /// Starts a run, unless other runs of its job live that it may not overlap: then it is deferred.
    pub fn start(&mut self, row: &RowKey, session: SessionId, run: RunId) -> Result<Applied, Rejected> {
        let job = match row {
            RowKey::Job(id) => *id,
            RowKey::Concurrent(key) => key.job,
        };
        let (_, definition) = self.job(job).ok_or(Rejected::Deleted)?;
        let overlap = definition.job.overlap;
        if self.must_wait(job, row) && enabled(Guard::NoForbiddenOverlap) {
            let deferred = self.apply_to(row, &Event::Defer { session, run })?;
            if deferred.kind == TransitionKind::Deferred && overlap == Overlap::Replace && *row == RowKey::Job(job) {
                for key in self.concurrent_of(job) {
                    // A run that was asked to end before is asked once.
                    let _asked_before = self.apply_concurrent(&key, &Event::Supersede);
                }
            }
            return Ok(deferred);
        }
        match row {
            RowKey::Job(id) => self.apply(*id, &Event::Start { session, run }),
            RowKey::Concurrent(key) => self.start_concurrent(key, session, run),
        }
    }

    fn start_concurrent(&mut self, key: &FiringKey, session: SessionId, run: RunId) -> Result<Applied, Rejected> {
        let own = self.jobs.get_mut(&key.job).ok_or(Rejected::Deleted)?;
        let entry = self.concurrent.get_mut(key).ok_or(Rejected::NothingDue)?;
        let state = own.after.as_ref().ok_or(Rejected::Deleted)?;
        let row = entry.after.as_ref().ok_or(Rejected::NothingDue)?;
        let (state, done) = start_concurrent(state, row, (session, run), self.now)?;
        (own.after, entry.after) = (Some(Arc::new(state)), done.next.map(Arc::new));
        Ok(Applied { kind: done.kind, concurrent: None })
    }

    /// Whether other runs of its job live that a run in `row` may not overlap.
    pub fn must_wait(&self, job: JobId, row: &RowKey) -> bool {
        let alone = self.job(job).is_some_and(|(_, definition)| definition.job.overlap != Overlap::Allow);
        alone && self.others_live(job, row)
    }

    /// The job's own row waits for every concurrent run. A concurrent run waits for those that execute.
    fn others_live(&self, job: JobId, row: &RowKey) -> bool {
        let RowKey::Concurrent(me) = row else { return !self.concurrent_of(job).is_empty() };
        let executes = |phase: &Phase| matches!(phase, Phase::Executing(_));
        let own = self.job(job).is_some_and(|(state, _)| executes(&state.phase));
        let other = |key: &FiringKey| self.concurrent(key).is_some_and(|(row, _)| executes(&row.phase));
        own || self.concurrent_of(job).iter().any(|key| key != me && other(key))
    }

    /// The concurrent runs of a job that were read and are still there.
    fn concurrent_of(&self, job: JobId) -> Vec<FiringKey> {
        let first = FiringKey { job, due_at: Timestamp::from_ms(i64::MIN), trigger: Trigger::Schedule };
        let of_job = self.concurrent.range(first..).take_while(|(key, _)| key.job == job);
        of_job.filter(|(_, write)| write.after.is_some()).map(|(key, _)| *key).collect()
    }

    /// Replaces the definition of a job. Due times are computed again only where the timing changed.
    pub fn update(&mut self, id: JobId, job: Job) -> Result<(), Rejected> {
        let entry = self.jobs.get_mut(&id).ok_or(Rejected::Deleted)?;
        let state = entry.after.as_ref().ok_or(Rejected::Deleted)?;
        let previous = entry.definition.clone();
        let anchor = if job.timing_differs(&previous.job) { self.now } else { state.anchor_at };
        let timeline = job.timeline(anchor).map_err(|e| Rejected::BadSchedule(e.to_string()))?;
        let event = Event::Update { previous: Box::new(((*previous.job).clone(), previous.timeline.clone())) };
        let done = apply(&job, &timeline, state, &event, self.now)?;
        let generation = done.next.as_ref().map_or(state.generation, |next| next.generation);
        entry.definition = Arc::new(Definition {
            job: Arc::new(job),
            timeline,
            generation,
            anchor_at: anchor,
            created_at: previous.created_at,
            updated_at: self.now,
        });
        entry.after = done.next.map(Arc::new);
        self.write.definitions.push((id, entry.definition.clone()));
        self.write.records.extend(done.records);
        Ok(())
    }

    /// Frees the name of a job.
    pub fn free_name(&mut self, id: JobId) {
        self.write.deleted.push(id);
    }

    /// The new records so far.
    pub fn records(&self) -> &[RunRecord] {
        &self.write.records
    }

    /// Records the end of a run that no row carries any more.
    pub fn record_end(&mut self, job: JobId, held: &Held, ending: &Ending) {
        let record = record_of_end(job, held, ending, self.now);
        self.note_ends(job, std::slice::from_ref(&record));
        self.write.records.push(record);
    }

    pub fn keep_output(&mut self, run: RunId, output: Arc<Output>) {
        self.write.outputs.push((run, output));
    }

    pub fn keep_run_params(&mut self, firing: FiringKey, params: Arc<str>) {
        self.write.run_params.push((firing, params));
    }

    pub fn write_session(&mut self, write: SessionWrite) {
        self.write.sessions.push(write);
    }

    /// Adds an entry to the audit log.
    pub fn audit(&mut self, entry: AuditEntry) {
        self.write.audit.push(entry);
    }

    /// Raises the version if it is still `version`, and changes nothing else. It disarms a stray statement guarded on it.
    pub fn disarm(&mut self, row: &RowKey, version: u64) {
        let found = match row {
            RowKey::Job(id) => {
                let row = self.jobs.get_mut(id).and_then(|entry| entry.after.as_mut());
                row.filter(|row| row.version == version).map(|row| &mut Arc::make_mut(row).version)
            }
            RowKey::Concurrent(key) => {
                let row = self.concurrent.get_mut(key).and_then(|entry| entry.after.as_mut());
                row.filter(|row| row.version == version).map(|row| &mut Arc::make_mut(row).version)
            }
        };
        if let Some(found) = found {
            *found += 1;
        }
    }

    /// Raises the version of a job's row to this one at least. Tokens of its runs come from there.
    pub fn lift(&mut self, id: JobId, version: u64) {
        if let Some(state) = self.jobs.get_mut(&id).and_then(|entry| entry.after.as_mut()) {
            let state = Arc::make_mut(state);
            state.version = state.version.max(version) + 1;
        }
    }

    /// The decision: every row that changed is written. Where nothing changed, the audit log tells nothing.
    pub fn decided<A>(self, answer: A) -> Decided<A> {
        let jobs: Vec<_> = self.jobs.into_values().filter(|write| write.before != write.after).collect();
        let concurrent: Vec<_> = self.concurrent.into_values().filter(|write| write.before != write.after).collect();
        let mut write = WriteSet { jobs, concurrent, ..self.write };
        if write.jobs.is_empty() && write.concurrent.is_empty() && write.records.is_empty() {
            write.audit.clear();
        }
        Decided { write, answer }
    }
}
