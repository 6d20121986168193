//! The arguments and answers of a store.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{JobState, Pause};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lease::{ChosenTiming, Terms};
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

use crate::reports::NamespaceScope;

pub use carillon_domain::node::call::{ClaimRequest, Me, PeekRequest, WriteBackRequest};
pub use carillon_domain::node::port::{Finished, KnownRun, WriteBackAnswer};
pub use carillon_domain::run::Output;
pub use carillon_domain::store::{
    Action, AuditDocument, AuditEntry, AuditedDelivery, Author, Change, JobKey, KnownSession, NewSession, PutIf,
    PutJob, RecordedLoss, SessionBeat, SessionState, WritingSession,
};

/// A session was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The database's time.
    pub now: Timestamp,
    /// How many partitions the database was made with.
    pub partitions: u16,
}

/// The output of a run so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct LivePart {
    /// How many bytes that is.
    pub written: u64,
    /// The newest of them, at most 64 KiB.
    pub tail: Vec<u8>,
}

impl LivePart {
    /// Whether more was printed than is shown.
    pub fn is_truncated(&self) -> bool {
        self.written > self.tail.len() as u64
    }
}

/// The outcome of a put.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The job as stored.
    pub view: JobView,
    /// The effect.
    pub change: Change,
}

/// A job as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// The definition.
    pub job: Arc<Job>,
    /// Its due times. Stores keep it parsed, so a list of jobs parses no schedule.
    pub timeline: Timeline,
    /// The hot row.
    pub state: JobState,
    /// When the job was created.
    pub created_at: Timestamp,
    /// When its definition last changed.
    pub updated_at: Timestamp,
    /// The name of the node that holds it.
    pub node: Option<String>,
    /// The newest record of it.
    pub last_run: Option<RunRecord>,
}

impl JobView {
    /// The pause, if there is one.
    pub fn pause(&self) -> Option<&Pause> {
        self.state.pause.as_ref()
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T, C> {
    /// Its items.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<C>,
}

/// The order of a listing of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobSort {
    /// By namespace and name.
    #[default]
    Name,
    /// By the next time at which something may start, soonest first. Jobs of which a session holds the row come first, jobs to which nothing
    /// is to come come last.
    Next,
}

/// Where a listing of jobs goes on: behind this job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobCursor {
    /// In [`JobSort::Name`].
    Name(JobKey),
    /// In [`JobSort::Next`].
    Next {
        /// When the job's row could be claimed; `None` if a session held it.
        claim_at: Option<Timestamp>,
        /// Its job.
        id: JobId,
    },
}

/// Which jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobQuery {
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    /// The namespaces that the reader may see.
    pub scope: NamespaceScope,
    /// Names that begin so.
    pub prefix: Option<String>,
    /// Names that contain this, whatever the case of its letters.
    pub contains: Option<String>,
    /// A label and, unless any will do, its value.
    pub label: Option<(String, Option<String>)>,
    /// `idle`, `prepared` or `executing`.
    pub state: Option<String>,
    /// Paused or not.
    pub paused: Option<bool>,
    /// Jobs whose last run ended so.
    pub last_status: Option<Status>,
    /// The order.
    pub sort: JobSort,
    /// Behind this job. A cursor of another order is ignored.
    pub after: Option<JobCursor>,
    /// How many at the most; at least 1.
    pub limit: usize,
}

impl JobQuery {
    /// The name behind which the page begins, if it is in the order of names.
    pub fn after_name(&self) -> Option<&JobKey> {
        match &self.after {
            Some(JobCursor::Name(key)) if self.sort == JobSort::Name => Some(key),
            _ => None,
        }
    }

    /// The same without the text that a name must contain.
    pub fn of_any_name(&self) -> Self {
        Self { contains: None, ..self.clone() }
    }

    /// The row behind which the page begins, if it is in the order of times.
    pub fn after_next(&self) -> Option<(Option<Timestamp>, JobId)> {
        match self.after {
            Some(JobCursor::Next { claim_at, id }) if self.sort == JobSort::Next => Some((claim_at, id)),
            _ => None,
        }
    }
}

/// Where a listing of runs goes on, newest first: after this run in the order of (due time, attempt, id). None of the three changes
/// while a run goes from waiting to history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunCursor {
    /// The due time of the last item.
    pub due_at: Timestamp,
    /// Its attempt.
    pub attempt: u32,
    /// Its id.
    pub run: RunId,
}

