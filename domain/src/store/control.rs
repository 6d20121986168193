//! Requests of people about one job or one run.

use std::sync::Arc;

use super::runs::reconcile_changed;
use super::unit_of_work::UnitOfWork;
use super::{
    Action, AuditDocument, AuditEntry, Author, Decided, Decision, Definition, JobKey, JobRow, Need, Rows, StillUnknown,
};
use crate::firing::{Event, FiringKey, Rejected};
use crate::id::{JobId, RunId};
use crate::node::port::RowKey;
use crate::run::Trigger;

/// The reason why a person's request is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such job.
    #[error("there is no job {} in namespace {}", .0.name, .0.namespace)]
    NoJob(JobKey),
    /// There is no such run.
    #[error("there is no run {0}")]
    NoRun(RunId),
    /// The run is over.
    #[error("run {0} has already ended")]
    RunEnded(RunId),
    /// A job of that name exists, and the call wanted to create one.
    #[error("there is a job {} in namespace {} already", .0.name, .0.namespace)]
    NameTaken(JobKey),
    /// The caller's copy is not the newest.
    #[error(
        "the job is at generation {current}, not at {expected}: read it again and repeat the change on what you find"
    )]
    Stale {
        /// The generation that the caller expected.
        expected: u64,
        /// The generation that is stored.
        current: u64,
    },
    /// Runs may live of which the database does not know since it lost commits.
    #[error("{0}")]
    StillUnknown(StillUnknown),
    /// The state machine rejects it.
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// The outcome of a request, whose refusal writes nothing.
type Requested<A> = Decision<Result<A, Refusal>>;

fn refused<A>(refusal: impl Into<Refusal>) -> Requested<A> {
    Ok(Decided::answer(Err(refusal.into())))
}

/// The row of a job that the adapter has read into `rows`; `None` where it is gone.
fn row_of(job: JobId, rows: &Rows) -> Result<Option<&JobRow>, Need> {
    rows.jobs.get(&job).map(Option::as_ref).ok_or_else(|| Need::Jobs(vec![job]))
}

/// An entry of the audit log about a job, without its state.
fn entry(author: &Author, action: Action, (job, definition): (JobId, &Definition), rows: &Rows) -> AuditEntry {
    let job = Some((definition.key(), job));
    AuditEntry {
        at: rows.now,
        author: author.clone(),
        action,
        job,
        generation: None,
        run: None,
        before: None,
        after: None,
    }
}

/// Deletes a job; its name is free at once.
pub fn delete(job: JobId, if_generation: Option<u64>, author: &Author, rows: &Rows) -> Requested<()> {
    let Some(row) = row_of(job, rows)? else { return refused(Rejected::Deleted) };
    let current = row.state.generation;
    if let Some(expected) = if_generation.filter(|expected| *expected != current) {
        return refused(Refusal::Stale { expected, current });
    }
    rows.require_concurrent_of(vec![job])?;
    let mut work = UnitOfWork::of(rows);
    reconcile_changed(&mut work, [job], rows)?;
    if let Err(rejected) = work.apply(job, &Event::Delete) {
        return refused(rejected);
    }
    work.propagate(job, &Event::Delete);
    work.free_name(job);
    let before = Some(AuditDocument::of_job(row));
    let entry = entry(author, Action::JobDeleted, (job, &row.definition), rows);
    work.audit(AuditEntry { before, generation: Some(current), ..entry });
    Ok(work.decided(Ok(())))
}

/// Pauses or resumes a job; answers its row as it will stand, and whether history was added.
pub fn change(job: JobId, event: &Event, author: &Author, rows: &Rows) -> Requested<(JobRow, bool)> {
    let Some(before) = row_of(job, rows)? else { return refused(Rejected::Deleted) };
    rows.require_concurrent_of(vec![job])?;
    let mut work = UnitOfWork::of(rows);
    if matches!(event, Event::Resume) {
        reconcile_changed(&mut work, [job], rows)?;
    }
    if let Err(rejected) = work.apply(job, event) {
        return refused(rejected);
    }
    work.propagate(job, event);
    let Some(row) = work.job_row(job) else { return refused(Rejected::Deleted) };
    let action = if matches!(event, Event::Resume) { Action::JobResumed } else { Action::JobPaused };
    let of = |row: &JobRow| Some(AuditDocument::of_job(row));
    let (generation, entry) = (Some(row.state.generation), entry(author, action, (job, &row.definition), rows));
    work.audit(AuditEntry { before: of(before), after: of(&row), generation, ..entry });
    let Decided { write, answer: () } = work.decided(());
    let recorded = !write.records.is_empty();
    Ok(Decided { write, answer: Ok((row, recorded)) })
}

/// Asks for a run now, under the id given. `params` are laid over the job's for all attempts of this run. They are kept
/// under its firing, in the same commit, also if the run is recorded as skipped at once.
pub fn trigger(job: JobId, run: RunId, params: Option<&Arc<str>>, author: &Author, rows: &Rows) -> Requested<()> {
    let Some(row) = row_of(job, rows)? else { return refused(Rejected::Deleted) };
    let mut work = UnitOfWork::of(rows);
    if let Err(rejected) = work.apply(job, &Event::Trigger { run }) {
        return refused(rejected);
    }
    let asked_at = work.job(job).and_then(|(state, _)| state.last_manual_at);
    if let (Some(params), Some(due_at)) = (params, asked_at) {
        work.keep_run_params(FiringKey { job, due_at, trigger: Trigger::Manual }, params.clone());
    }
    let after = params.cloned().map(AuditDocument::RunParams);
    work.audit(AuditEntry { run: Some(run), after, ..entry(author, Action::JobRun, (job, &row.definition), rows) });
    Ok(work.decided(Ok(())))
}

/// Asks a run to end, or not to start.
pub fn cancel(run: RunId, author: &Author, rows: &Rows) -> Requested<()> {
    let Some(row) = *rows.runs.get(&run).ok_or(Need::Run(run))? else { return refused(Refusal::NoRun(run)) };
    let Some((job, definition)) = job_of(&row, rows) else { return refused(Refusal::NoRun(run)) };
    let mut work = UnitOfWork::of(rows);
    let event = Event::Cancel { run };
    let applied = match row {
        RowKey::Job(id) => work.apply(id, &event),
        RowKey::Concurrent(key) => work.apply_concurrent(&key, &event),
    };
    if let Err(rejected) = applied {
        return refused(rejected);
    }
    work.audit(AuditEntry { run: Some(run), ..entry(author, Action::RunCancelled, (job, definition), rows) });
    Ok(work.decided(Ok(())))
}

/// The job of a row that was read.
fn job_of<'a>(row: &RowKey, rows: &'a Rows) -> Option<(JobId, &'a Definition)> {
    match row {
        RowKey::Job(id) => Some((*id, &*rows.jobs.get(id)?.as_ref()?.definition)),
        RowKey::Concurrent(key) => Some((key.job, &*rows.concurrent.get(key)?.as_ref()?.definition)),
    }
}
