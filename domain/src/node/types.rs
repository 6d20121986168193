//! What goes into the node machine and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use super::lanes::{Lane, Lanes};
use super::port::{Claimed, FinishAnswer, FinishRequest, Peek, RunRef, Seen, StartAnswer};
use super::stealing::Theft;
use crate::firing::Held;
use crate::guard::{Guard, enabled};
use crate::id::{RunId, SessionId};
use crate::job::Job;
use crate::lease::Timing;
use crate::lost_commits::LossWindow;
use crate::matrix::Answer;
use crate::run::{Ending, Reason};
use crate::time::{BootTime, Timestamp};

/// What a node is told at its start.
#[derive(Debug, Clone, Hash)]
pub struct Config {
    /// Heartbeats and fencing.
    pub timing: Timing,
    /// Whether a node that loses its database ends itself. Not on SQLite, where the lease is a lock on the file.
    pub self_kill: bool,
    /// How many partitions the database has.
    pub partitions: u16,
    /// How far ahead firings are claimed.
    pub horizon: Duration,
    /// How many runs a node holds at the most, prepared and executing.
    pub max_in_flight: usize,
    /// How many runs live at the same time at the most.
    pub max_executing: usize,
    /// How many rows go into one call to the store at the most.
    pub max_batch: usize,
    /// How long between two looks for work.
    pub peek_every: Duration,
    /// How long a row that others could claim must stand unclaimed before this node takes it. Shorter than two looks, it
    /// takes from owners that are not stuck, which is a waste and no harm.
    pub steal_after: Duration,
    /// How long between two recoveries.
    pub recover_every: Duration,
    /// How long a drain waits for runs before it cancels them.
    pub drain_timeout: Duration,
}

/// How a call to the store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Not applied; may work later.
    RolledBack,
    /// Not applied; will never work.
    Refused,
    /// Perhaps applied, perhaps still to be.
    Unknown,
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::RolledBack => Answer::RolledBack,
            Failure::Refused => Answer::Refused,
            Failure::Unknown => Answer::Unknown,
        }
    }
}

/// What a call to the store came back with.
pub type StoreAnswer<T> = Result<T, Failure>;

/// Another session, as a heartbeat's answer shows it.
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

/// Something that happened.
#[derive(Debug, Clone, Hash)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// Rows changed: look whether something comes up sooner.
    Look,
    /// The answer to [`Effect::Heartbeat`].
    Beat {
        /// When it was sent.
        sent: BootTime,
        /// What came back.
        answer: StoreAnswer<BeatAnswer>,
    },
    /// The answer to [`Effect::Peek`].
    Peeked(StoreAnswer<Peek>),
    /// The answer to [`Effect::Claim`].
    Claimed(StoreAnswer<Vec<Claimed>>),
    /// The answer to [`Effect::Start`].
    Started {
        /// Of the one in this lane.
        lane: Lane,
        /// What came back, for each run in the order in which they were sent.
        answer: StoreAnswer<Vec<StartAnswer>>,
    },
    /// The answer to [`Effect::Settle`].
    Settled(StoreAnswer<Vec<Seen>>),
    /// A spawned run has ended.
    Exited {
        /// Which.
        run: RunId,
        /// How; its `ended_at` is set by the node.
        ending: Ending,
    },
    /// The answer to [`Effect::Finish`].
    Finished {
        /// Of the one in this lane.
        lane: Lane,
        /// What came back, for each run in the order in which they were sent.
        answer: StoreAnswer<Vec<FinishAnswer>>,
    },
    /// The answer to [`Effect::Reset`].
    Reset(StoreAnswer<()>),
    /// The answer to [`Effect::ListHeld`].
    Held(StoreAnswer<Vec<RunRef>>),
    /// [`Effect::Expire`] or [`Effect::Sweep`] came back, however.
    Swept,
    /// Somebody wants a run to end; it may not be mine.
    CancelAsked(RunId),
    /// Stop claiming, give back what is prepared, wait for what runs.
    Drain,
    /// Stop waiting: cancel what runs.
    DrainNow,
    /// The keeper is gone, and every child with it.
    KeeperDied,
}

