//! What a node and a store tell each other. Plain data: the store is the one side, [`super::Node`] the other.

use std::sync::Arc;

use crate::firing::{FiringKey, Held};
use crate::id::{JobId, RunId};
use crate::job::Job;
use crate::run::Ending;
use crate::time::Timestamp;

/// Which row carries a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// The job's own row.
    Job(JobId),
    /// A row of the active table.
    Active(FiringKey),
}

/// A run and the row that carries it, as one side last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunRef {
    /// Which row.
    pub row: RowKey,
    /// Which run.
    pub run: RunId,
    /// The version of the row when it was last seen; a write guarded on it either applies or matches nothing.
    pub version: u64,
}

/// A row that the session now holds as Prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Which row, with the version just written.
    pub at: RunRef,
    /// What is held.
    pub held: Held,
    /// The definition as it stood at the claim; what runs is what `start` confirms.
    pub job: Arc<Job>,
    /// Its generation.
    pub generation: u64,
}

/// What became of one start.
#[derive(Debug, Clone, PartialEq)]
pub enum StartAnswer {
    /// Executing: spawn it.
    Started {
        /// Where it runs now (`allow` moves it to the active table), with the version just written.
        at: RunRef,
        /// What is held, with the start and the token.
        held: Held,
        /// As in [`crate::firing::JobState::replace_at`]; confirmed by a look ([`Seen`]) when that time has come.
        replace_at: Option<Timestamp>,
    },
    /// It would start before its time by the database's clock: ask again then.
    Early {
        /// Not before this.
        start_at: Timestamp,
    },
    /// Still prepared for the run, but written to since: settle, which tells the new version.
    Moved,
    /// The database lost commits, and this firing may have started in them, or nobody has accepted that yet: give it back.
    Withheld,
    /// The row does not carry the run any more, or the firing went back to Idle: forget it.
    Gone,
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishRequest {
    /// Which run.
    pub at: RunRef,
    /// How it ended.
    pub ending: Ending,
}

/// What became of one finish. In each case the run's record is kept and the node may forget the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishAnswer {
    /// Recorded; the row may be claimed again at this time, if it still exists.
    Recorded {
        /// As [`crate::firing::JobState::claim_at`].
        claim_at: Option<Timestamp>,
    },
    /// The row does not carry the run: it was recorded before.
    AlreadyGone,
}

/// What a settling write found (DESIGN section 4).
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// Still Prepared by me, at this version.
    Prepared(Claimed),
    /// Executing by me.
    Executing {
        /// Where, with the version just written.
        at: RunRef,
        /// What is held.
        held: Held,
        /// As in [`StartAnswer::Started`].
        replace_at: Option<Timestamp>,
        /// Paused, deleted or cancelled meanwhile: a start that is settled late must not happen.
        withdrawn: bool,
    },
    /// Idle, gone, or carrying another run.
    Gone,
}

/// What a lock-free look found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peek {
    /// The earliest `claim_at` in the partitions asked for, whatever the horizon.
    pub earliest_claim_at: Option<Timestamp>,
    /// Runs of mine that somebody wants to end.
    pub cancels: Vec<RunId>,
}
