//! Jobs as people see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::id::SessionId;
use carillon_domain::run::RunRecord;
use carillon_domain::schedule::Timeline;
use carillon_domain::store::Refusal;

use crate::tables::{JobRow, JobRows, SeenJob, Tables};
use crate::{Change, ControlError, JobCursor, JobKey, JobQuery, JobSort, JobView, Page, Saved, StoreError};

/// The node's name of each session that there is.
pub(crate) async fn node_names<T: Tables>(tables: &mut T) -> Result<BTreeMap<SessionId, String>, StoreError> {
    let sessions = tables.sessions(false).await?;
    Ok(sessions.into_iter().map(|session| (session.beat.id, session.node)).collect())
}

impl From<SeenJob> for JobView {
    fn from(SeenJob { row: JobRow { state, definition }, node, last_run }: SeenJob) -> Self {
        Self {
            timeline: Timeline { anchor: state.anchor_at, ..definition.timeline.clone() },
            job: definition.job.clone(),
            created_at: definition.created_at,
            updated_at: definition.updated_at,
            node: node.filter(|_| state.phase.held().is_some()),
            last_run,
            state: Arc::unwrap_or_clone(state),
        }
    }
}

/// The refusal where there is no such job.
pub(crate) fn no_job(key: &JobKey) -> ControlError {
    Refusal::NoJob(key.clone()).into()
}

/// Rows with what people see of them beside, for databases that answer at once.
pub async fn seen_jobs<T: Tables>(tables: &mut T, rows: Vec<JobRow>) -> Result<Vec<SeenJob>, StoreError> {
    let ids: Vec<_> = rows.iter().map(|row| row.state.id).collect();
    let mut last_runs = tables.last_records(&ids).await?;
    let held = rows.iter().any(|row| row.state.phase.held().is_some());
    let nodes = if held { node_names(tables).await? } else { BTreeMap::new() };
    let see = |row: JobRow| SeenJob {
        node: row.state.phase.held().and_then(|held| nodes.get(&held.session).cloned()),
        last_run: last_runs.remove(&row.state.id),
        row,
    };
    Ok(rows.into_iter().map(see).collect())
}

/// A living job as people see it, for databases that answer at once.
pub async fn seen_job<T: Tables>(tables: &mut T, key: &JobKey) -> Result<Option<SeenJob>, StoreError> {
    match tables.jobs_by_key(std::slice::from_ref(key)).await?.pop().flatten() {
        Some(row) => Ok(seen_jobs(tables, vec![row]).await?.pop()),
        None => Ok(None),
    }
}

/// The same, or the error that tells that there is none.
pub(crate) async fn find<T: Tables>(tables: &mut T, key: &JobKey) -> Result<SeenJob, ControlError> {
    let seen = tables.seen_job(key).await?;
    seen.ok_or_else(|| no_job(key))
}

/// A job that was `seen`, as `row` is what became of it; what was written may have added to its history.
pub(crate) async fn changed_view<T: Tables>(
    tables: &mut T,
    (node, last_run): (Option<String>, Option<RunRecord>),
    row: JobRow,
    recorded: bool,
) -> Result<JobView, StoreError> {
    let last_run = match recorded {
        true => tables.last_records(&[row.state.id]).await?.remove(&row.state.id),
        false => last_run,
    };
    Ok(SeenJob { row, node, last_run }.into())
}

pub(crate) async fn job<T: Tables>(tables: &mut T, key: &JobKey) -> Result<JobView, ControlError> {
    find(tables, key).await.map(JobView::from)
}

/// Where the listing goes on behind this job.
pub(crate) fn cursor_of(row: &JobRow, sort: JobSort) -> JobCursor {
    match sort {
        JobSort::Name => JobCursor::Name(row.definition.key()),
        JobSort::Next => JobCursor::Next { claim_at: row.state.claim_at(), id: row.state.id },
    }
}

pub(crate) async fn jobs<T: Tables>(tables: &mut T, query: &JobQuery) -> Result<Page<JobView, JobCursor>, StoreError> {
    let limit = query.limit.max(1);
    let JobRows { mut rows, looked_until } = tables.job_page(&JobQuery { limit: limit + 1, ..query.clone() }).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more).map(|seen| cursor_of(&seen.row, query.sort));
    let next = last.or(looked_until);
    Ok(Page { items: rows.into_iter().map(JobView::from).collect(), next })
}

/// The answers to a put, in order.
pub(crate) async fn saved<T: Tables>(
    tables: &mut T,
    rows: Vec<Result<(JobRow, Change), Refusal>>,
) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
    // A job that was just created has neither history nor a node that holds it.
    let known = rows.iter().flatten().filter(|(_, change)| *change != Change::Created).map(|(row, _)| row.clone());
    let known = known.collect::<Vec<_>>();
    let known = if known.is_empty() { Vec::new() } else { seen_jobs(tables, known).await? };
    let mut known = known.into_iter();
    let saved = |row: Result<(JobRow, Change), Refusal>| {
        let (row, change) = row?;
        let seen = match change {
            Change::Created => Some(SeenJob { row, node: None, last_run: None }),
            Change::Updated | Change::Unchanged => known.next(),
        };
        let seen = seen.ok_or_else(|| StoreError::Permanent("a saved job has no view".to_owned()))?;
        Ok(Saved { view: seen.into(), change })
    };
    Ok(rows.into_iter().map(saved).collect())
}
