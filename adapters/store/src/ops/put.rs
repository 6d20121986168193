//! Creating and replacing jobs, many in one transaction.
//!
//! Each job is accepted or refused by itself; the transaction stands or falls only with the database. A name that comes
//! twice in one batch is put twice, in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use carillon_domain::firing::{Event, JobState, Rejected};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::JobId;
use carillon_domain::job::Job;
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

use super::{control, views};
use crate::definition::Definition;
use crate::tables::{JobRow, Tables};
use crate::work::{Work, key_of};
use crate::{Change, ControlError, JobKey, PutIf, PutJob, Saved, StoreError};

type Answer = Result<(JobId, Change), ControlError>;

pub(crate) async fn put_jobs<T: Tables>(
    tables: &mut T,
    puts: &[PutJob],
) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
    let mut answers = Vec::with_capacity(puts.len());
    let mut rest = puts;
    while !rest.is_empty() {
        let (batch, further) = rest.split_at(distinct_names(rest));
        answers.extend(put_batch(tables, batch).await?);
        rest = further;
    }
    Ok(answers)
}

/// How many of `puts` have names that differ.
fn distinct_names(puts: &[PutJob]) -> usize {
    let mut seen = BTreeSet::new();
    puts.iter().take_while(|put| seen.insert((&put.job.namespace, &put.job.name))).count()
}

async fn put_batch<T: Tables>(tables: &mut T, puts: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
    let keys: Vec<JobKey> = puts.iter().map(|put| key_of(&put.job)).collect();
    let found = tables.jobs_by_key(&keys).await?;
    let now = tables.now();
    let mut work = Work::new(now);
    let mut answers: Vec<Option<Answer>> = Vec::with_capacity(puts.len());
    let mut fresh: Vec<New> = Vec::new();
    for (position, (put, row)) in puts.iter().zip(found).enumerate() {
        answers.push(match row {
            Some(row) => Some(replace(tables, &mut work, put, row).await?),
            None => match New::of(position, put, now) {
                Err(refused) => Some(Err(refused)),
                Ok(new) => {
                    fresh.push(new);
                    None
                }
            },
        });
    }
    if !fresh.is_empty() {
        let jobs: Vec<Arc<Job>> = fresh.iter().map(|new| new.job.clone()).collect();
        let ids = tables.create_jobs(&jobs).await?;
        let version = match enabled(Guard::HighestVersion) {
            true => tables.now_us().max(tables.highest_version().await? + 1),
            false => tables.now_us(),
        };
        for (new, id) in fresh.into_iter().zip(ids) {
            let position = new.position;
            answers[position] = Some(new.add(&mut work, id, version).map(|()| (id, Change::Created)));
        }
    }
    let rows: Vec<_> = answers.into_iter().flatten().map(|answer| saved_row(&work, answer)).collect();
    tables.write(work.into_changes()).await?;
    views::saved(tables, rows).await
}

fn saved_row(work: &Work, answer: Answer) -> Result<(JobRow, Change), ControlError> {
    let (id, change) = answer?;
    Ok((work.job_row(id).ok_or(Rejected::Deleted)?, change))
}

/// A job that is not there yet. Everything that can refuse it was asked before a row is made of it.
struct New {
    /// Among the puts.
    position: usize,
    job: Arc<Job>,
    timeline: Timeline,
    /// As it will stand, but for its number and version.
    state: JobState,
    paused: bool,
}

impl New {
    fn of(position: usize, put: &PutJob, now: Timestamp) -> Result<Self, ControlError> {
        if let PutIf::Generation(_) = put.when {
            return Err(views::no_job(&key_of(&put.job)));
        }
        let timeline = put.job.timeline(now).map_err(|e| Rejected::BadSchedule(e.to_string()))?;
        let state = JobState::new(JobId(0), &timeline, 0, now)?;
        Ok(Self { position, job: Arc::new(put.job.clone()), timeline, state, paused: put.paused == Some(true) })
    }

    fn add(self, work: &mut Work, id: JobId, version: u64) -> Result<(), ControlError> {
        let Self { job, timeline, state, paused, .. } = self;
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

async fn replace<T: Tables>(tables: &mut T, work: &mut Work, put: &PutJob, row: JobRow) -> Result<Answer, StoreError> {
    let current = row.state.generation;
    match put.when {
        PutIf::Absent => {
            let JobKey { namespace, name } = key_of(&put.job);
            return Ok(Err(ControlError::NameTaken { namespace, name }));
        }
        PutIf::Generation(expected) if expected != current => {
            return Ok(Err(ControlError::Stale { expected, current }));
        }
        PutIf::Generation(_) | PutIf::Any => {}
    }
    let same = *row.definition.job == put.job;
    let event = match (put.paused, row.state.pause.is_some()) {
        (Some(true), false) => Some(Event::Pause { until: None, reason: None }),
        (Some(false), true) => Some(Event::Resume),
        _ => None,
    };
    let id = work.add_job(row);
    if !same && let Err(refused) = work.update(id, put.job.clone()) {
        return Ok(Err(refused.into()));
    }
    if let Some(event) = &event {
        if let Err(refused) = work.apply(id, event) {
            return Ok(Err(refused.into()));
        }
        control::propagate(tables, work, id, event).await?;
    }
    let change = if same && event.is_none() { Change::Unchanged } else { Change::Updated };
    Ok(Ok((id, change)))
}
