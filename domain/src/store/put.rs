//! Creating and replacing jobs, many in one transaction.
//!
//! Each job is accepted or refused by itself; the transaction succeeds or fails only with the database.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::runs::reconcile_changed;
use super::unit_of_work::UnitOfWork;
use super::{
    Action, AuditDocument, AuditEntry, Change, Decision, Definition, JobKey, JobRow, Need, PutIf, PutJob, Refusal, Rows,
};
use crate::firing::{Event, JobState, Rejected};
use crate::guard::{Guard, enabled};
use crate::id::JobId;
use crate::job::Job;
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// How many of `puts`, from the first on, have names that differ. A name that comes twice is put twice, in order.
pub fn distinct_names(puts: &[PutJob]) -> usize {
    let mut names = BTreeSet::new();
    puts.iter().take_while(|put| names.insert((&put.job.namespace, &put.job.name))).count()
}

/// Creates or replaces jobs of [distinct names](distinct_names); one answer for each, in order.
pub fn put_jobs(puts: &[PutJob], rows: &Rows) -> Decision<Vec<Result<(JobRow, Change), Refusal>>> {
    let keys: Vec<JobKey> = puts.iter().map(|put| JobKey::of(&put.job)).collect();
    if !keys.iter().all(|key| rows.names.contains_key(key)) {
        return Err(Need::Named(keys));
    }
    let stored = |key: &JobKey| rows.jobs.get(&rows.names.get(key).copied().flatten()?)?.as_ref();
    let mut new_jobs = NewJobs::of(puts.iter().zip(&keys).filter(|(_, key)| stored(key).is_none()), rows)?;
    require_concurrent(puts.iter().zip(&keys).filter_map(|(put, key)| Some((put, key, stored(key)?))), rows)?;
    let mut work = UnitOfWork::of(rows);
    let changed = puts.iter().zip(&keys).filter_map(|(put, key)| Some((put, key, stored(key)?)));
    let changed: Vec<JobId> = changed.filter(changes).map(|(_, _, row)| row.state.id).collect();
    reconcile_changed(&mut work, changed, rows)?;
    let put_one = |(put, key): (&PutJob, &JobKey)| {
        let (id, change) = match stored(key) {
            Some(row) => replace(&mut work, put, key, row)?,
            None => (new_jobs.add_next(&mut work)?, Change::Created),
        };
        let row = work.job_row(id).ok_or(Rejected::Deleted)?;
        if let Some(entry) = audit_entry(put, key, stored(key), &row, work.now(), change) {
            work.audit(entry);
        }
        Ok((row, change))
    };
    let answers = puts.iter().zip(&keys).map(put_one).collect();
    Ok(work.decided(answers))
}

/// The entry of a put in the audit log, unless it changed nothing.
fn audit_entry(
    put: &PutJob,
    key: &JobKey,
    before: Option<&JobRow>,
    after: &JobRow,
    now: Timestamp,
    change: Change,
) -> Option<AuditEntry> {
    let action = match change {
        Change::Created => Action::JobCreated,
        Change::Updated => Action::JobUpdated,
        Change::Unchanged => return None,
    };
    Some(AuditEntry {
        at: now,
        author: put.author.clone(),
        action,
        job: Some((key.clone(), after.state.id)),
        generation: Some(after.state.generation),
        run: None,
        before: before.map(AuditDocument::of_job),
        after: Some(AuditDocument::of_job(after)),
    })
}

/// Whether a put changes the job that is stored.
fn changes((put, key, row): &(&PutJob, &JobKey, &JobRow)) -> bool {
    let is_other = *row.definition.job != put.job || pause_event(put, row).is_some();
    is_other && put.when.check(key, Some(row.state.generation)).is_ok()
}

/// A pause or a resume propagates to the concurrent runs of its job.
fn require_concurrent<'a>(
    stored: impl Iterator<Item = (&'a PutJob, &'a JobKey, &'a JobRow)>,
    rows: &Rows,
) -> Result<(), Need> {
    let is_changed = |(put, key, row): &(&PutJob, &JobKey, &JobRow)| {
        put.when.check(key, Some(row.state.generation)).is_ok() && pause_event(put, row).is_some()
    };
    rows.require_concurrent_of(stored.filter(is_changed).map(|(_, _, row)| row.state.id).collect())
}

