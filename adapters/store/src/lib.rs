//! Where jobs, runs and sessions live: one trait, one implementation a database, one conformance suite for all.
//!
//! A store applies the transitions of `carillon_domain::firing` inside its transactions and adds nothing but guards. All
//! calls of the node side are batches. Every instant in the database is that database's own time.

mod cache;
mod calls;
mod clock;
mod codec;
mod definition;
mod error;
pub mod gather;
mod guarded;
mod held;
mod live;
pub mod memory;
pub mod mysql;
mod perform;
mod recent;
mod reckoning;
mod rounds;
pub mod sqlite;
mod tables;
mod types;
mod views;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{ControlError, StoreError};
pub use perform::perform;
pub use tables::MAX_OUTPUT_BYTES;
pub use types::*;

/// What a call to a store comes back with.
pub(crate) type StoreResult<T> = Result<T, StoreError>;

use async_trait::async_trait;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::time::Timestamp;

/// What the node machine asks of a database.
///
/// Every method may fail with [`StoreError::Unknown`]: the statement may have been applied, may still be applied later, or
/// never. Callers settle that by a guarded write, never by reading.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Registers a session before anything else; answers the database's time and the number of partitions.
    async fn open_session(&self, session: &NewSession) -> Result<Opened, StoreError>;

    /// Writes the next heartbeat: only where the session is live. [`BeatAnswer::Fenced`] when it is not, [`BeatAnswer::WentBack`] when
    /// that is because the database lost commits.
    async fn heartbeat(&self, me: Me, seq: u64, draining: bool) -> Result<BeatAnswer, StoreError>;

    /// Ends one's own session. It is removed when it holds nothing any more; otherwise it stays as ended, for the others to
    /// [sweep](Self::sweep), as a claim of unknown outcome may have been applied after the last look.
    async fn close_session(&self, session: SessionId) -> Result<(), StoreError>;

    /// Looks, without a lock, when something comes up in the session's partitions, what is left unclaimed in all others,
    /// which of its runs somebody wants to end, and the output of which ones somebody reads at another node.
    async fn peek(&self, request: &PeekRequest) -> Result<Peek, StoreError>;

    /// Takes up to `request.runs.len()` firings that come up until `request.until`, each under one of the ids in
    /// `request.runs` (a manual run keeps its own). Rows whose due times were only dealt with are not answered. None are
    /// while the loss of commits is not accepted: a claim that notices it records the window and does nothing else.
    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError>;

    /// Prepared -> Executing, only at the versions given and only while the session is not ended. One answer a run, in
    /// order. Notices lost commits as a claim does. Where a part of the runs may have started and it is not known which, all
    /// are told to have [moved](StartAnswer::Moved).
    async fn start(&self, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError>;

    /// Executing -> Idle, with history and output, and, where the request says so and the job's executor is one of
    /// `executors`, Idle -> Prepared again in the same commit, under the conditions of a claim. The row is held before and
    /// after, so that no lock of its partition is needed: whoever sweeps or writes to it finds it at another version. One
    /// answer a run, in order.
    async fn finish(&self, me: Me, runs: &[Finished], executors: &[String]) -> Result<Vec<FinishAnswer>, StoreError>;

    /// Gives back runs that were never spawned (drain, recovery, a start that is not to happen). Rows that do not carry the
    /// run, or not at the version given, are left alone: [`Self::held`] or [`Self::settle`] tell the version.
    async fn reset(&self, session: SessionId, runs: &[RunRef]) -> Result<(), StoreError>;

    /// Settles doubt about rows: writes each (which disarms a stray statement guarded on an older version), then looks.
    /// One answer a run, in order.
    async fn settle(&self, session: SessionId, runs: &[RunRef]) -> Result<Vec<SettleAnswer>, StoreError>;

    /// Every row that the session holds: what the recovery loop compares with the node's own sets.
    async fn held(&self, session: SessionId) -> Result<Vec<RunRef>, StoreError>;

    /// Ends another session, if its heartbeat sequence is still `seen_seq`: the tombstone is committed before any sweep.
    /// `true` when the session is ended now. `by` is who has found it silent: notices lost commits as a claim does, and ends
    /// nobody while they are not accepted, as the sequence may be one that came back. `None` where something else proves that
    /// the session is dead.
    async fn expire(&self, by: Option<Me>, session: SessionId, seen_seq: u64) -> Result<bool, StoreError>;

    /// Moves up to `limit` rows of an ended session back to Idle; answers how many. Called again and again, as a stray
    /// statement of the dead may still come; the session's row goes once nothing is held.
    async fn sweep(&self, session: SessionId, limit: usize) -> Result<usize, StoreError>;

    /// Publishes what runs have printed so far, for readers at other nodes ([`Peek::wanted_outputs`]). Only where somebody
    /// asked for it; an older state never takes the place of a newer one.
    async fn publish_output(&self, outputs: &[(RunId, LivePart)]) -> Result<(), StoreError>;
}

