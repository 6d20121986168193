//! A job as a store keeps it: its definition, its row, and its concurrent runs.

use std::sync::Arc;

use crate::firing::{ConcurrentRun, JobState};
use crate::job::Job;
use crate::schedule::Timeline;
use crate::store::Author;
use crate::time::Timestamp;

/// The name of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name, unique there.
    pub name: String,
}

impl JobKey {
    /// The name of a definition's job.
    pub fn of(job: &Job) -> Self {
        Self { namespace: job.namespace.clone(), name: job.name.clone() }
    }
}

/// A stored definition with everything that follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The definition.
    pub job: Arc<Job>,
    /// Its due times, counted from `anchor_at`.
    pub timeline: Timeline,
    /// Its generation: 1 for a new job.
    pub generation: u64,
    /// The instant from which `@every` counts.
    pub anchor_at: Timestamp,
    /// When the job was created.
    pub created_at: Timestamp,
    /// When the definition changed last.
    pub updated_at: Timestamp,
}

impl Definition {
    /// The name under which people know the job.
    pub fn key(&self) -> JobKey {
        JobKey::of(&self.job)
    }
}

/// A job's row with its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// The row.
    pub state: Arc<JobState>,
    /// The definition at the row's generation.
    pub definition: Arc<Definition>,
}

/// A concurrent run with its job's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ConcurrentJob {
    /// The row of table `concurrent_run`.
    pub row: ConcurrentRun,
    /// The job's definition.
    pub definition: Arc<Definition>,
}

/// The condition of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutIf {
    /// Create or replace.
    Any,
    /// Only create.
    Absent,
    /// Only replace that generation.
    Generation(u64),
}

/// A job to store.
#[derive(Debug, Clone, PartialEq)]
pub struct PutJob {
    /// The definition.
    pub job: Job,
    /// `Some` pauses or resumes it in the same commit; `None` leaves that as it is.
    pub paused: Option<bool>,
    /// The condition.
    pub when: PutIf,
    /// Who asks for it.
    pub author: Author,
}

/// The effect of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A new job.
    Created,
    /// A new definition, or a pause or a resume.
    Updated,
    /// It was the same already.
    Unchanged,
}

impl Change {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Unchanged => "unchanged",
        }
    }
}
