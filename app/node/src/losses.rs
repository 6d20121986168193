//! An open loss of commits: the nodes that have to write their runs back, and the jobs of whose firings nobody knows a run.

use std::time::Duration;

use carillon_domain::store::{StillUnknown, still_unknown};
use carillon_store::{
    Bounded, JobList, JobListQuery, ListedJob, NamespaceScope, RecordedLoss, SessionView, StoreError,
};
use serde_json::{Value, json};

use crate::http::state::ApiState;

/// How many jobs are listed.
const LISTED: usize = 100;

/// An open loss, as far as the database knows.
pub(crate) struct OpenLoss {
    /// Why it cannot be accepted yet.
    pub still: Option<StillUnknown>,
    /// Jobs that were due in the window and of which no run is known.
    pub jobs: Bounded<ListedJob>,
}

/// When a node without a heartbeat is dead. On SQLite no other process is there: nothing is waited for.
pub(crate) fn patience(api: &ApiState) -> Duration {
    let shared = api.timing.as_ref().filter(|_| api.store.server().is_some());
    shared.map_or(Duration::ZERO, |report| report.chosen.timing.expire_after)
}

/// The open loss, with the jobs that a reader may see; `None` where none is open.
pub(crate) async fn open_loss(
    api: &ApiState,
    scope: &NamespaceScope,
    losses: &[RecordedLoss],
    sessions: &[SessionView],
) -> Result<Option<OpenLoss>, StoreError> {
    let Some(loss) = losses.iter().find(|loss| loss.is_open()) else { return Ok(None) };
    let now = api.store.now().await?;
    let sessions: Vec<_> = sessions.iter().map(SessionView::writing).collect();
    let still = still_unknown(&loss.window, &sessions, patience(api), now);
    let list = JobList::Overdue { since: loss.window.until_at };
    let jobs = api.store.job_lists(scope, &[JobListQuery { list, limit: LISTED }]).await?.pop().unwrap_or_default();
    Ok(Some(OpenLoss { still, jobs }))
}

impl OpenLoss {
    /// As the API shows it.
    pub fn json(&self) -> Value {
        let jobs: Vec<_> = self.jobs.items.iter().map(job_json).collect();
        json!({
            "nodes": self.still.as_ref().map(|still| still.nodes.clone()).unwrap_or_default(),
            "until": self.still.as_ref().map(|still| still.until.to_string()),
            "why": self.still.as_ref().map(ToString::to_string),
            "jobs": jobs,
            "more_jobs": self.jobs.more,
        })
    }
}

fn job_json(listed: &ListedJob) -> Value {
    let job = &listed.view.job;
    json!({
        "namespace": job.namespace,
        "name": job.name,
        "due_at": listed.at.map(|at| at.to_string()),
        "on_lost": job.on_lost.as_str(),
    })
}
