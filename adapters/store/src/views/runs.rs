//! Runs as people see them: those that run or wait and those that are history, as one list.
//!
//! The list is ordered by (due time, attempt, id), newest first. None of these changes while a run moves from waiting to
//! history, so a run neither jumps nor appears twice between two pages.

use std::collections::BTreeMap;

use carillon_domain::firing::{Firing, FiringKey, Held, Phase, Waiting};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::{Status, Trigger};
use carillon_domain::store::Refusal;

use super::jobs::node_names;
use crate::definition::Definition;
use crate::tables::{ConcurrentJob, JobRow, RecordQuery, Recorded, Tables};
use crate::{ControlError, Output, Page, RunCursor, RunQuery, RunStage, RunView, SessionView, StoreError};

/// One run, with the params that were given for it.
pub(crate) async fn run<T: Tables>(tables: &mut T, run: RunId) -> Result<RunView, ControlError> {
    let view = find(tables, run).await?;
    let (trigger, due_at) = match &view.stage {
        RunStage::Waiting { due_at, trigger, .. } => (*trigger, *due_at),
        RunStage::Running { held, .. } => (held.firing.trigger, held.firing.due_at),
        RunStage::Recorded { record, .. } => (record.trigger, record.due_at),
    };
    if trigger != Trigger::Manual {
        return Ok(view);
    }
    let firing = FiringKey { job: view.job_id, due_at, trigger };
    let params = tables.run_params(&[firing]).await?.pop().flatten();
    Ok(RunView { params, ..view })
}

async fn find<T: Tables>(tables: &mut T, run: RunId) -> Result<RunView, ControlError> {
    let nodes = node_names(tables).await?;
    let mut views = Vec::new();
    if let Some(row) = tables.job_by_run(run).await? {
        of_job(&row, &nodes, &mut views);
    }
    if let Some(concurrent) = tables.concurrent_by_run(run).await? {
        of_concurrent(&concurrent, &nodes, &mut views);
    }
    if let Some(view) = views.into_iter().find(|view| view.id == run) {
        return Ok(view);
    }
    tables.record(run).await?.map(of_record).ok_or_else(|| Refusal::NoRun(run).into())
}

pub(crate) async fn runs<T: Tables>(
    tables: &mut T,
    query: &RunQuery,
) -> Result<Page<RunView, RunCursor>, ControlError> {
    let limit = query.limit.max(1);
    let jobs = match &query.job {
        None => None,
        Some(key) => {
            let ids = tables.ids_of_name(key).await?;
            if ids.is_empty() {
                return Err(super::jobs::no_job(key));
            }
            Some(ids)
        }
    };
    let mut items = live(tables, query, jobs.as_deref()).await?;
    if query.status != Some(Status::Running) {
        let records = RecordQuery {
            jobs,
            namespace: query.namespace.clone(),
            status: query.status,
            since: query.since,
            until: query.until,
            covering: query.covering,
            after: query.after,
            limit: limit + 1,
        };
        items.extend(tables.records(&records).await?.into_iter().map(of_record));
    }
    items.sort_unstable_by_key(|view| std::cmp::Reverse(cursor(view)));
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(cursor);
    Ok(Page { items, next })
}

async fn live<T: Tables>(tables: &mut T, query: &RunQuery, jobs: Option<&[JobId]>) -> Result<Vec<RunView>, StoreError> {
    if !matches!(query.status, None | Some(Status::Running)) {
        return Ok(Vec::new());
    }
    let mut views = Vec::new();
    let nodes = node_names(tables).await?;
    tables.live_jobs(jobs).await?.iter().for_each(|row| of_job(row, &nodes, &mut views));
    // A firing that the job's own row has claimed ahead of its time is no run before it starts. A manual one is, as a person holds its
    // id.
    views.retain(|view| !matches!(view.stage, RunStage::Waiting { trigger, .. } if trigger != Trigger::Manual));
    tables.live_concurrent(jobs).await?.iter().for_each(|concurrent| of_concurrent(concurrent, &nodes, &mut views));
    views.retain(|view| {
        let at = cursor(view);
        query.namespace.as_ref().is_none_or(|namespace| *namespace == view.key.namespace)
            && (query.status.is_none() || matches!(view.stage, RunStage::Running { .. }))
            && query.since.is_none_or(|since| at.due_at >= since)
            && query.until.is_none_or(|until| at.due_at < until)
            && query.covering.is_none_or(|due| at.due_at == due)
            && query.after.is_none_or(|after| at < after)
    });
    Ok(views)
}

