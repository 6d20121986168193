//! The operations of both traits, once for every database.
//!
//! Each is one transaction: read rows, let the domain's `apply` decide, write. What a database adds is in
//! [`super::tables::Tables`].

pub(super) mod claim;
pub(super) mod control;
pub(super) mod lost_commits;
pub(super) mod peek;
pub(super) mod put;
pub(super) mod runs;
pub(super) mod session;
pub(super) mod transit;
pub(super) mod views;

use super::StoreError;
use super::tables::{ConcurrentJob, JobRow, Tables};
use super::work::Work;
use carillon_domain::firing::FiringKey;
use carillon_domain::id::JobId;
use carillon_domain::node::port::{RowKey, RunRef};

/// The rows of both tables that `runs` speak of.
fn rows_of<'a>(runs: impl Iterator<Item = &'a RunRef>) -> (Vec<JobId>, Vec<FiringKey>) {
    let (mut jobs, mut concurrent) = (Vec::new(), Vec::new());
    for at in runs {
        match at.row {
            RowKey::Job(id) => jobs.push(id),
            RowKey::Concurrent(key) => concurrent.push(key),
        }
    }
    (jobs, concurrent)
}

/// Reads the rows that `runs` speak of into `work`.
async fn load<T: Tables>(
    tables: &mut T,
    work: &mut Work,
    runs: impl Iterator<Item = &RunRef>,
) -> Result<(), StoreError> {
    let (jobs, concurrent) = rows_of(runs);
    add_jobs(work, tables.jobs_by_id(&jobs).await?);
    add_concurrent(work, tables.concurrent_by_key(&concurrent).await?);
    Ok(())
}

/// The same for what the caller holds and is going to change: such rows need not be read, as their versions say what they are.
async fn load_held<T: Tables>(tables: &mut T, work: &mut Work, runs: &[RunRef]) -> Result<(), StoreError> {
    let (jobs, concurrent) = rows_of(runs.iter());
    add_jobs(work, tables.jobs_of_runs(&jobs, runs).await?);
    add_concurrent(work, tables.concurrent_by_key(&concurrent).await?);
    Ok(())
}

fn add_jobs(work: &mut Work, rows: Vec<Option<JobRow>>) {
    for row in rows.into_iter().flatten() {
        work.add_job(row);
    }
}

fn add_concurrent(work: &mut Work, rows: Vec<Option<ConcurrentJob>>) {
    for row in rows.into_iter().flatten() {
        work.add_concurrent(row);
    }
}

/// Whether the row carries the run at all.
fn carries(work: &Work, at: &RunRef) -> bool {
    work.phase(&at.row).is_some_and(|(phase, ..)| phase.held().is_some_and(|held| held.run == at.run))
}

/// The row that carries the run: the one named, or the concurrent run that the run moved to when it started.
async fn located<T: Tables>(tables: &mut T, work: &mut Work, at: &RunRef) -> Result<RowKey, StoreError> {
    if carries(work, at) || matches!(at.row, RowKey::Concurrent(_)) {
        return Ok(at.row);
    }
    Ok(match tables.concurrent_by_run(at.run).await? {
        Some(concurrent) => RowKey::Concurrent(work.add_concurrent(concurrent)),
        None => at.row,
    })
}
