//! The inputs and effects of the node.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Answer, Call, CallFailure, CallId};
use super::flow::FlowKind;
use crate::firing::Held;
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::job::Job;
use crate::lease::Timing;
use crate::run::{Ending, Output, Reason};
use crate::time::BootTime;

/// The configuration of a node.
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
    /// The same while nothing comes up within the horizon and this node holds no run. Longer only where every change to a row passes through
    /// this node, which then looks at once ([`Input::RowsChanged`]).
    pub peek_every_at_rest: Duration,
    /// How long a row that others could claim must stand unclaimed before this node takes it. Shorter than two looks, it
    /// takes from owners that are not stuck, which is a waste and no harm.
    pub steal_after: Duration,
    /// How long between two recoveries.
    pub recover_every: Duration,
    /// How long a drain waits for runs before it cancels them.
    pub drain_timeout: Duration,
    /// How many ends of runs it remembers, in case the database loses them.
    pub remembered_ends: usize,
    /// When calls go out, and how many runs one carries.
    pub flow: FlowKind,
}

/// Something that happened.
#[derive(Debug, Clone, Hash)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The executors that the driver offers from now on; none before the first time.
    Offers(Vec<String>),
    /// Rows changed: something may come due sooner.
    RowsChanged,
    /// A call of [`Effect::Call`] was answered, or failed. Each call is answered once.
    Answered {
        /// Which call.
        id: CallId,
        /// The answer of the call's kind.
        answer: Result<Answer, CallFailure>,
    },
    /// A spawned run has ended.
    Exited {
        /// Which.
        run: RunId,
        /// How; its `ended_at` is set by the node.
        ending: Ending,
        /// Its output; the node hands it on to the call that records the run.
        output: Arc<Output>,
    },
    /// A person wants a run to end; it may not be mine.
    CancelAsked(RunId),
    /// Stop claiming, release what is prepared, wait for what runs.
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
    /// The reason that history keeps.
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
    /// Make a call to the store; [`Input::Answered`] follows.
    Call {
        /// The number that the answer is to name.
        id: CallId,
        /// Which call.
        call: Call,
    },
    /// Tell the keeper that children may live until then.
    RenewKeeper {
        /// The lease's end.
        until: BootTime,
    },
    /// Really start a run: its start is acknowledged.
    Spawn {
        /// The held firing; the id, the token and the start are in it.
        held: Held,
        /// The definition to run.
        job: Arc<Job>,
    },
    /// Ask a spawned run to stop; politely, the executor escalates.
    Stop {
        /// Which run.
        run: RunId,
        /// Why.
        reason: StopReason,
    },
    /// The run is recorded: whatever the driver keeps of it may go.
    Recorded(RunId),
    /// The drain is over and the session is closed: end.
    Drained,
    /// End at once, children first (exit 70).
    SelfKill(SelfKillReason),
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
    /// The node has ended itself: nothing is done any more.
    pub ended: bool,
}

impl Heartbeat {
    pub fn new(now: BootTime, timing: &Timing, self_kill: bool) -> Self {
        Self { seq: 0, acked: 0, next_at: now, lease_until: now + timing.self_kill_after, self_kill, ended: false }
    }

    /// When the node ends itself, unless a heartbeat is acknowledged before.
    pub fn ends_at(&self) -> Option<BootTime> {
        (self.self_kill && enabled(Guard::SelfKill)).then_some(self.lease_until)
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