/// Every run that executes; `sessions` tell the names of the nodes.
pub(crate) async fn executing<T: Tables>(tables: &mut T, sessions: &[SessionView]) -> Result<Vec<RunView>, StoreError> {
    let nodes = sessions.iter().map(|session| (session.beat.id, session.node.clone())).collect();
    let mut views = Vec::new();
    tables.executing_jobs().await?.iter().for_each(|row| of_job(row, &nodes, &mut views));
    tables.live_concurrent(None).await?.iter().for_each(|concurrent| of_concurrent(concurrent, &nodes, &mut views));
    views.retain(|view| matches!(view.stage, RunStage::Running { .. }));
    Ok(views)
}

pub(crate) async fn output<T: Tables>(tables: &mut T, run: RunId) -> Result<Output, ControlError> {
    match tables.output(run).await? {
        Some(output) => Ok(output),
        // Running ones are followed at their node; those that printed nothing have none.
        None => self::run(tables, run).await.map(|_| Output::default()),
    }
}

fn cursor(view: &RunView) -> RunCursor {
    let (due_at, attempt) = match &view.stage {
        RunStage::Waiting { due_at, attempt, .. } => (*due_at, *attempt),
        RunStage::Running { held, .. } => (held.firing.due_at, held.firing.attempt),
        RunStage::Recorded { record, .. } => (record.due_at, record.attempt),
    };
    RunCursor { due_at, attempt, run: view.id }
}

pub(crate) fn of_record(recorded: Recorded) -> RunView {
    let Recorded { record, key, node, output_truncated } = recorded;
    let stage = RunStage::Recorded { record: Box::new(record.clone()), output_truncated };
    RunView { id: record.id, job_id: record.job, key, node, stage, params: None }
}

fn of_job(row: &JobRow, nodes: &BTreeMap<SessionId, String>, views: &mut Vec<RunView>) {
    let JobRow { state, definition } = row;
    views.extend(of_phase(state.id, definition, &state.phase, state.cancel.is_some(), nodes));
    views.extend(state.manual.and_then(|manual| of_waiting(state.id, definition, manual)));
}

fn of_concurrent(concurrent: &ConcurrentJob, nodes: &BTreeMap<SessionId, String>, views: &mut Vec<RunView>) {
    let ConcurrentJob { row, definition } = concurrent;
    views.extend(of_phase(row.key.job, definition, &row.phase, row.cancel.is_some(), nodes));
    views.extend(row.waiting.and_then(|waiting| of_waiting(row.key.job, definition, waiting)));
}

fn of_phase(
    job: JobId,
    definition: &Definition,
    phase: &Phase,
    cancelling: bool,
    nodes: &BTreeMap<SessionId, String>,
) -> Option<RunView> {
    let held = phase.held()?;
    let stage = match phase {
        Phase::Executing(held) => RunStage::Running { held: *held, cancelling },
        Phase::Prepared(_) | Phase::Idle => waiting_stage(&held.firing, Some(held)),
    };
    let node = nodes.get(&held.session).cloned();
    Some(RunView { id: held.run, job_id: job, key: definition.key(), node, stage, params: None })
}

fn of_waiting(job: JobId, definition: &Definition, waiting: Waiting) -> Option<RunView> {
    let stage = waiting_stage(&waiting.firing, None);
    Some(RunView { id: waiting.run?, job_id: job, key: definition.key(), node: None, stage, params: None })
}

fn waiting_stage(firing: &Firing, held: Option<&Held>) -> RunStage {
    RunStage::Waiting {
        due_at: firing.due_at,
        trigger: firing.trigger,
        attempt: firing.attempt,
        session: held.map(|held| held.session),
    }
}
