//! Why a due time of a job ran, did not, or has not yet: the facts that [`explain`] needs, read from the store.
//!
//! The API and the page ask here. The facts are read one after another, so a run that ends meanwhile may be told as it was
//! a moment ago.

use std::sync::Arc;

use carillon_domain::explain::{Explanation, Facts, LiveRun, Nodes, explain, latest_due};
use carillon_domain::run::{Reason, RunRecord};
use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_json::Why;
use carillon_store::{
    ControlError, JobKey, JobView, RecordedLoss, RunQuery, RunStage, RunView, SessionState, SessionView, Store,
    StoreError,
};

use crate::engine::EngineHandle;

/// How many runs and records of one due time are looked at: more than a job may have attempts.
const MOST_RUNS: usize = 200;
/// How many older runs are looked at for the one that was alive.
const MOST_OLDER: usize = 50;

/// Explains the due time `at` of a job. Without `at`, it explains the latest due time that has passed, or the first one.
///
/// # Errors
/// There is no such job, or the database failed.
pub async fn why(
    store: &dyn Store,
    engine: &EngineHandle,
    key: &JobKey,
    at: Option<Timestamp>,
) -> Result<Why, ControlError> {
    let view = store.job(key).await?;
    let now = store.now().await?;
    let at = at.or_else(|| latest_due(&view.timeline, &view.state, now)).unwrap_or(now);
    let runs = runs_of(store, &view, at).await?;
    let overlapped = runs.iter().filter_map(record).find(|record| record.reason == Some(Reason::Overlap));
    let previous = match overlapped {
        Some(record) => run_before(store, &view, record).await?,
        None => None,
    };
    let surroundings = match has_record(&runs) {
        true => None,
        false => Some(Surroundings::read(store).await?),
    };
    let explanation = told(engine, &view, (now, at), (&runs, previous), surroundings.as_ref());
    let run = explanation.run.and_then(|run| runs.into_iter().find(|view| view.id == run));
    Ok(Why { explanation, run })
}

/// Explains the due time `at` of a run that somebody looks at: its job's runs up to then are read at once. Those of the due time are
/// answered, too. `surroundings` are asked for only where nothing is recorded.
///
/// # Errors
/// The job is deleted, or the database failed.
pub async fn why_run<E: From<ControlError>>(
    store: &dyn Store,
    engine: &EngineHandle,
    run: &RunView,
    at: Timestamp,
    surroundings: impl AsyncFnOnce() -> Result<Arc<Surroundings>, E>,
) -> Result<(Explanation, Vec<RunView>), E> {
    let view = store.job(&run.key).await?;
    if view.state.id != run.job_id {
        return Err(ControlError::from(Refusal::NoJob(run.key.clone())).into());
    }
    let until = Some(at + Timestamp::TICK);
    let query = RunQuery { job_id: Some(run.job_id), until, limit: MOST_RUNS, ..RunQuery::default() };
    let found = store.runs(&query).await?;
    let (runs, older): (Vec<RunView>, Vec<RunView>) = found.items.into_iter().partition(|run| due_at(run) == at);
    let overlapped = runs.iter().filter_map(record).find(|record| record.reason == Some(Reason::Overlap));
    let previous = overlapped.and_then(|record| last_started(&older, record.first_due_at));
    let surroundings = match has_record(&runs) {
        true => None,
        false => Some(surroundings().await?),
    };
    let now = store.now().await.map_err(ControlError::from)?;
    Ok((told(engine, &view, (now, at), (&runs, previous), surroundings.as_deref()), runs))
}

/// The nodes and the losses of commits. They tell why nothing has started yet.
#[derive(Debug)]
pub struct Surroundings {
    sessions: Vec<SessionView>,
    losses: Vec<RecordedLoss>,
}

impl Surroundings {
    /// Reads them.
    ///
    /// # Errors
    /// The database failed.
    pub async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        Ok(Self { sessions: store.sessions().await?, losses: store.recorded_losses().await? })
    }
}