/// Why a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A person wants it.
    Cancelled,
    /// A newer firing takes its place.
    Replaced,
    /// The node shuts down and has waited long enough.
    ShutDown,
}

impl StopReason {
    /// What history keeps of it.
    pub fn reason(self) -> Reason {
        match self {
            StopReason::Cancelled => Reason::Cancelled,
            StopReason::Replaced => Reason::Replaced,
            StopReason::ShutDown => Reason::Said("the node was shut down".into()),
        }
    }
}

/// Why a node ends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelfKillReason {
    /// Another session ended this one.
    Fenced,
    /// The database went back to a time at which there was no such session.
    WentBack,
    /// No heartbeat was acknowledged within `self_kill_after`.
    LeaseOver,
    /// The keeper died.
    KeeperDied,
}

/// Something to do. The driver comes back with the result as an [`Input`].
#[derive(Debug, Clone, Hash)]
pub enum Effect {
    /// Write a heartbeat.
    Heartbeat {
        /// Its sequence number.
        seq: u64,
        /// Whether the node drains.
        draining: bool,
    },
    /// Tell the keeper that children may live until then.
    RenewKeeper {
        /// The lease's end.
        until: BootTime,
    },
    /// Look for work: my own, and what others leave lying.
    Peek {
        /// Which are mine.
        partitions: Vec<u16>,
        /// What comes up until then.
        until: Timestamp,
    },
    /// Claim.
    Claim {
        /// Where.
        partitions: Vec<u16>,
        /// What comes up until then.
        until: Timestamp,
        /// The ids to use.
        runs: Vec<RunId>,
        /// How many of them may start in the same commit, where they are due already.
        places: usize,
        /// Of this executor only; `None` for all that the node has.
        only: Option<String>,
    },
    /// Write starts.
    Start {
        /// What the answer is to name.
        lane: Lane,
        /// Which.
        runs: Vec<RunRef>,
    },
    /// Really start a run: its start is acknowledged.
    Spawn {
        /// What is held; the id, the token and the start are in it.
        held: Held,
        /// What to run.
        job: Arc<Job>,
    },
    /// Ask a spawned run to stop; politely, the executor escalates.
    Stop {
        /// Which run.
        run: RunId,
        /// Why.
        reason: StopReason,
    },
    /// Write finishes.
    Finish {
        /// What the answer is to name.
        lane: Lane,
        /// Which, and how they ended.
        runs: Vec<FinishRequest>,
    },
    /// The record of this run is kept; whatever the driver holds of it may go.
    Forget(RunId),
    /// Settle doubt.
    Settle(Vec<RunRef>),
    /// Give runs back.
    Reset(Vec<RunRef>),
    /// List the rows that this session holds.
    ListHeld,
    /// End a silent session if its heartbeat is still `seq`, then sweep it.
    Expire {
        /// Which session.
        session: SessionId,
        /// The sequence last seen.
        seq: u64,
    },
    /// Sweep a session that was ended.
    Sweep {
        /// Which session.
        session: SessionId,
    },
    /// Everything is given back or recorded: remove the session and end.
    Drained,
    /// End at once, children first (exit 70).
    SelfKill(SelfKillReason),
}

impl Effect {
    /// What a node is told when the call to the store that this effect is has failed; `sent` is when it was sent. `None` when
    /// it is none.
    pub fn failed(&self, failure: Failure, sent: BootTime) -> Option<Input> {
        Some(match self {
            Effect::Heartbeat { .. } => Input::Beat { sent, answer: Err(failure) },
            Effect::Peek { .. } => Input::Peeked(Err(failure)),
            Effect::Claim { .. } => Input::Claimed(Err(failure)),
            Effect::Start { lane, .. } => Input::Started { lane: *lane, answer: Err(failure) },
            Effect::Settle(_) => Input::Settled(Err(failure)),
            Effect::Finish { lane, .. } => Input::Finished { lane: *lane, answer: Err(failure) },
            Effect::Reset(_) => Input::Reset(Err(failure)),
            Effect::ListHeld => Input::Held(Err(failure)),
            Effect::Expire { .. } | Effect::Sweep { .. } => Input::Swept,
            Effect::RenewKeeper { .. }
            | Effect::Spawn { .. }
            | Effect::Stop { .. }
            | Effect::Forget(_)
            | Effect::Drained
            | Effect::SelfKill(_) => return None,
        })
    }
}

