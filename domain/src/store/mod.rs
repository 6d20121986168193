//! The decisions of a store: rows in, a set of guarded writes and an answer out.
//!
//! Each call of a node or a person has one function here. It is synchronous and pure: it looks at [`Rows`], lets
//! [`crate::firing`] move them, and answers a [`Decided`]. If it needs rows that are not there, it answers the [`Need`]
//! instead; the adapter reads them and asks again. So one decision serves every database, the model checker and the tests of
//! the rules. An adapter locks, reads, asks, writes and commits; it decides nothing.
//!
//! Every write names the version that was read. A database that finds another version writes nothing and repeats the call.

mod audit;
mod control;
mod losses;
mod model;
mod peek;
mod put;
mod runs;
mod sessions;
mod unit_of_work;

pub use audit::{Action, AuditDocument, AuditEntry, AuditedDelivery, Author};
pub use control::{Refusal, cancel, change, delete, trigger};
pub use losses::{StillUnknown, accept as accept_losses, still_unknown};
pub use model::{
    Change, ConcurrentJob, Definition, JobKey, JobRow, KnownSession, NewSession, PutIf, PutJob, RecordedLoss, Rows,
    SessionBeat, SessionState, SessionWrite, Standing, Write, WriteSet, WritingSession,
};
pub use peek::peek;
pub use put::{distinct_names, put_jobs};
pub use runs::{AfterRefusal, SplitFinish, claim, finish, optimistic_start, release, settle, start, write_back};
pub use sessions::{SPENT_KEPT, close, expire, heartbeat, open, sweep};

use std::sync::Arc;

use crate::id::{JobId, RunId, SessionId};
use crate::job::Job;
use crate::node::call::ClaimRequest;
use crate::node::port::RunRef;
use crate::time::Timestamp;

/// The outcome of a decision, or the rows that it needs first.
pub type Decision<A> = Result<Decided<A>, Need>;

/// The writes of one commit, and the answer once it is acknowledged.
#[derive(Debug, Clone)]
pub struct Decided<A> {
    /// Everything that the commit writes.
    pub write: WriteSet,
    /// The answer to the caller.
    pub answer: A,
}

impl<A> Decided<A> {
    /// A decision that writes nothing.
    pub fn answer(answer: A) -> Self {
        Self { write: WriteSet::default(), answer }
    }
}

/// Rows that a decision needs. The adapter reads them into [`Rows`] and asks again.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// The standing of a session, and whether commits were lost.
    Standing(SessionId),
    /// The last heartbeat sequence of a session that is over.
    SpentSeq(SessionId),
    /// The newest heartbeat, or end of a session, that the database knows.
    LastHeard,
    /// The rows of runs that the caller holds and is going to change. A store may answer job rows from its cache, as the
    /// guard of the write confirms them.
    Held(Vec<RunRef>),
    /// The rows of runs, as they are stored.
    Stored(Vec<RunRef>),
    /// The rows of jobs, as they are stored.
    Jobs(Vec<JobId>),
    /// Living jobs by name.
    Named(Vec<JobKey>),
    /// The concurrent run of that id.
    ConcurrentRun(RunId),
    /// Whether these runs have a record.
    Recorded(Vec<RunId>),
    /// History of these jobs that is due at this time or later.
    History(Vec<JobId>, Timestamp),
    /// Up to when commits were lost, by the losses that are open or were accepted since this time.
    Losses(Timestamp),
    /// Every concurrent run of these jobs.
    ConcurrentRunsOf(Vec<JobId>),
    /// The job's row that holds the run or in which it waits, or the concurrent run of that id.
    Run(RunId),
    /// Rows that the request may claim, in the order of their due times.
    Due(ClaimRequest),
    /// Up to so many rows that a session holds.
    HeldBy(SessionId, usize),
    /// All sessions, read after this write.
    Sessions(Option<SessionWrite>),
    /// The state of a session, read after this write.
    SessionState(SessionId, Option<SessionWrite>),
    /// Numbers for new jobs; the adapter stores their definitions under them.
    NewJobs(Vec<Arc<Job>>),
    /// The highest version of a row that was deleted.
    HighestVersion,
}