fn told(
    engine: &EngineHandle,
    view: &JobView,
    (now, at): (Timestamp, Timestamp),
    (runs, previous): (&[RunView], Option<RunRecord>),
    surroundings: Option<&Surroundings>,
) -> Explanation {
    let records: Vec<RunRecord> = runs.iter().filter_map(record).cloned().collect();
    let live: Vec<LiveRun> = runs.iter().filter_map(live).collect();
    let (nodes, losses) = match surroundings {
        Some(Surroundings { sessions, losses }) => (nodes(sessions, engine, view), losses.as_slice()),
        None => (Nodes { claiming: 1, has_executor: true, full: None }, &[][..]),
    };
    let facts = Facts {
        job: &view.job,
        timeline: &view.timeline,
        state: &view.state,
        created_at: view.created_at,
        now,
        node: view.node.as_deref(),
        records: &records,
        live: &live,
        previous: previous.as_ref(),
        nodes,
        loss: losses.iter().find(|loss| loss.is_open()).map(|loss| loss.window),
    };
    explain(&facts, at)
}

fn has_record(runs: &[RunView]) -> bool {
    runs.iter().any(|run| record(run).is_some())
}

/// The runs that stand for a due time: in flight, and in history. Those of an earlier job of that name do not count.
async fn runs_of(store: &dyn Store, view: &JobView, at: Timestamp) -> Result<Vec<RunView>, ControlError> {
    let (job_id, covering) = (Some(view.state.id), Some(at));
    let query = RunQuery { job_id, covering, limit: MOST_RUNS, ..RunQuery::default() };
    Ok(store.runs(&query).await?.items)
}

/// The last run that started before the due times of a record.
async fn run_before(store: &dyn Store, view: &JobView, record: &RunRecord) -> Result<Option<RunRecord>, ControlError> {
    let (job_id, until) = (Some(view.state.id), Some(record.first_due_at));
    let query = RunQuery { job_id, until, limit: MOST_OLDER, ..RunQuery::default() };
    Ok(last_started(&store.runs(&query).await?.items, record.first_due_at))
}

/// The newest of these runs, newest first, that was due before then and has started.
fn last_started(runs: &[RunView], before: Timestamp) -> Option<RunRecord> {
    let started = |record: &&RunRecord| record.due_at < before && record.started_at.is_some();
    runs.iter().filter_map(record).find(started).cloned()
}

fn due_at(view: &RunView) -> Timestamp {
    match &view.stage {
        RunStage::Waiting { due_at, .. } => *due_at,
        RunStage::Running { held, .. } => held.firing.due_at,
        RunStage::Recorded { record, .. } => record.due_at,
    }
}

fn record(view: &RunView) -> Option<&RunRecord> {
    match &view.stage {
        RunStage::Recorded { record, .. } => Some(record),
        RunStage::Waiting { .. } | RunStage::Running { .. } => None,
    }
}

fn live(view: &RunView) -> Option<LiveRun> {
    let (run, node) = (view.id, view.node.clone());
    match &view.stage {
        RunStage::Recorded { .. } => None,
        RunStage::Waiting { trigger, attempt, .. } => {
            Some(LiveRun { run, trigger: *trigger, attempt: *attempt, started_at: None, node, cancelling: false })
        }
        RunStage::Running { held, cancelling } => Some(LiveRun {
            run,
            trigger: held.firing.trigger,
            attempt: held.firing.attempt,
            started_at: held.started_at,
            node,
            cancelling: *cancelling,
        }),
    }
}

/// Only a node that is alone can tell that no place is left: the others may have one.
fn nodes(sessions: &[SessionView], engine: &EngineHandle, view: &JobView) -> Nodes {
    let claiming = sessions.iter().filter(|session| session.beat.state == SessionState::Live).count();
    let counts = engine.counts();
    let is_full = counts.max_executing > 0 && counts.executing >= counts.max_executing;
    Nodes {
        claiming,
        has_executor: engine.executors().contains_key(&view.job.executor),
        full: (claiming == 1 && is_full).then_some((counts.executing, counts.max_executing)),
    }
}
