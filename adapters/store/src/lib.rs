//! Where jobs, runs and sessions are kept: four traits, an implementation for each database, one conformance suite for all.
//!
//! The domain decides ([`carillon_domain::store`]). A store locks, reads, asks the decision and writes under guards. All calls of
//! nodes are batches. Every instant in the database is that database's own time.

pub mod alerts;
mod audit;
pub mod batch_loader;
mod cache;
mod calls;
mod clock;
pub mod cluster;
mod codec;
pub mod copy;
mod definition;
mod error;
pub mod feed;
mod guarded;
pub mod live_output;
pub mod local;
mod migrations;
pub mod mysql;
mod perform;
pub mod purge_cursor;
pub mod reports;

pub mod sqlite;
pub mod tables;
mod types;
mod views;

pub use alerts::AlertStore;
pub use audit::redact::redact;
pub use audit::{AuditQuery, AuditRows, AuditState, AuditView};
pub use calls::run_params;
pub use calls::sign_in::{LinkDigest, SigningKey};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{ControlError, StoreError};
pub use perform::perform;
pub use reports::{
    ActivityBucket, Bounded, JobDay, JobList, JobListQuery, ListedJob, NamespaceScope, OutcomeCounts, Overview,
    OverviewQuery, RolledUp,
};
pub use tables::MAX_OUTPUT_BYTES;
pub use types::*;

/// The result of a call to a store.
pub type StoreResult<T> = Result<T, StoreError>;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use feed::{FeedLook, FeedRequest};

/// The calls of a node.
///
/// Every method may fail with [`StoreError::Unknown`]: the statement was applied, will be applied later, or never is. Callers settle
/// that by a guarded write, never by reading.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Registers a session before anything else; answers the database's time and the number of partitions.
    async fn open_session(&self, session: &NewSession) -> Result<Opened, StoreError>;

    /// Writes the next heartbeat, only where the session is live. Otherwise the answer is [`BeatAnswer::Fenced`], or
    /// [`BeatAnswer::WentBack`] where the database lost commits.
    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError>;

    /// Ends the caller's session, and removes it if it holds no rows. Otherwise its tombstone stays for the others to
    /// [sweep](Self::sweep), as a claim of unknown outcome may have been applied late.
    async fn close_session(&self, session: SessionId) -> Result<(), StoreError>;

    /// Reads without a lock: the next due row of the session's partitions, and unclaimed rows of all others. Also cancel requests for its
    /// runs, and its outputs that somebody reads at another node.
    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError>;

    /// Takes up to `request.runs.len()` firings that are due until `request.until`, each under one of the ids in `request.runs`. A
    /// manual run keeps its own id. Rows whose due times were only recorded are not answered. While a loss of commits is not accepted
    /// the answer is empty; a claim that notices a loss records it and does nothing else.
    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError>;

    /// Prepared -> Executing, only at the versions given and only while the session is not ended. One answer for each run, in order.
    /// It notices lost commits as a claim does. If it is not known which part of the runs has started, all have
    /// [moved](StartAnswer::Moved).
    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError>;

    /// Executing -> Idle, with history and output. One answer for each run, in order. Where the request asks for it, the same commit
    /// claims the job's next firing, if its executor is one of `executors`. The row is held before and after, so its partition's
    /// lock is not needed: whoever sweeps or writes to it finds it at another version.
    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError>;

    /// Releases runs that were never spawned. A row that does not carry the run, or not at the version given, is left alone:
    /// [`Self::list_held`] or [`Self::settle`] tell the version.
    async fn release(&self, session: SessionId, runs: &[RunRef]) -> Result<(), StoreError>;

    /// Settles unknown outcomes: raises the version of each row, which disarms a stray statement, then reads. One answer for each run,
    /// in order.
    async fn settle(&self, session: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError>;

    /// Writes runs into rows that lost them, and ends into history, while a loss of commits is not accepted. One answer for each run, in
    /// order; `None` if nothing is written, as the session is over or no loss is open.
    async fn write_back(&self, request: &WriteBackRequest) -> Result<Option<Vec<WriteBackAnswer>>, StoreError>;

    /// Every row that the session holds. The recovery loop compares them with memory.
    async fn list_held(&self, session: SessionId) -> Result<Vec<RunRef>, StoreError>;

    /// Ends another session if its heartbeat sequence is still `seen_seq`; `true` when it is ended now. The tombstone commits before any
    /// sweep. `by` found it silent. It notices lost commits as a claim does, and ends nobody while a loss is not accepted: the
    /// sequence may have come back. `None` where something else proves that the session is dead.
    async fn expire(&self, by: Option<Me>, session: SessionId, seen_seq: u64) -> Result<bool, StoreError>;

    /// Moves up to `limit` rows of an ended session back to Idle; answers how many. Call it again and again, as a stray statement of
    /// the dead may still arrive. The session's row goes once it holds nothing.
    async fn sweep(&self, session: SessionId, limit: usize) -> Result<usize, StoreError>;

    /// Publishes the output of runs so far, for readers at other nodes ([`Peek::wanted_outputs`]). It writes only where somebody asked,
    /// and an older state never replaces a newer one.
    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError>;
}

