//! What people do to one job or one run.

use carillon_domain::firing::{Event, Rejected};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::node::port::RowKey;
use carillon_domain::time::Timestamp;

use super::{runs, views};
use crate::tables::{SeenJob, Tables};
use crate::work::Work;
use crate::{ControlError, JobKey, JobView, RunView, StoreError};

/// Tells the rows beside a job's own what has become of it; most of them do not mind.
pub(super) async fn propagate<T: Tables>(
    tables: &mut T,
    work: &mut Work,
    job: JobId,
    event: &Event,
) -> Result<(), StoreError> {
    if !enabled(Guard::PropagateToConcurrent) {
        return Ok(());
    }
    for concurrent in tables.concurrent_of_job(job).await? {
        let key = work.add_concurrent(concurrent);
        let _unconcerned = work.apply_concurrent(&key, event);
    }
    Ok(())
}

pub(crate) async fn delete<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    if_generation: Option<u64>,
) -> Result<(), ControlError> {
    let row = views::find(tables, key).await?.row;
    let current = row.state.generation;
    if let Some(expected) = if_generation.filter(|expected| *expected != current) {
        return Err(ControlError::Stale { expected, current });
    }
    let mut work = Work::new(tables.now());
    let id = work.add_job(row);
    work.apply(id, &Event::Delete)?;
    propagate(tables, &mut work, id, &Event::Delete).await?;
    work.free_name(id);
    Ok(tables.write(work.into_changes()).await?)
}

pub(crate) async fn pause<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    until: Option<Timestamp>,
    reason: Option<String>,
) -> Result<JobView, ControlError> {
    change(tables, key, &Event::Pause { until, reason }).await
}

pub(crate) async fn resume<T: Tables>(tables: &mut T, key: &JobKey) -> Result<JobView, ControlError> {
    change(tables, key, &Event::Resume).await
}

async fn change<T: Tables>(tables: &mut T, key: &JobKey, event: &Event) -> Result<JobView, ControlError> {
    let mut work = Work::new(tables.now());
    let SeenJob { row, node, last_run } = views::find(tables, key).await?;
    let id = work.add_job(row);
    work.apply(id, event)?;
    propagate(tables, &mut work, id, event).await?;
    let row = work.job_row(id).ok_or(Rejected::Deleted)?;
    let changes = work.into_changes();
    let recorded = !changes.records.is_empty();
    tables.write(changes).await?;
    Ok(views::changed_view(tables, (node, last_run), row, recorded).await?)
}

pub(crate) async fn trigger<T: Tables>(tables: &mut T, key: &JobKey, run: RunId) -> Result<(), ControlError> {
    let mut work = Work::new(tables.now());
    let id = work.add_job(views::find(tables, key).await?.row);
    work.apply(id, &Event::Trigger { run })?;
    Ok(tables.write(work.into_changes()).await?)
}

pub(crate) async fn cancel<T: Tables>(tables: &mut T, run: RunId) -> Result<RunView, ControlError> {
    let mut work = Work::new(tables.now());
    let row = if let Some(row) = tables.job_by_run(run).await? {
        RowKey::Job(work.add_job(row))
    } else if let Some(concurrent) = tables.concurrent_by_run(run).await? {
        RowKey::Concurrent(work.add_concurrent(concurrent))
    } else {
        let ended = tables.record(run).await?.is_some();
        return Err(if ended { ControlError::RunEnded(run) } else { ControlError::NoRun(run) });
    };
    work.apply_to(&row, &Event::Cancel { run })?;
    tables.write(work.into_changes()).await?;
    runs::run(tables, run).await
}
