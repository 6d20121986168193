//! Runs as people see them: those that run or wait and those that are history, as one list.
//!
//! The list is ordered by (due time, attempt, id), newest first. None of these changes while a run moves from waiting to
//! history, so a run neither jumps nor appears twice between two pages.

use std::collections::BTreeMap;

use carillon_domain::firing::{Firing, FiringKey, Held, Phase, Waiting};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::Trigger;
use carillon_domain::store::Refusal;

use super::jobs::node_names;
use crate::definition::Definition;
use crate::tables::{ConcurrentJob, GivenParams, JobRow, RecordQuery, Recorded, Tables};
use crate::{ControlError, JobKey, Page, RunCursor, RunQuery, RunStage, RunView, SessionView, StoreError};

/// One run, with the params that were given for it.
pub(crate) async fn run<T: Tables>(tables: &mut T, run: RunId) -> Result<RunView, ControlError> {
    let (view, params) = tables.seen_run(run).await?.ok_or(Refusal::NoRun(run))?;
    let (trigger, due_at) = match &view.stage {
        RunStage::Waiting { due_at, trigger, .. } => (*trigger, *due_at),
        RunStage::Running { held, .. } => (held.firing.trigger, held.firing.due_at),
        RunStage::Recorded { record, .. } => (record.trigger, record.due_at),
    };
    let firing = FiringKey { job: view.job_id, due_at, trigger };
    let params = match params {
        GivenParams::Read(params) => params,
        GivenParams::NotRead if trigger == Trigger::Manual => tables.run_params(&[firing]).await?.pop().flatten(),
        GivenParams::NotRead => None,
    };
    Ok(RunView { params, ..view })
}

/// A run wherever it is, for databases that answer at once.
pub async fn seen_run<T: Tables>(tables: &mut T, run: RunId) -> Result<Option<(RunView, GivenParams)>, StoreError> {
    let nodes = node_names(tables).await?;
    let mut views = Vec::new();
    if let Some(row) = tables.job_by_run(run).await? {
        of_job(&row, &nodes, &mut views);
    }
    if let Some(concurrent) = tables.concurrent_by_run(run).await? {
        of_concurrent(&concurrent, &nodes, &mut views);
    }
    let view = match views.into_iter().find(|view| view.id == run) {
        Some(view) => Some(view),
        None => tables.record(run).await?.map(of_record),
    };
    Ok(view.map(|view| (view, GivenParams::NotRead)))
}

pub(crate) async fn runs<T: Tables>(
    tables: &mut T,
    query: &RunQuery,
) -> Result<Page<RunView, RunCursor>, ControlError> {
    let limit = query.limit.max(1);
    let jobs = match (query.job_id, &query.job) {
        (Some(id), _) => Some(vec![id]),
        (None, None) => None,
        (None, Some(key)) => {
            let ids = tables.ids_of_name(key).await?;
            if ids.is_empty() {
                return Err(super::jobs::no_job(key));
            }
            Some(ids)
        }
    };
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
    let mut items = tables.seen_runs(&records).await?;
    items.retain(|view| fits(view, &records));
    items.sort_unstable_by_key(|view| std::cmp::Reverse(cursor(view)));
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(cursor);
    Ok(Page { items, next })
}

/// The living runs of the jobs of a query, and the history that it asks for, for databases that answer at once.
pub async fn seen_runs<T: Tables>(tables: &mut T, query: &RecordQuery) -> Result<Vec<RunView>, StoreError> {
    let (jobs, mut views) = (query.jobs.as_deref(), Vec::new());
    if query.shows_living() {
        let nodes = node_names(tables).await?;
        tables.live_jobs(jobs).await?.iter().for_each(|row| of_job(row, &nodes, &mut views));
        views.retain(|view| !is_only_claimed(&view.stage));
        tables.live_concurrent(jobs).await?.iter().for_each(|concurrent| of_concurrent(concurrent, &nodes, &mut views));
    }
    if query.shows_history() {
        views.extend(tables.records(query).await?.into_iter().map(of_record));
    }
    Ok(views)
}

/// A firing that the job's own row has claimed ahead of its time is no run before it starts. A manual one is, as a person holds its id.
pub(crate) fn is_only_claimed(stage: &RunStage) -> bool {
    matches!(stage, RunStage::Waiting { trigger, .. } if *trigger != Trigger::Manual)
}

/// Whether a living run is asked for; history was chosen by the database.
fn fits(view: &RunView, query: &RecordQuery) -> bool {
    let at = cursor(view);
    matches!(view.stage, RunStage::Recorded { .. })
        || query.namespace.as_ref().is_none_or(|namespace| *namespace == view.key.namespace)
            && (query.status.is_none() || matches!(view.stage, RunStage::Running { .. }))
            && query.since.is_none_or(|since| at.due_at >= since)
            && query.until.is_none_or(|until| at.due_at < until)
            && query.covering.is_none_or(|due| at.due_at == due)
            && query.after.is_none_or(|after| at < after)
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
    let node = phase.held().and_then(|held| nodes.get(&held.session).cloned());
    held_run((job, definition.key()), phase, cancelling, node)
}

/// The run that a row holds.
pub(crate) fn held_run(
    (job_id, key): (JobId, JobKey),
    phase: &Phase,
    cancelling: bool,
    node: Option<String>,
) -> Option<RunView> {
    let held = phase.held()?;
    let stage = match phase {
        Phase::Executing(held) => RunStage::Running { held: *held, cancelling },
        Phase::Prepared(_) | Phase::Idle => waiting_stage(&held.firing, Some(held)),
    };
    Some(RunView { id: held.run, job_id, key, node, stage, params: None })
}

fn of_waiting(job: JobId, definition: &Definition, waiting: Waiting) -> Option<RunView> {
    Some(waiting_run((job, definition.key()), waiting.run?, &waiting.firing))
}

/// A run that waits under its id.
pub(crate) fn waiting_run((job_id, key): (JobId, JobKey), id: RunId, firing: &Firing) -> RunView {
    RunView { id, job_id, key, node: None, stage: waiting_stage(firing, None), params: None }
}

fn waiting_stage(firing: &Firing, held: Option<&Held>) -> RunStage {
    RunStage::Waiting {
        due_at: firing.due_at,
        trigger: firing.trigger,
        attempt: firing.attempt,
        session: held.map(|held| held.session),
    }
}
