//! Why a due time of a job ran, did not, or has not yet: the facts that [`explain`] needs, read from the store.
//!
//! The API and the page ask here. The facts are read one after another, so a run that ends meanwhile may be told as it was
//! a moment ago.

use carillon_domain::explain::{Explanation, Facts, LiveRun, Nodes, explain, latest_due};
use carillon_domain::firing::Rejected;
use carillon_domain::run::{Reason, RunRecord};
use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_store::{ControlError, JobKey, JobView, RunQuery, RunStage, RunView, SessionState, Store, StoreError};

use crate::engine::EngineHandle;

/// How many runs and records of one due time are looked at: more than a job may have attempts.
const MOST_RUNS: usize = 200;
/// How many older runs are looked at for the one that was alive.
const MOST_OLDER: usize = 50;

/// The explanation of a due time.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// The sentence, and how the due time stands.
    pub explanation: Explanation,
    /// The run that the sentence speaks of, if there is one in history or in flight.
    pub run: Option<RunView>,
}

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
    let timeline = view.job.timeline(view.state.anchor_at);
    let timeline = timeline.map_err(|error| Refusal::Rejected(Rejected::BadSchedule(error.to_string())))?;
    let at = at.or_else(|| latest_due(&timeline, &view.state, now)).unwrap_or(now);
    let runs = runs_of(store, key, &view, at).await?;
    let records: Vec<RunRecord> = runs.iter().filter_map(record).cloned().collect();
    let live: Vec<LiveRun> = runs.iter().filter_map(live).collect();
    let overlapped = records.iter().find(|record| record.reason == Some(Reason::Overlap));
    let previous = match overlapped {
        Some(record) => run_before(store, key, &view, record).await?,
        None => None,
    };
    let (nodes, loss) = match records.is_empty() {
        true => (nodes(store, engine, &view).await?, store.recorded_losses().await?),
        false => (Nodes { claiming: 1, has_executor: true, full: None }, Vec::new()),
    };
    let facts = Facts {
        job: &view.job,
        timeline: &timeline,
        state: &view.state,
        created_at: view.created_at,
        now,
        node: view.node.as_deref(),
        records: &records,
        live: &live,
        previous: previous.as_ref(),
        nodes,
        loss: loss.iter().find(|loss| loss.accepted_at.is_none()).map(|loss| loss.window),
    };
    let explanation = explain(&facts, at);
    let run = explanation.run.and_then(|run| runs.into_iter().find(|view| view.id == run));
    Ok(Why { explanation, run })
}

/// The runs that stand for a due time: in flight, and in history. Those of an earlier job of that name do not count.
async fn runs_of(store: &dyn Store, key: &JobKey, view: &JobView, at: Timestamp) -> Result<Vec<RunView>, ControlError> {
    let query = RunQuery { job: Some(key.clone()), covering: Some(at), limit: MOST_RUNS, ..RunQuery::default() };
    let mut runs = store.runs(&query).await?.items;
    runs.retain(|run| run.job_id == view.state.id);
    Ok(runs)
}

/// The last run that started before the due times of a record.
async fn run_before(
    store: &dyn Store,
    key: &JobKey,
    view: &JobView,
    record: &RunRecord,
) -> Result<Option<RunRecord>, ControlError> {
    let until = Some(record.first_due_at);
    let query = RunQuery { job: Some(key.clone()), until, limit: MOST_OLDER, ..RunQuery::default() };
    let older = store.runs(&query).await?.items.into_iter().filter(|run| run.job_id == view.state.id);
    Ok(older.filter_map(|run| self::record(&run).cloned()).find(|record| record.started_at.is_some()))
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
async fn nodes(store: &dyn Store, engine: &EngineHandle, view: &JobView) -> Result<Nodes, StoreError> {
    let sessions = store.sessions().await?;
    let claiming = sessions.iter().filter(|session| session.beat.state == SessionState::Live).count();
    let counts = engine.counts();
    let is_full = counts.max_executing > 0 && counts.executing >= counts.max_executing;
    Ok(Nodes {
        claiming,
        has_executor: engine.executors().contains_key(&view.job.executor),
        full: (claiming == 1 && is_full).then_some((counts.executing, counts.max_executing)),
    })
}
