//! Calls of a node to its store and the answers to them, as plain data.
//!
//! A call carries everything that it needs. So each driver of the node (server, simulator, model checker, scripted test) performs
//! it by the same function and decides nothing.

use std::fmt;

use super::port::{
    Claimed, FinishAnswer, Finished, KnownRun, Peek, RunRef, SettleAnswer, StartAnswer, WriteBackAnswer,
};
use crate::id::{RunId, SessionId};
use crate::lost_commits::LossWindow;
use crate::time::Timestamp;

/// The number of a call, unique among those of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A session that makes a call, and what tells its store that the database lost commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Me {
    /// Which session.
    pub session: SessionId,
    /// The highest heartbeat sequence that was acknowledged to it; 0 before the first.
    pub acked: u64,
}

impl Me {
    /// A session to which nothing was acknowledged yet.
    pub const fn new(session: SessionId) -> Self {
        Self { session, acked: 0 }
    }
}

/// A lock-free read for coming work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PeekRequest {
    /// Who reads.
    pub session: SessionId,
    /// Which partitions are its own.
    pub partitions: Vec<u16>,
    /// The latest due time.
    pub until: Timestamp,
    /// The executors that the node offers; jobs of other executors are left out.
    pub executors: Vec<String>,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimRequest {
    /// Who claims; an ended session gets nothing.
    pub me: Me,
    /// Where.
    pub partitions: Vec<u16>,
    /// The latest due time.
    pub until: Timestamp,
    /// One id for each firing, drawn and remembered before the call; their number is the limit.
    pub runs: Vec<RunId>,
    /// How many of these may start in the same commit, where they are due already.
    pub places: usize,
    /// The executors of which firings are claimed; jobs of other executors are left alone.
    pub executors: Vec<String>,
}

/// Runs to write back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WriteBackRequest {
    /// Whose runs.
    pub me: Me,
    /// The end of the loss window for which they are written.
    pub until: Timestamp,
    /// Which, those of one job next to each other and in the order of their firings.
    pub runs: Vec<KnownRun>,
    /// Whether the session has written everything with these.
    pub last: bool,
}

/// A call to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Call {
    /// Writes a heartbeat.
    Heartbeat {
        /// Whose.
        me: Me,
        /// Its sequence number.
        seq: u64,
        /// Whether the node drains.
        draining: bool,
    },
    /// Reads what comes due, without a lock.
    Peek(PeekRequest),
    /// Idle -> Prepared.
    Claim(ClaimRequest),
    /// Prepared -> Executing.
    Start {
        /// Who starts.
        me: Me,
        /// Which runs, in ascending order of their rows.
        runs: Vec<RunRef>,
    },
    /// Executing -> Idle, with a record.
    Finish {
        /// Whose runs.
        me: Me,
        /// Which, in ascending order of their rows.
        runs: Vec<Finished>,
        /// The executors of which the same commit may claim the next firing.
        executors: Vec<String>,
    },
    /// Writes to rows and tells how they stand.
    Settle {
        /// Whose rows.
        session: SessionId,
        /// Which.
        runs: Vec<RunRef>,
    },
    /// Prepared -> Idle, or Executing -> Idle of a run that was never spawned.
    Release {
        /// Whose rows.
        session: SessionId,
        /// Which.
        runs: Vec<RunRef>,
    },
    /// Writes runs into rows that lost them, while a loss of commits is not accepted.
    WriteBack(WriteBackRequest),
    /// Lists the rows that the session holds.
    ListHeld {
        /// Whose.
        session: SessionId,
    },
    /// Ends a silent session if its heartbeat is still `seq`.
    Expire {
        /// Who found it silent.
        by: Me,
        /// The silent session.
        session: SessionId,
        /// The sequence that was read last.
        seq: u64,
    },
    /// Moves rows of an ended session back to Idle.
    Sweep {
        /// The ended session.
        session: SessionId,
        /// How many rows at the most.
        limit: usize,
    },
    /// Ends the session of the caller, which holds nothing any more.
    Close {
        /// Which.
        session: SessionId,
    },
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// [`Call::Heartbeat`].
    Heartbeat,
    /// [`Call::Peek`].
    Peek,
    /// [`Call::Claim`].
    Claim,
    /// [`Call::Start`].
    Start,
    /// [`Call::Finish`].
    Finish,
    /// [`Call::Settle`].
    Settle,
    /// [`Call::Release`].
    Release,
    /// [`Call::WriteBack`].
    WriteBack,
    /// [`Call::ListHeld`].
    ListHeld,
    /// [`Call::Expire`].
    Expire,
    /// [`Call::Sweep`].
    Sweep,
    /// [`Call::Close`].
    Close,
}

