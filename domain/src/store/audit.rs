//! The audit log: every write that a person or a token asked for, in the commit of its change.
//!
//! A decision adds its entry to the write set. So an entry is stored exactly when its change is, and a refused call leaves none.
//! A call that changes nothing leaves none either.

use std::sync::Arc;

use super::{JobKey, JobRow, RecordedLoss};
use crate::alert::Route;
use crate::firing::Pause;
use crate::id::{JobId, RunId};
use crate::job::Job;
use crate::time::Timestamp;

/// Who asks for a change, and from where. Clones share the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The name of the token.
    pub name: Arc<str>,
    /// The address of the peer, and the name of its client where it tells one.
    pub origin: Arc<str>,
}

impl Author {
    /// Somebody by name and origin.
    pub fn new(name: &str, origin: &str) -> Self {
        Self { name: name.into(), origin: origin.into() }
    }
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A new job.
    JobCreated,
    /// A new definition of a job, or a pause or a resume by a put.
    JobUpdated,
    /// A job was deleted.
    JobDeleted,
    /// A job was paused.
    JobPaused,
    /// A job was resumed.
    JobResumed,
    /// A run was asked for.
    JobRun,
    /// A run was asked to end, or not to start.
    RunCancelled,
    /// An open loss window was accepted.
    LossesAccepted,
    /// A route was created or changed.
    AlertPut,
    /// A route was deleted.
    AlertDeleted,
    /// A route was tried.
    AlertTested,
    /// A message was sent again.
    DeliveryResent,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 12] = [
        Self::JobCreated,
        Self::JobUpdated,
        Self::JobDeleted,
        Self::JobPaused,
        Self::JobResumed,
        Self::JobRun,
        Self::RunCancelled,
        Self::LossesAccepted,
        Self::AlertPut,
        Self::AlertDeleted,
        Self::AlertTested,
        Self::DeliveryResent,
    ];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobCreated => "job.created",
            Self::JobUpdated => "job.updated",
            Self::JobDeleted => "job.deleted",
            Self::JobPaused => "job.paused",
            Self::JobResumed => "job.resumed",
            Self::JobRun => "job.run",
            Self::RunCancelled => "run.cancelled",
            Self::LossesAccepted => "losses.accepted",
            Self::AlertPut => "alert.put",
            Self::AlertDeleted => "alert.deleted",
            Self::AlertTested => "alert.tested",
            Self::DeliveryResent => "delivery.resent",
        }
    }
}

/// The state of what was changed, before or after. An adapter writes it without the values of secrets.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditDocument {
    /// A job.
    Job {
        /// Its definition.
        definition: Arc<Job>,
        /// Its pause, if there is one.
        pause: Option<Pause>,
    },
    /// The params that one manual run got in place of its job's.
    RunParams(Arc<str>),
    /// Loss windows.
    LossWindows(Vec<RecordedLoss>),
    /// A route.
    Route(Box<Route>),
    /// Deliveries that somebody made or sent again.
    Deliveries(Vec<AuditedDelivery>),
}

/// A delivery as the audit log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedDelivery {
    /// Its number.
    pub id: u64,
    /// Its route; `None` for a call of a monitor.
    pub route: Option<String>,
    /// The kind of its target.
    pub kind: String,
    /// The name of its state.
    pub state: String,
}

impl AuditDocument {
    /// A job as its row tells it.
    pub fn of_job(row: &JobRow) -> Self {
        Self::Job { definition: row.definition.job.clone(), pause: row.state.pause.clone() }
    }
}

/// One change, as the audit log keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The database's time in the transaction of the change.
    pub at: Timestamp,
    /// Who asked for it.
    pub author: Author,
    /// The kind of change.
    pub action: Action,
    /// The job that was changed, or whose run was; `None` for a change of the cluster.
    pub job: Option<(JobKey, JobId)>,
    /// The generation at which a change leaves its job, or at which the job was deleted; `None` where no job is changed.
    pub generation: Option<u64>,
    /// The run that was asked for or cancelled.
    pub run: Option<RunId>,
    /// The state before; `None` where there was none, or where the change is not one of a state.
    pub before: Option<AuditDocument>,
    /// The state after; `None` where there is none any more, or where the change is not one of a state.
    pub after: Option<AuditDocument>,
}