/// What is on its way to the store: one call of a kind at a time, but for starts and finishes.
#[derive(Debug, Default, Clone, Hash)]
pub(super) struct Flight {
    /// When it was sent.
    pub peek: Option<BootTime>,
    pub claim: Option<SentClaim>,
    pub start: Lanes,
    pub settle: Option<Vec<RunId>>,
    pub finish: Lanes,
    pub reset: Option<Vec<RunId>>,
    pub held: bool,
    pub sweep: Option<SessionId>,
}

/// A claim on its way.
#[derive(Debug, Clone, Hash)]
pub(super) struct SentClaim {
    pub runs: Vec<RunId>,
    /// Kept for those that may start along.
    pub places: usize,
    /// What it takes from others; `None` in my own partitions.
    pub theft: Option<Theft>,
}

/// The node's own heartbeat and the lease that it keeps up.
#[derive(Debug, Clone, Hash)]
pub(super) struct Heartbeat {
    pub seq: u64,
    /// The highest that was acknowledged.
    pub acked: u64,
    pub next_at: BootTime,
    /// Trusted until then.
    pub lease_until: BootTime,
    pub self_kill: bool,
    pub in_flight: bool,
    /// The node has ended itself: nothing is done any more.
    pub ended: bool,
}

impl Heartbeat {
    pub fn new(now: BootTime, timing: &Timing, self_kill: bool) -> Self {
        Self {
            seq: 0,
            acked: 0,
            next_at: now,
            lease_until: now + timing.self_kill_after,
            self_kill,
            ended: false,
            in_flight: false,
        }
    }

    /// When something is to be done about it. One that is on its way wakes by its answer.
    pub fn next(&self) -> BootTime {
        const NEVER: BootTime = BootTime::from_ms(u64::MAX);
        if self.ended {
            return NEVER;
        }
        let beat = if self.in_flight { NEVER } else { self.next_at };
        if self.self_kill && enabled(Guard::SelfKill) { beat.min(self.lease_until) } else { beat }
    }
}

/// The end of a node in good order.
#[derive(Debug, Default, Clone, Hash)]
pub(super) struct Drain {
    pub begun: bool,
    /// When runs are cancelled.
    pub deadline: Option<BootTime>,
    pub hurried: bool,
    pub done: bool,
    pub last_look: LastLook,
    /// The drain was forced by the keeper's death: it ends in a self-kill.
    pub keeper_died: bool,
}

/// Whether the store was asked what it still holds for this session, once memory held nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LastLook {
    #[default]
    ToCome,
    OnItsWay,
    Clean,
}

/// Asking again, later and later: 50 ms, doubling up to 5 s.
#[derive(Debug, Default, Clone, Copy, Hash)]
pub(super) struct Backoff {
    until: Option<BootTime>,
    failures: u32,
}

impl Backoff {
    const FIRST_MS: u64 = 50;
    const LONGEST_MS: u64 = 5_000;

    pub fn failed(&mut self, now: BootTime) {
        let wait_ms = (Self::FIRST_MS << self.failures.min(10)).min(Self::LONGEST_MS);
        self.failures += 1;
        self.until = Some(now + Duration::from_millis(wait_ms));
    }

    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A wait that has ended no longer wakes anybody.
    pub fn forget_if_over(&mut self, now: BootTime) {
        self.until = self.until.filter(|until| *until > now);
    }

    /// Whether nothing is to be waited for.
    pub const fn is_over(&self) -> bool {
        self.until.is_none()
    }

    pub const fn until(&self) -> Option<BootTime> {
        self.until
    }
}