/// The calls of people.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// The database's time, as far as this process knows it: never later than the database shows.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Creates or replaces up to 1,000 jobs in one transaction; one answer for each, in order. A refused job does not hold up the
    /// others. A definition that changes nothing is not written.
    ///
    /// This and every other change is written into the audit log in its own commit, with its author.
    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError>;

    /// Deletes a job; the name is free at once. `if_generation` guards against a lost update.
    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>, author: &Author) -> Result<(), ControlError>;

    /// One job.
    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError>;

    /// Jobs in the order asked for. A page looks at a bounded number of jobs. So it may have fewer items than asked for and
    /// still name the next one.
    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobCursor>, StoreError>;

    /// Stops starting a job.
    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
        author: &Author,
    ) -> Result<JobView, ControlError>;

    /// Starts it again.
    async fn resume(&self, key: &JobKey, author: &Author) -> Result<JobView, ControlError>;

    /// Asks for a run now, under the id given, with the params of the job.
    async fn trigger(&self, key: &JobKey, run: RunId, author: &Author) -> Result<(), ControlError> {
        self.trigger_with(key, run, None, author).await
    }

    /// The same; `params` (a JSON object) are [laid over](run_params::lay_over) the job's for all attempts of this run.
    async fn trigger_with(
        &self,
        key: &JobKey,
        run: RunId,
        params: Option<Arc<str>>,
        author: &Author,
    ) -> Result<(), ControlError>;

    /// Asks a run to end, or not to start.
    async fn cancel(&self, run: RunId, author: &Author) -> Result<RunView, ControlError>;

    /// One run: held, waiting or recorded.
    async fn run(&self, run: RunId) -> Result<RunView, ControlError>;

    /// Runs, newest first: those that run, then history.
    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError>;

    /// The output that is kept of a run; `None` where it printed nothing, has not ended or is not kept any more.
    async fn output(&self, run: RunId) -> Result<Option<Output>, StoreError>;

    /// The loss windows: the open one, and those accepted within the last day.
    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError>;

    /// Accepts the open loss window, so that claims go on; answers it. It is refused as long as runs may live of which the database does not
    /// know. `patience` is the time after which a node without a heartbeat is dead; zero where only this process uses the database.
    async fn accept_losses(&self, patience: Duration, author: &Author) -> Result<Vec<RecordedLoss>, ControlError>;

    /// Asks the node of `run` for its output and answers the part that it has published; `None` before the first. A reader asks again
    /// every few seconds.
    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError>;

    /// One look of a feed: the rows of each journal that were asked for, and the present state, from one state of the database.
    async fn look(&self, request: &FeedRequest) -> Result<FeedLook, StoreError>;

    /// Which server of the database this node uses and why; `None` where the database has no server.
    fn server(&self) -> Option<ServerReport> {
        None
    }

    /// Sessions, live and ended ones that still hold rows.
    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError>;

    /// The audit log, newest first. The cursor is the id of the last entry of the page before.
    async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditView, u64>, StoreError>;

    /// Deletes up to `limit` entries of the audit log that are older than `before`; answers how many.
    async fn purge_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Deletes history that ended before `before`, or beyond `max_runs_per_job` of a job, up to `limit` rows; answers how many. Each call
    /// looks at a bounded part and the next one goes on from there. Sessions that ended a day ago go too, and published outputs
    /// without readers.
    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError>;

    /// The key with which all nodes sign sessions of the page: `offered`, or the one that was stored before.
    async fn signing_key(&self, offered: SigningKey) -> Result<SigningKey, StoreError>;

    /// Stores a link that signs somebody in once, within `lives_for` from now. Links that expired unused go.
    async fn add_sign_in_link(&self, link: LinkDigest, lives_for: Duration) -> Result<(), StoreError>;

    /// Whether a link can be used still. Nothing is changed.
    async fn has_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError>;

    /// Uses a link; `true` for one caller only, and only while the link lives.
    async fn use_sign_in_link(&self, link: LinkDigest) -> Result<bool, StoreError>;
}

/// The reports about many jobs that the web page shows. Each is one statement that reads a bounded number of rows, however many
/// jobs and records there are.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// The newest `count` records of each of these jobs, newest first. A job without history is not in the answer.
    async fn recent_runs(&self, jobs: &[JobId], count: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError>;

    /// The same for due times in `from..until`, at most `per_job` of each job.
    async fn runs_between(
        &self,
        jobs: &[JobId],
        due: Range<Timestamp>,
        per_job: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError>;

    /// Several lists of jobs in the namespaces that the reader may see, in the order asked for; all of them are one statement.
    async fn job_lists(
        &self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
    ) -> Result<Vec<Bounded<ListedJob>>, StoreError>;

    /// How it stands, beside the lists of jobs; all of it is one statement.
    async fn overview(&self, query: &OverviewQuery) -> Result<Overview, StoreError>;

    /// Counts of each day in UTC since `since`, by the outcome of the job's due times, oldest first. Empty days are left out.
    async fn days_of_job(&self, job: JobId, since: Timestamp) -> Result<Vec<JobDay>, StoreError>;

    /// Counts up to `limit` new records of history for [`Self::overview`] and [`Self::days_of_job`], and deletes counts that nobody
    /// asks for any more. Each record is counted once, however many nodes call this, and although a call may fail.
    async fn roll_up(&self, limit: usize) -> Result<RolledUp, StoreError>;
}

/// A database that does all of it.
pub trait Store: NodeStore + ControlStore + ReportStore + AlertStore {}

impl<S: NodeStore + ControlStore + ReportStore + AlertStore> Store for S {}
