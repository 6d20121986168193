//! The arguments and answers of the reports that the web page shows.
//!
//! Every report is bounded: it has a limit, and it says whether there is more. No report counts the rows of a table.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use crate::{JobView, RecordedLoss, RunStage, RunView, SessionView};

/// The namespaces that a reader may see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NamespaceScope {
    /// All of them.
    #[default]
    All,
    /// Only these.
    Only(BTreeSet<String>),
}

impl NamespaceScope {
    /// Whether a reader may see this one.
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(namespace),
        }
    }
}

/// As many items as were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounded<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there are more, or may be: a report looks at a bounded number of rows.
    pub more: bool,
}

impl Bounded<RunView> {
    /// Runs that execute, of which `limit` are asked for: those with the oldest due times first.
    pub fn of_running(mut items: Vec<RunView>, limit: usize) -> Self {
        items.sort_by_key(|view| match &view.stage {
            RunStage::Running { held, .. } => (held.firing.due_at, view.id),
            RunStage::Waiting { due_at, .. } => (*due_at, view.id),
            RunStage::Recorded { record, .. } => (record.due_at, view.id),
        });
        let more = limit > 0 && items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { items: Vec::new(), more: false }
    }
}

/// How much an [`Overview`] tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverviewQuery {
    /// The namespaces that the reader may see.
    pub scope: NamespaceScope,
    /// How many runs at the most. With 0 nobody looks whether there are any.
    pub running: usize,
    /// From when on activity is told, and losses that were accepted.
    pub since: Timestamp,
}

/// How it stands, beside the lists of jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overview {
    /// Runs that execute, those with the oldest due times first.
    pub running: Bounded<RunView>,
    /// Counts of each five minutes, by outcome, oldest first. Five minutes in which nothing ended are left out. The newest
    /// runs may be missing for half a minute ([`crate::ReportStore::roll_up`]).
    pub activity: Vec<ActivityBucket>,
    /// Sessions, live and ended ones that still hold rows. Nobody counts these rows here: there may be as many as firings within the
    /// horizon, and those that run are looked for among them already.
    pub sessions: Vec<SessionView>,
    /// The loss windows: the open one, and those accepted lately.
    pub losses: Vec<RecordedLoss>,
    /// Whether there is any job.
    pub any_job: bool,
}

/// A list of jobs that a person watches. The newest record of a job is read for those in trouble only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobList {
    /// Jobs whose last run failed, timed out or was lost; the newest trouble first.
    Troubled,
    /// Jobs that may be claimed since this time or longer and that no session holds; the longest wait first.
    Overdue {
        /// The time.
        since: Timestamp,
    },
    /// Jobs that come up until this time: first those that a session holds already, then the others by time. Overdue ones
    /// are among them.
    Coming {
        /// The time.
        until: Timestamp,
    },
}

/// A due time that nobody has started after so long is overdue.
const OVERDUE_AFTER: Duration = Duration::from_secs(30);

impl JobList {
    /// The jobs that people call overdue now.
    pub fn overdue(now: Timestamp) -> Self {
        Self::Overdue { since: now - OVERDUE_AFTER }
    }

    /// Whether the newest records of its jobs are read.
    pub fn tells_records(self) -> bool {
        self == Self::Troubled
    }
}

/// A list of jobs and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobListQuery {
    /// Which list.
    pub list: JobList,
    /// How many jobs at the most.
    pub limit: usize,
}

/// A job in a [`JobList`].
#[derive(Debug, Clone, PartialEq)]
pub struct ListedJob {
    /// The job.
    pub view: JobView,
    /// When the trouble began, or since when the job may be claimed, or when it comes up. `None` for a job that a session
    /// holds: its firing tells.
    pub at: Option<Timestamp>,
}

/// How many runs and due times ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts {
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were ended because their timeout passed.
    pub timed_out: u64,
    /// Runs that a person or a newer firing ended.
    pub cancelled: u64,
    /// Runs whose outcome is unknown.
    pub lost: u64,
    /// Due times that did not run.
    pub skipped: u64,
}

impl OutcomeCounts {
    /// Adds `count` runs or due times with this status. A run that executes has no outcome yet.
    pub const fn add(&mut self, status: Status, count: u64) {
        let counter = match status {
            Status::Succeeded => &mut self.succeeded,
            Status::Failed => &mut self.failed,
            Status::TimedOut => &mut self.timed_out,
            Status::Cancelled => &mut self.cancelled,
            Status::Lost => &mut self.lost,
            Status::Skipped => &mut self.skipped,
            Status::Running => return,
        };
        *counter = counter.saturating_add(count);
    }

    /// Adds the counts of another part.
    pub const fn merge(&mut self, other: &Self) {
        self.add(Status::Succeeded, other.succeeded);
        self.add(Status::Failed, other.failed);
        self.add(Status::TimedOut, other.timed_out);
        self.add(Status::Cancelled, other.cancelled);
        self.add(Status::Lost, other.lost);
        self.add(Status::Skipped, other.skipped);
    }
}

/// Counts of five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActivityBucket {
    /// When the five minutes begin.
    pub begins_at: Timestamp,
    /// Runs and due times by outcome.
    pub outcomes: OutcomeCounts,
    /// How many of the runs had started.
    pub started: u64,
    /// The sum of their lags, in milliseconds.
    pub lag_total_ms: u64,
    /// The longest of their lags, in milliseconds.
    pub lag_max_ms: u64,
}

/// Counts of a job's due times of one day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobDay {
    /// When the day begins.
    pub begins_at: Timestamp,
    /// Runs and due times by outcome.
    pub outcomes: OutcomeCounts,
}

/// A step of [`crate::ReportStore::roll_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolledUp {
    /// How many numbers of records it went over; some of them no record has.
    pub passed: u64,
    /// Whether there are more that can be counted now.
    pub more: bool,
}
