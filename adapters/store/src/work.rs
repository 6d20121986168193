//! The rows that one transaction looks at, and what becomes of them.
//!
//! Every change of a row goes through the domain's `apply` here, on the row as this transaction has left it so far; what is
//! written in the end is guarded by the version that was read in the beginning.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{
    ConcurrentRun, Event, FiringKey, JobState, Phase, Rejected, Transition, TransitionKind, apply, apply_concurrent,
    start_concurrent,
};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::{Claimed, RowKey, RunRef};
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;

use super::definition::Definition;
use super::tables::{Changes, ConcurrentJob, JobRow, Write};
use super::{JobKey, Output};

/// What one event did to a job's row.
pub(super) struct Applied {
    pub kind: TransitionKind,
    /// The run that went to the table `concurrent_run`.
    pub beside: Option<FiringKey>,
}

/// Rows read, changed and not yet written.
pub(super) struct Work {
    now: Timestamp,
    jobs: BTreeMap<JobId, Write<JobState>>,
    concurrent: BTreeMap<FiringKey, Write<ConcurrentRun>>,
    changes: Changes,
}

impl Work {
    pub fn new(now: Timestamp) -> Self {
        Self { now, jobs: BTreeMap::new(), concurrent: BTreeMap::new(), changes: Changes::default() }
    }

    /// The time of the transaction.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Takes a row in, unless it is here already.
    pub fn add_job(&mut self, row: JobRow) -> JobId {
        let id = row.state.id;
        let JobRow { state, definition } = row;
        self.jobs.entry(id).or_insert_with(|| Write { before: Some(state.clone()), after: Some(state), definition });
        id
    }

    /// Takes a row in, unless it is here already.
    pub fn add_concurrent(&mut self, concurrent: ConcurrentJob) -> FiringKey {
        let key = concurrent.row.key;
        let ConcurrentJob { row, definition } = concurrent;
        let row = Arc::new(row);
        self.concurrent.entry(key).or_insert_with(|| Write { before: Some(row.clone()), after: Some(row), definition });
        key
    }

    /// Takes in the row of a job whose definition was just created.
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

    pub fn apply(&mut self, id: JobId, event: &Event) -> Result<Applied, Rejected> {
        let entry = self.jobs.get_mut(&id).ok_or(Rejected::Deleted)?;
        let state = entry.after.as_ref().ok_or(Rejected::Deleted)?;
        let definition = entry.definition.clone();
        let done = apply(&definition.job, &definition.timeline, state, event, self.now)?;
        let Transition { next, kind, records, concurrent } = done;
        entry.after = next.map(Arc::new);
        let beside = concurrent.map(|row| {
            let key = row.key;
            self.concurrent.insert(key, Write { before: None, after: Some(Arc::new(row)), definition });
            key
        });
        self.changes.records.extend(records);
        Ok(Applied { kind, beside })
    }

    pub fn apply_concurrent(&mut self, key: &FiringKey, event: &Event) -> Result<Applied, Rejected> {
        let entry = self.concurrent.get_mut(key).ok_or(Rejected::NothingDue)?;
        let row = entry.after.as_ref().ok_or(Rejected::NothingDue)?;
        let done = apply_concurrent(&entry.definition.job, row, event, self.now)?;
        entry.after = done.next.map(Arc::new);
        self.changes.records.extend(done.records);
        Ok(Applied { kind: done.kind, beside: None })
    }

    /// Jobs among those read whose runs may not overlap.
    pub fn jobs_without_overlap(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.iter().filter(|(_, entry)| entry.definition.job.overlap != Overlap::Allow).map(|(id, _)| *id)
    }

    /// Starts a run, unless others of its job live that it may not overlap.
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
                for key in self.beside(job) {
                    // One that was asked to end before is asked once.
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
        Ok(Applied { kind: done.kind, beside: None })
    }

    /// Whether others of its job live that a run in `row` may not overlap.
    pub fn must_wait(&self, job: JobId, row: &RowKey) -> bool {
        let alone = self.job(job).is_some_and(|(_, definition)| definition.job.overlap != Overlap::Allow);
        alone && self.others_live(job, row)
    }

    /// Whether a run lives that one in `row` must not overlap: any beside the job's own row, any other that executes for one
    /// beside it.
    fn others_live(&self, job: JobId, row: &RowKey) -> bool {
        let RowKey::Concurrent(me) = row else { return !self.beside(job).is_empty() };
        let executes = |phase: &Phase| matches!(phase, Phase::Executing(_));
        let own = self.job(job).is_some_and(|(state, _)| executes(&state.phase));
        let other = |key: &FiringKey| self.concurrent(key).is_some_and(|(row, _)| executes(&row.phase));
        own || self.beside(job).iter().any(|key| key != me && other(key))
    }

    /// The rows of the table `concurrent_run` that were read of a job and are still there.
    fn beside(&self, job: JobId) -> Vec<FiringKey> {
        let first = FiringKey { job, due_at: Timestamp::from_ms(i64::MIN), trigger: Trigger::Schedule };
        let of_job = self.concurrent.range(first..).take_while(|(key, _)| key.job == job);
        of_job.filter(|(_, write)| write.after.is_some()).map(|(key, _)| *key).collect()
    }

    /// Applies the event to whichever row it is.
    pub fn apply_to(&mut self, row: &RowKey, event: &Event) -> Result<Applied, Rejected> {
        match row {
            RowKey::Job(id) => self.apply(*id, event),
            RowKey::Concurrent(key) => self.apply_concurrent(key, event),
        }
    }

    /// Replaces the definition of a job; due times are computed anew only where the timing changed.
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
        self.changes.definitions.push((id, entry.definition.clone()));
        self.changes.records.extend(done.records);
        Ok(())
    }

    /// Frees the name of a job.
    pub fn free_name(&mut self, id: JobId) {
        self.changes.deleted.push(id);
    }

    pub fn keep_output(&mut self, run: RunId, output: Output) {
        self.changes.outputs.push((run, output));
    }

    /// Moves the version on, if it is still `version`, and nothing else: a stray statement guarded on it is disarmed.
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

    /// Where a row stands, with its version and definition.
    pub fn phase(&self, row: &RowKey) -> Option<(Phase, u64, &Arc<Definition>)> {
        match row {
            RowKey::Job(id) => self.job(*id).map(|(state, definition)| (state.phase, state.version, definition)),
            RowKey::Concurrent(key) => {
                self.concurrent(key).map(|(row, definition)| (row.phase, row.version, definition))
            }
        }
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

    /// What is to be written.
    pub fn into_changes(self) -> Changes {
        let jobs = self.jobs.into_values().filter(|write| write.before != write.after).collect();
        let concurrent = self.concurrent.into_values().filter(|write| write.before != write.after).collect();
        Changes { jobs, concurrent, ..self.changes }
    }
}

/// The name of a definition's job.
pub(super) fn key_of(job: &Job) -> JobKey {
    JobKey { namespace: job.namespace.clone(), name: job.name.clone() }
}