/// Which runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Of one job only.
    pub job: Option<JobKey>,
    /// Of the job with this number, in place of `job`: it need not be looked for by its name.
    pub job_id: Option<JobId>,
    /// Of one namespace only; `None` for all.
    pub namespace: Option<String>,
    /// Of this status only.
    pub status: Option<Status>,
    /// Due at or after.
    pub since: Option<Timestamp>,
    /// Due before.
    pub until: Option<Timestamp>,
    /// Standing for this due time, alone or in a range.
    pub covering: Option<Timestamp>,
    /// After this one.
    pub after: Option<RunCursor>,
    /// How many at the most; at least 1.
    pub limit: usize,
}

/// A run as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// Which run.
    pub id: RunId,
    /// Whose it is.
    pub job_id: JobId,
    /// The job's name.
    pub key: JobKey,
    /// The node's name, where one ran it.
    pub node: Option<String>,
    /// How it stands.
    pub stage: RunStage,
    /// The params that were given for it alone, as JSON text. Listings leave them out.
    pub params: Option<Arc<str>>,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStage {
    /// Asked for, or prepared, and not started yet.
    Waiting {
        /// Its due time.
        due_at: Timestamp,
        /// The trigger of the firing.
        trigger: Trigger,
        /// 1 for the first attempt.
        attempt: u32,
        /// The session that prepared it.
        session: Option<SessionId>,
    },
    /// Started, not finished.
    Running {
        /// The firing that the row holds.
        held: carillon_domain::firing::Held,
        /// Asked to end.
        cancelling: bool,
    },
    /// Over, or never run.
    Recorded {
        /// The history row.
        record: Box<RunRecord>,
        /// Whether output beyond the bounds was left out.
        output_truncated: bool,
    },
}

/// A session as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The part that other sessions see.
    pub beat: SessionBeat,
    /// The name that its node registered.
    pub node: String,
    /// Where its API listens.
    pub address: String,
    /// The version of its binary.
    pub version: String,
    /// When it registered.
    pub started_at: Timestamp,
    /// Its latest heartbeat.
    pub heartbeat_at: Timestamp,
    /// The database server through which it writes, by that server's name for itself; `None` where it told none.
    pub server: Option<String>,
    /// When its children are dead after its last heartbeat, and when it takes over from others; `None` where it told nothing.
    pub terms: Option<Terms>,
    /// The end of the newest loss window for which its node has written back every run that it knows; `None` for a binary that cannot.
    pub wrote_back: Option<Timestamp>,
    /// How many rows it holds as Prepared.
    pub prepared: u64,
    /// How many rows it holds as Executing.
    pub executing: u64,
}

/// The server of a shared database that a node uses, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReport {
    /// Its place in the store's address.
    pub place: String,
    /// The name that it has for itself: host, port and, on MySQL, its number.
    pub identity: String,
    /// The kind of servers that it belongs to.
    pub topology: String,
    /// Why this one is used.
    pub why: String,
    /// How often another server was taken since this node started.
    pub changes: u64,
    /// A sentence where nodes use the servers in a way that is not allowed.
    pub trouble: Option<String>,
}

/// The session timing of a node, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimingReport {
    /// The timing and its source.
    pub chosen: ChosenTiming,
    /// The limits of the database's servers that do not fit it, each in a sentence with its remedy.
    pub misfits: Vec<String>,
}

/// A node that has said nothing for so long is silent.
const SILENT_AFTER: Duration = Duration::from_secs(15);

impl SessionView {
    /// Whether people should look after its node: it has said nothing for 15 seconds, or others have ended its session. No rule hangs
    /// on it.
    pub fn is_silent(&self, now: Timestamp) -> bool {
        self.beat.state == SessionState::Ended || now.since(self.heartbeat_at) > SILENT_AFTER
    }

    /// The part that tells whether a loss of commits may be accepted.
    pub fn writing(&self) -> WritingSession {
        let Self { beat, node, heartbeat_at, wrote_back, .. } = self;
        WritingSession { node: node.clone(), state: beat.state, heartbeat_at: *heartbeat_at, wrote_back: *wrote_back }
    }

    /// The part that decisions look at.
    pub(crate) fn known(self) -> KnownSession {
        KnownSession { beat: self.beat, node: self.node, heartbeat_at: self.heartbeat_at }
    }
}