impl CallKind {
    /// The name in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            CallKind::Heartbeat => "heartbeat",
            CallKind::Peek => "peek",
            CallKind::Claim => "claim",
            CallKind::Start => "start",
            CallKind::Finish => "finish",
            CallKind::Settle => "settle",
            CallKind::Release => "release",
            CallKind::WriteBack => "write_back",
            CallKind::ListHeld => "list_held",
            CallKind::Expire => "expire",
            CallKind::Sweep => "sweep",
            CallKind::Close => "close",
        }
    }
}

/// The locks of partitions that a call takes before it reads. Every call but a peek and a listing also locks the rows that it
/// writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionLocks<'a> {
    /// None: the call writes only rows that its session holds, or sessions.
    None,
    /// Those of these partitions, in ascending order.
    Of(&'a [u16]),
    /// Those of all partitions, in ascending order: no claim of the session is half done.
    All,
}

impl Call {
    /// The kind.
    pub const fn kind(&self) -> CallKind {
        match self {
            Call::Heartbeat { .. } => CallKind::Heartbeat,
            Call::Peek(_) => CallKind::Peek,
            Call::Claim(_) => CallKind::Claim,
            Call::Start { .. } => CallKind::Start,
            Call::Finish { .. } => CallKind::Finish,
            Call::Settle { .. } => CallKind::Settle,
            Call::Release { .. } => CallKind::Release,
            Call::WriteBack(_) => CallKind::WriteBack,
            Call::ListHeld { .. } => CallKind::ListHeld,
            Call::Expire { .. } => CallKind::Expire,
            Call::Sweep { .. } => CallKind::Sweep,
            Call::Close { .. } => CallKind::Close,
        }
    }

    /// The locks of partitions that the call takes.
    pub fn partition_locks(&self) -> PartitionLocks<'_> {
        match self {
            Call::Claim(request) => PartitionLocks::Of(&request.partitions),
            Call::Sweep { .. } | Call::Close { .. } => PartitionLocks::All,
            Call::Heartbeat { .. }
            | Call::Peek(_)
            | Call::Start { .. }
            | Call::Finish { .. }
            | Call::Settle { .. }
            | Call::Release { .. }
            | Call::WriteBack(_)
            | Call::ListHeld { .. }
            | Call::Expire { .. } => PartitionLocks::None,
        }
    }
}

/// The answer to a call; one variant for each kind of call.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Answer {
    /// To [`Call::Heartbeat`].
    Heartbeat(BeatAnswer),
    /// To [`Call::Peek`].
    Peek(Peek),
    /// To [`Call::Claim`]: what the session holds now.
    Claim(Vec<Claimed>),
    /// To [`Call::Start`]: one answer for each run, in order.
    Start(Vec<StartAnswer>),
    /// To [`Call::Finish`]: one answer for each run, in order.
    Finish(Vec<FinishAnswer>),
    /// To [`Call::Settle`]: one answer for each run, in order.
    Settle(Vec<SettleAnswer>),
    /// To [`Call::Release`]: none of the rows carries its run any more at the version that was given.
    Released,
    /// To [`Call::WriteBack`]: one answer for each run, in order. `None` if nothing was written: the session is over, or the loss is not open.
    WroteBack(Option<Vec<WriteBackAnswer>>),
    /// To [`Call::ListHeld`]: every row that the session holds.
    Held(Vec<RunRef>),
    /// To [`Call::Expire`]: whether the session is ended now.
    Expired(bool),
    /// To [`Call::Sweep`]: how many rows went back to Idle.
    Swept(usize),
    /// To [`Call::Close`].
    Closed,
}

/// How a call to the store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallFailure {
    /// Not applied; may work later.
    RolledBack,
    /// Not applied; will never work.
    Refused,
    /// Perhaps applied, perhaps still to be.
    Unknown,
}

/// Another session, as the answer to a heartbeat shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Which session.
    pub session: SessionId,
    /// Its heartbeat sequence.
    pub seq: u64,
    /// Whether it claims: neither draining nor ended.
    pub claims: bool,
    /// Whether it was ended: its rows are to be swept.
    pub ended: bool,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BeatAnswer {
    /// The session lives.
    Alive {
        /// The database's time.
        utc: Timestamp,
        /// All sessions, this one included.
        peers: Vec<Peer>,
        /// Set while nobody has accepted that the database lost commits.
        window: Option<LossWindow>,
    },
    /// Another session has ended this one.
    Fenced,
    /// The database has forgotten this session: it went back in time.
    WentBack,
}
