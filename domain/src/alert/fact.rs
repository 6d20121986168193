//! Facts: the truths about jobs and the cluster that routes may be told of.

use std::collections::BTreeMap;
use std::fmt;

use crate::firing::{ConcurrentRun, Firing, FiringKey, JobState};
use crate::id::JobId;
use crate::lost_commits::LossWindow;
use crate::run::{RunRecord, Status, Trigger};
use crate::time::Timestamp;

use super::expect::Verdict;
use super::notice::CronMail;
use super::ping::Ping;
use super::when::When;

/// Something that became true. Journals hold facts in the order of their commits.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// When it became true.
    pub at: Timestamp,
    /// The job or the part of the cluster.
    pub subject: Subject,
    /// The fact itself.
    pub what: What,
}

/// The job or the part of the cluster that a fact is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A job.
    Job(JobSubject),
    /// A part of the cluster.
    Cluster(Part),
}

/// A part of the cluster: a node, a thing of a node, or the database if neither is given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Part {
    /// The name of the node.
    pub node: Option<String>,
    /// A directory or file of it, where each can be in trouble by itself.
    pub thing: Option<String>,
}

/// A job, as far as notices need it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSubject {
    /// Its id, which a deleted name does not share with its successor.
    pub id: JobId,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The IANA name of its zone; sentences tell times in it.
    pub zone: String,
    /// The name of its executor.
    pub executor: String,
    /// Its monitor.
    pub ping: Option<Ping>,
    /// Set for a job whose output goes out as cron's mail.
    pub cron: Option<CronMail>,
}

/// A subject as a key of incidents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubjectKey {
    /// A job.
    Job(JobId),
    /// A part of the cluster.
    Cluster(Part),
}

/// The content of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A run ended, or due times did not run. A fact of a job.
    Ended(Ended),
    /// Due times were judged against the job's expectations. A fact of a job.
    Judged(Verdict),
    /// A held-back failure is final after all: its next attempt was dropped. A fact of a job.
    RetryDropped(FiringKey),
    /// The subject tells the job as it is now, after a change or at a look. What its routes ask for no more is closed without a word.
    Seen {
        /// Whether the job expects its runs to start in time.
        starts: bool,
        /// Whether it expects them to end in time.
        ends: bool,
    },
    /// The job was deleted, so its incidents are forgotten without a word.
    Gone,
    /// A trouble of the cluster began, or is known to go on.
    Trouble(Trouble),
    /// That trouble of the cluster is over.
    Over(When),
}

/// The end of a run, or of due times that did not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The row of history.
    pub record: RunRecord,
    /// Whether the run wrote any output.
    pub has_output: bool,
    /// When the next attempt of the firing starts, if one waits or has come; see [`retry_of`].
    pub retry_at: Option<Timestamp>,
}

/// A trouble of the cluster. The subject names the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// A session ended because its heartbeat stood still.
    NodeLost {
        /// Its last heartbeat that the database knows.
        last_heard_at: Timestamp,
        /// How many runs it held.
        runs: u64,
    },
    /// The database went back in time.
    CommitsLost(LossWindow),
    /// The node's clock differs from the database's.
    ClockDrift {
        /// The node's clock minus the database's, in milliseconds.
        drift_ms: i64,
    },
    /// The node had no database. It can be told only once it has one again.
    DatabaseAway {
        /// The last answer before.
        from: Timestamp,
        /// The first answer after.
        until: Timestamp,
    },
    /// A disk of the node is nearly full.
    DiskFull {
        /// The directory on it.
        path: String,
        /// Free bytes.
        free: u64,
    },
    /// The node does not load a plugin.
    PluginRefused {
        /// The file.
        file: String,
        /// The reason, as a sentence or a part of one.
        why: String,
    },
    /// A certificate ends soon.
    CertificateExpires {
        /// The file.
        file: String,
        /// When it ends.
        ends_at: Timestamp,
    },
}

impl Subject {
    /// The key of its incidents.
    pub fn key(&self) -> SubjectKey {
        match self {
            Subject::Job(job) => SubjectKey::Job(job.id),
            Subject::Cluster(part) => SubjectKey::Cluster(part.clone()),
        }
    }

