//! The seam between the protocol of a cluster's store and its database: statements, each with plain values.
//!
//! The protocol ([`crate::cluster`]) says which statements a call sends, in which order, and what follows from their answers. A
//! database only carries them out. There are two: MySQL by its driver, and the model of InnoDB with which the simulator runs.
//! So the simulator drives the code that ships.

mod people;
mod rows;
mod sessions;

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::id::{JobId, SessionId};

pub use people::{CachedDefinition, LiveOutputs, Purging, ReadForPeople, SignIn};
pub use rows::{ConcurrentQuery, ReadRows, SingleStart, StateQuery, StateRead, WriteRows};
pub use sessions::{Peeking, Sessions};

use crate::alerts::port::AlertRows;
use crate::reports::port::Reports;
use crate::tables::Standing;
use crate::{ServerReport, StoreError, StoreResult};

/// A database that several processes share.
pub trait Database: Send + Sync + 'static {
    /// A connection to it.
    type Connection: Connection;

    /// Begins a transaction with its first statement. An idle connection that turns out to be dead costs nothing: another one is
    /// taken. `call` names the call of the store, for traces.
    fn begin(
        &self,
        pool: Pool,
        call: &'static str,
        opening: &Opening<'_>,
    ) -> impl Future<Output = Result<(Self::Connection, Opened), NotBegun>> + Send;

    /// A connection on which nothing is begun, for one statement that commits by itself. `fresh` if an idle one turned out to be dead.
    fn connection(&self, pool: Pool, fresh: bool) -> impl Future<Output = StoreResult<Self::Connection>> + Send;

    /// A connection whose reads miss nothing that was acknowledged to anybody; `None` if those of every connection are so. Some servers
    /// apply later what another one has acknowledged.
    fn current(&self) -> impl Future<Output = StoreResult<Option<Self::Connection>>> + Send {
        async { Ok(None) }
    }

    /// Takes no idle connection of this pool any more.
    fn forget_idle(&self, pool: Pool);

    /// How long after a transaction has drawn a number it may commit.
    fn commits_within(&self) -> Duration;

    /// The boot clock of this process, in microseconds.
    fn boot_us(&self) -> u64;

    /// Which server of it is used, where it has servers.
    fn server(&self) -> Option<ServerReport> {
        None
    }

    /// Waits as long as a statement may take; `None` if that was not enough.
    fn in_time<T: Send>(&self, wait: impl Future<Output = T> + Send) -> impl Future<Output = Option<T>> + Send;
}

/// Connections with the same settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Heartbeats: they wait for nobody.
    Heartbeats,
    /// Transactions that write.
    Writers,
    /// Reads for people and for peeks.
    Readers,
    /// Statements that commit by themselves.
    SingleStatements,
}

/// The first statement of a transaction.
#[derive(Debug, Clone, Copy)]
pub enum Opening<'a> {
    /// From here on the transaction reads one state of the database.
    Snapshot,
    /// See [`Connection::clock`].
    Clock(Option<SessionId>),
    /// See [`Connection::lock_rows`].
    LockRows(&'a [u32]),
}

/// The answer to an [`Opening`].
#[derive(Debug, Clone)]
pub enum Opened {
    /// To [`Opening::Snapshot`].
    Snapshot,
    /// To [`Opening::Clock`].
    Clock(ClockAnswer),
    /// To [`Opening::LockRows`]: how many rows were locked.
    LockRows(u64),
}

/// Why a transaction did not begin.
#[derive(Debug)]
pub struct NotBegun {
    /// The error.
    pub error: StoreError,
    /// It lost against another transaction and may be tried again.
    pub conflict: bool,
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        Self { error, conflict: false }
    }
}

/// The time of the database and, if a session was named, its standing.
#[derive(Debug, Clone)]
pub struct ClockAnswer {
    /// Microseconds since the Unix epoch.
    pub now_us: i64,
    /// The standing of the session, and the concurrent runs of the cluster.
    pub standing: Option<(Standing, ConcurrentRuns)>,
}

/// The concurrent runs of the cluster, as far as one statement tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConcurrentRuns {
    /// The jobs that have some; `None` if they are unknown or too many to list.
    pub jobs: Option<BTreeSet<JobId>>,
    /// Whether one of them may be claimed, now or later.
    pub claimable: bool,
}

impl ConcurrentRuns {
    /// Those of `jobs` that may have some.
    pub fn of(&self, jobs: &[JobId]) -> Vec<JobId> {
        let may_have = |id: &JobId| self.jobs.as_ref().is_none_or(|known| known.contains(id));
        jobs.iter().copied().filter(may_have).collect()
    }

    /// Whether a claim may find one.
    pub const fn may_be_claimed(&self) -> bool {
        self.claimable || self.jobs.is_none()
    }
}

/// A connection with a transaction on it. After an error of which it is not known what became of the statement it is
/// [lost](Self::is_lost).
pub trait Connection:
    ReadRows
    + WriteRows
    + Sessions
    + Peeking
    + ReadForPeople
    + Reports
    + LiveOutputs
    + SignIn
    + Purging
    + AlertRows
    + Send
    + 'static
{
    /// Whether it is not to be used again.
    fn is_lost(&self) -> bool;

    /// Whether somebody else was faster, so the transaction may be tried again at once.
    fn has_conflict(&self) -> bool;

    /// Somebody else was faster: a row is not at the version that was read.
    fn note_conflict(&mut self);

    /// The error for a row that is not at the version that was read.
    fn moved_on(&mut self) -> StoreError {
        self.note_conflict();
        StoreError::Retryable("a row has moved on since it was read".to_owned())
    }

    /// Reads the database's time, and in the same statement the standing of a session.
    fn clock(&mut self, session: Option<SessionId>) -> impl Future<Output = StoreResult<ClockAnswer>> + Send;

    /// Locks rows of `lock_row` by writing them, ascending; answers how many there are. The caller has not named one twice.
    fn lock_rows(&mut self, ids: &[u32]) -> impl Future<Output = StoreResult<u64>> + Send;

    /// The ids of all rows of `lock_row`.
    fn lock_row_ids(&mut self) -> impl Future<Output = StoreResult<Vec<u32>>> + Send;

    /// Sends the COMMIT. Only an acknowledged one is believed.
    fn commit(&mut self) -> impl Future<Output = StoreResult<()>> + Send;

    /// Rolls back, and ends the connection if that fails or if it is lost.
    fn give_up(self) -> impl Future<Output = ()> + Send;

    /// Returns it to its pool; nothing is open on it.
    fn give_back(self);
}
