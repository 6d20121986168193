//! Jobs as people see them.

use std::collections::BTreeMap;

use carillon_domain::id::SessionId;

use crate::store::tables::{JobRow, Tables};
use crate::store::{Change, ControlError, JobKey, JobQuery, JobView, Page, Saved, StoreError};

/// The node's name of each session that there is.
pub(super) async fn node_names<T: Tables>(tables: &mut T) -> Result<BTreeMap<SessionId, String>, StoreError> {
    let sessions = tables.sessions(false).await?;
    Ok(sessions.into_iter().map(|session| (session.beat.id, session.node)).collect())
}

async fn job_views<T: Tables>(tables: &mut T, rows: Vec<JobRow>) -> Result<Vec<JobView>, StoreError> {
    let ids: Vec<_> = rows.iter().map(|row| row.state.id).collect();
    let mut last_runs = tables.last_records(&ids).await?;
    let held = rows.iter().any(|row| row.state.phase.held().is_some());
    let nodes = if held { node_names(tables).await? } else { BTreeMap::new() };
    let view = |row: JobRow| JobView {
        job: row.definition.job.clone(),
        created_at: row.definition.created_at,
        updated_at: row.definition.updated_at,
        node: row.state.phase.held().and_then(|held| nodes.get(&held.session).cloned()),
        last_run: last_runs.remove(&row.state.id),
        state: row.state,
    };
    Ok(rows.into_iter().map(view).collect())
}

pub(super) async fn job_view<T: Tables>(tables: &mut T, row: JobRow) -> Result<JobView, StoreError> {
    let view = job_views(tables, vec![row]).await?.pop();
    view.ok_or_else(|| StoreError::Permanent("a job has no view".to_owned()))
}

pub(in crate::store) async fn job<T: Tables>(tables: &mut T, key: &JobKey) -> Result<JobView, ControlError> {
    let row = tables.jobs_by_key(std::slice::from_ref(key)).await?.pop().flatten();
    let row = row.ok_or_else(|| ControlError::NoJob { namespace: key.namespace.clone(), name: key.name.clone() })?;
    Ok(job_view(tables, row).await?)
}

pub(in crate::store) async fn jobs<T: Tables>(
    tables: &mut T,
    query: &JobQuery,
) -> Result<Page<JobView, JobKey>, StoreError> {
    let limit = query.limit.max(1);
    let mut rows = tables.job_page(&JobQuery { limit: limit + 1, ..query.clone() }).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| row.definition.key());
    Ok(Page { items: job_views(tables, rows).await?, next })
}

/// The answers to a put, in order.
pub(super) async fn saved<T: Tables>(
    tables: &mut T,
    rows: Vec<Result<(JobRow, Change), ControlError>>,
) -> Result<Vec<Result<Saved, ControlError>>, StoreError> {
    let (mut changes, mut known) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        changes.push(row.map(|(row, change)| {
            known.push(row);
            change
        }));
    }
    let mut views = job_views(tables, known).await?.into_iter();
    Ok(changes
        .into_iter()
        .map(|change| {
            let change = change?;
            let view = views.next().ok_or_else(|| StoreError::Permanent("a saved job has no view".to_owned()))?;
            Ok(Saved { view, change })
        })
        .collect())
}