/// What people ask of a database.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// The database's time.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Creates or replaces up to 1,000 jobs in one transaction; one answer a job, in order. A refused job does not hold up
    /// the others. A definition that changes nothing is not written.
    async fn put_jobs(&self, jobs: &[PutJob]) -> Result<Vec<Result<Saved, ControlError>>, StoreError>;

    /// Deletes a job; the name is free at once. `if_generation` guards against a lost update.
    async fn delete_job(&self, key: &JobKey, if_generation: Option<u64>) -> Result<(), ControlError>;

    /// One job.
    async fn job(&self, key: &JobKey) -> Result<JobView, ControlError>;

    /// Jobs in the order of (namespace, name).
    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView, JobKey>, StoreError>;

    /// Stops starting a job.
    async fn pause(
        &self,
        key: &JobKey,
        until: Option<Timestamp>,
        reason: Option<String>,
    ) -> Result<JobView, ControlError>;

    /// Starts it again.
    async fn resume(&self, key: &JobKey) -> Result<JobView, ControlError>;

    /// Asks for a run now, under the id given.
    async fn trigger(&self, key: &JobKey, run: RunId) -> Result<(), ControlError>;

    /// Asks a run to end, or not to start.
    async fn cancel(&self, run: RunId) -> Result<RunView, ControlError>;

    /// One run: held, waiting or recorded.
    async fn run(&self, run: RunId) -> Result<RunView, ControlError>;

    /// Runs, newest first: those that run, then history.
    async fn runs(&self, query: &RunQuery) -> Result<Page<RunView, RunCursor>, ControlError>;

    /// The kept output of a run that ended.
    async fn output(&self, run: RunId) -> Result<Output, ControlError>;

    /// The times of which nobody knows what was committed in them: the open one, and those accepted within the last day.
    async fn recorded_losses(&self) -> Result<Vec<RecordedLoss>, StoreError>;

    /// Accepts the open one, so that claims go on; answers what was open.
    async fn accept_losses(&self) -> Result<Vec<RecordedLoss>, StoreError>;

    /// Asks the node that runs `run` for its output, and answers what it has published; `None` before it has. Asked again
    /// and again, at the latest every few seconds, as long as somebody reads.
    async fn ask_output(&self, run: RunId) -> Result<Option<LivePart>, StoreError>;

    /// Sessions, live and ended ones that still hold rows.
    async fn sessions(&self) -> Result<Vec<SessionView>, StoreError>;

    /// Deletes history that ended before `before`, or beyond `max_runs_per_job` of a job, up to `limit` rows; answers how
    /// many. A call looks at a bounded part of the history, the next one at what follows: called again and again, it sees
    /// all of it. What is left of sessions that ended a day ago, and what was published for readers who have gone, goes too.
    async fn purge(&self, before: Timestamp, max_runs_per_job: u32, limit: usize) -> Result<usize, StoreError>;
}

/// A database that does both.
pub trait Store: NodeStore + ControlStore {}

impl<S: NodeStore + ControlStore> Store for S {}
