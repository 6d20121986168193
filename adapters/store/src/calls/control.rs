//! The calls of people.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::Event;
use carillon_domain::id::RunId;
use carillon_domain::store::{self, Refusal};
use carillon_domain::time::Timestamp;

use super::decide::{decide, decide_on};
use crate::alerts::calls as alerts;
use crate::tables::{SeenJob, Tables};
use crate::views::{jobs, runs};
use crate::{Author, ControlError, JobKey, JobView, PutJob, RecordedLoss, RunView, Saved, SessionView, StoreResult};

/// How long an accepted loss window is shown.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) async fn put_jobs<T: Tables>(
    tables: &mut T,
    puts: &[PutJob],
) -> StoreResult<Vec<Result<Saved, ControlError>>> {
    let mut answers = Vec::with_capacity(puts.len());
    let mut rest = puts;
    while !rest.is_empty() {
        let (batch, further) = rest.split_at(store::distinct_names(rest));
        let rows = decide(tables, |rows| store::put_jobs(batch, rows)).await?;
        answers.extend(jobs::saved(tables, rows).await?);
        rest = further;
    }
    Ok(answers)
}

pub(crate) async fn delete<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    if_generation: Option<u64>,
    author: &Author,
) -> Result<(), ControlError> {
    let row = jobs::find(tables, key).await?.row;
    let id = row.state.id;
    Ok(decide_on(tables, vec![row], |rows| store::delete(id, if_generation, author, rows)).await??)
}

pub(crate) async fn pause<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    until: Option<Timestamp>,
    reason: Option<String>,
    author: &Author,
) -> Result<JobView, ControlError> {
    change(tables, key, &Event::Pause { until, reason }, author).await
}

pub(crate) async fn resume<T: Tables>(tables: &mut T, key: &JobKey, author: &Author) -> Result<JobView, ControlError> {
    change(tables, key, &Event::Resume, author).await
}

async fn change<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    event: &Event,
    author: &Author,
) -> Result<JobView, ControlError> {
    let SeenJob { row, node, last_run } = jobs::find(tables, key).await?;
    let id = row.state.id;
    let (row, recorded) = decide_on(tables, vec![row], |rows| store::change(id, event, author, rows)).await??;
    Ok(jobs::changed_view(tables, (node, last_run), row, recorded).await?)
}

pub(crate) async fn trigger<T: Tables>(
    tables: &mut T,
    key: &JobKey,
    run: RunId,
    params: Option<&Arc<str>>,
    author: &Author,
) -> Result<(), ControlError> {
    let row = jobs::find(tables, key).await?.row;
    let id = row.state.id;
    Ok(decide_on(tables, vec![row], |rows| store::trigger(id, run, params, author, rows)).await??)
}

pub(crate) async fn cancel<T: Tables>(tables: &mut T, run: RunId, author: &Author) -> Result<RunView, ControlError> {
    match decide(tables, |rows| store::cancel(run, author, rows)).await? {
        Ok(()) => runs::run(tables, run).await,
        Err(Refusal::NoRun(_)) if tables.record(run).await?.is_some() => Err(Refusal::RunEnded(run).into()),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(crate) async fn losses<T: Tables>(tables: &mut T) -> StoreResult<Vec<RecordedLoss>> {
    tables.windows(tables.now() - SHOWN).await
}

/// Answers the windows that were open.
pub(crate) async fn accept_losses<T: Tables>(
    tables: &mut T,
    patience: Duration,
    author: &Author,
) -> Result<Vec<RecordedLoss>, ControlError> {
    let sessions: Vec<_> = tables.sessions(false).await?.iter().map(SessionView::writing).collect();
    let accepted = store::accept_losses(losses(tables).await?, &sessions, patience, author, tables.now())?;
    let Some(until) = accepted.answer.first().map(|loss| loss.window.until_at) else { return Ok(Vec::new()) };
    // Somebody else may have accepted it since it was read, or it has grown: then this one accepts nothing.
    if !tables.accept_windows(until).await? {
        return Ok(Vec::new());
    }
    tables.write(accepted.write).await?;
    alerts::commits_are_accepted(tables).await?;
    Ok(accepted.answer)
}