/// The jobs of a put that are not there yet, in order. Everything that can refuse one is asked before it gets a number.
struct NewJobs {
    jobs: std::vec::IntoIter<Result<New, Refusal>>,
    ids: std::vec::IntoIter<JobId>,
    version: u64,
}

impl NewJobs {
    fn of<'a>(puts: impl Iterator<Item = (&'a PutJob, &'a JobKey)>, rows: &Rows) -> Result<Self, Need> {
        let jobs: Vec<Result<New, Refusal>> = puts.map(|(put, key)| New::of(put, key, rows.now)).collect();
        let accepted: Vec<Arc<Job>> = jobs.iter().flatten().map(|new| new.job.clone()).collect();
        if accepted.is_empty() {
            return Ok(Self { jobs: jobs.into_iter(), ids: Vec::new().into_iter(), version: 0 });
        }
        let ids = rows.new_jobs.clone().ok_or(Need::NewJobs(accepted))?;
        let version = match enabled(Guard::HighestVersion) {
            true => rows.now_us.max(rows.highest_version.ok_or(Need::HighestVersion)? + 1),
            false => rows.now_us,
        };
        Ok(Self { jobs: jobs.into_iter(), ids: ids.into_iter(), version })
    }

    fn add_next(&mut self, work: &mut UnitOfWork) -> Result<JobId, Refusal> {
        let new = self.jobs.next().unwrap_or(Err(Rejected::Deleted.into()))?;
        let id = self.ids.next().ok_or(Rejected::Deleted)?;
        new.add(work, id, self.version)?;
        Ok(id)
    }
}

/// A job that is not there yet.
struct New {
    job: Arc<Job>,
    timeline: Timeline,
    /// As it will stand, but for its number and version.
    state: JobState,
    paused: bool,
}

impl New {
    fn of(put: &PutJob, key: &JobKey, now: Timestamp) -> Result<Self, Refusal> {
        put.when.check(key, None)?;
        let timeline = put.job.timeline(now).map_err(|e| Rejected::BadSchedule(e.to_string()))?;
        let state = JobState::new(JobId(0), &timeline, 0, now)?;
        Ok(Self { job: Arc::new(put.job.clone()), timeline, state, paused: put.paused == Some(true) })
    }

    fn add(self, work: &mut UnitOfWork, id: JobId, version: u64) -> Result<(), Rejected> {
        let Self { job, timeline, state, paused } = self;
        let state = JobState { id, version, ..state };
        let (generation, anchor_at) = (state.generation, state.anchor_at);
        let (created_at, updated_at) = (anchor_at, anchor_at);
        let definition = Definition { job, timeline, generation, anchor_at, created_at, updated_at };
        work.add_new_job(state, Arc::new(definition));
        if paused {
            work.apply(id, &Event::Pause { until: None, reason: None })?;
        }
        Ok(())
    }
}

impl PutIf {
    /// Whether it holds for the job of that name, which is stored at that generation; `None` where there is no such job.
    ///
    /// # Errors
    /// The refusal of the put.
    pub fn check(self, key: &JobKey, stored: Option<u64>) -> Result<(), Refusal> {
        match (self, stored) {
            (PutIf::Absent, Some(_)) => Err(Refusal::NameTaken(key.clone())),
            (PutIf::Generation(_), None) => Err(Refusal::NoJob(key.clone())),
            (PutIf::Generation(expected), Some(current)) if expected != current => {
                Err(Refusal::Stale { expected, current })
            }
            (PutIf::Any | PutIf::Absent, None) | (PutIf::Any | PutIf::Generation(_), Some(_)) => Ok(()),
        }
    }
}

/// The pause or resume that the put asks for.
fn pause_event(put: &PutJob, row: &JobRow) -> Option<Event> {
    match (put.paused, row.state.pause.is_some()) {
        (Some(true), false) => Some(Event::Pause { until: None, reason: None }),
        (Some(false), true) => Some(Event::Resume),
        _ => None,
    }
}

fn replace(work: &mut UnitOfWork, put: &PutJob, key: &JobKey, row: &JobRow) -> Result<(JobId, Change), Refusal> {
    let id = row.state.id;
    put.when.check(key, Some(row.state.generation))?;
    let same = *row.definition.job == put.job;
    if !same {
        work.update(id, put.job.clone())?;
    }
    let event = pause_event(put, row);
    if let Some(event) = &event {
        work.apply(id, event)?;
        work.propagate(id, event);
    }
    Ok((id, if same && event.is_none() { Change::Unchanged } else { Change::Updated }))
}