    /// The zone in which sentences tell times.
    pub fn zone(&self) -> &str {
        match self {
            Subject::Job(job) => &job.zone,
            Subject::Cluster(_) => "UTC",
        }
    }
}

impl Part {
    /// A node.
    pub fn node(name: &str) -> Self {
        Self { node: Some(name.to_owned()), thing: None }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.thing, &self.node) {
            (None, None) => f.write_str("the database"),
            (None, Some(node)) => write!(f, "node {node}"),
            (Some(thing), None) => f.write_str(thing),
            (Some(thing), Some(node)) => write!(f, "{thing} of node {node}"),
        }
    }
}

impl fmt::Display for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubjectKey::Job(job) => write!(f, "job {job}"),
            SubjectKey::Cluster(part) => part.fmt(f),
        }
    }
}

impl Trouble {
    /// The kind under which routes ask for it.
    pub const fn when(&self) -> When {
        match self {
            Trouble::NodeLost { .. } => When::NodeLost,
            Trouble::CommitsLost(_) => When::CommitsLost,
            Trouble::ClockDrift { .. } => When::ClockDrift,
            Trouble::DatabaseAway { .. } => When::DatabaseAway,
            Trouble::DiskFull { .. } => When::DiskFull,
            Trouble::PluginRefused { .. } => When::PluginRefused,
            Trouble::CertificateExpires { .. } => When::CertificateExpires,
        }
    }
}

impl Ended {
    /// The kind under which routes ask for it; `None` for a success, and for a run that somebody or a newer firing ended.
    pub const fn when(&self) -> Option<When> {
        match self.record.status {
            Status::Failed => Some(When::Failed),
            Status::TimedOut => Some(When::TimedOut),
            Status::Lost => Some(When::Lost),
            Status::Skipped => Some(When::Skipped),
            Status::Succeeded | Status::Cancelled | Status::Running => None,
        }
    }

    /// Whether it is held back, because the next attempt of its firing is still to come. A lost run counts at once.
    pub const fn is_held_back(&self) -> bool {
        matches!(self.record.status, Status::Failed | Status::TimedOut) && self.retry_at.is_some()
    }

    /// The firing whose attempt it was.
    pub const fn firing(&self) -> FiringKey {
        FiringKey { job: self.record.job, due_at: self.record.due_at, trigger: self.record.trigger }
    }

    /// Whether it is an attempt that never came. Then the failure before it is the last word of the firing.
    pub const fn never_came(&self) -> bool {
        !self.ran() && matches!(self.record.status, Status::Skipped | Status::Cancelled)
    }

    /// Whether a process of it ran.
    pub const fn ran(&self) -> bool {
        self.record.started_at.is_some()
    }
}

/// When the next attempt of `firing` after attempt number `attempt` starts or started; `None` if there is none. `row` and `beside` are
/// the job's rows now, `later` are records of the same job. History does not mark attempts, so that no run pays for this. The end of a
/// pause drops what is armed, so in a paused row no attempt waits.
pub fn retry_of(
    firing: FiringKey,
    attempt: u32,
    row: Option<&JobState>,
    beside: &[ConcurrentRun],
    later: &[RunRecord],
) -> Option<Timestamp> {
    let mine = |due_at: Timestamp, trigger: Trigger, other: u32| {
        due_at == firing.due_at && trigger == firing.trigger && other > attempt
    };
    let of_row = row.into_iter().flat_map(|row| {
        let held = row.phase.held().map(|held| held.firing);
        let armed = row.armed.filter(|_| row.pause.is_none());
        armed.into_iter().chain(row.manual.map(|manual| manual.firing)).chain(held)
    });
    let of_beside = beside.iter().filter(|run| run.key == firing).flat_map(|run| {
        run.waiting.map(|waiting| waiting.firing).into_iter().chain(run.phase.held().map(|held| held.firing))
    });
    let waits = |firing: &Firing| mine(firing.due_at, firing.trigger, firing.attempt);
    let came = later.iter().filter(|later| later.job == firing.job && mine(later.due_at, later.trigger, later.attempt));
    of_row
        .chain(of_beside)
        .filter(waits)
        .map(|firing| firing.start_at)
        .chain(came.map(|later| later.started_at.unwrap_or(later.finished_at)))
        .min()
}
