//! The values that a node and a store exchange: plain data.

use std::sync::Arc;

use crate::firing::{FiringKey, Held};
use crate::id::{JobId, RunId, SessionId};
use crate::job::Job;
use crate::run::{Ending, Output};
use crate::time::Timestamp;

/// Which row carries a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// The job's own row.
    Job(JobId),
    /// A row of the table `concurrent_run`.
    Concurrent(FiringKey),
}

impl RowKey {
    /// The job of the row.
    pub const fn job(&self) -> JobId {
        match self {
            RowKey::Job(job) => *job,
            RowKey::Concurrent(key) => key.job,
        }
    }
}

/// A run and the row that carries it, as one side last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunRef {
    /// Which row.
    pub row: RowKey,
    /// Which run.
    pub run: RunId,
    /// The version of the row when it was last seen; a write guarded on it either applies or matches nothing.
    pub version: u64,
}

/// A row that the session now holds: Prepared, or, where it was due and there was a place, started in the same commit.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Claimed {
    /// Which row (`allow` moves what starts to the table `concurrent_run`), with the version just written.
    pub at: RunRef,
    /// The held firing. If it has started, with the start and the token: spawn it.
    pub held: Held,
    /// As in [`StartAnswer::Started`].
    pub replace_at: Option<Timestamp>,
    /// The definition as it stood at the claim; what runs is what `start` confirms.
    pub job: Arc<Job>,
    /// Its generation.
    pub generation: u64,
}

/// The answer to one start.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum StartAnswer {
    /// Executing: spawn it.
    Started {
        /// Where it runs now (`allow` moves it to the table `concurrent_run`), with the version just written.
        at: RunRef,
        /// The held firing, with the start and the token.
        held: Held,
        /// As in [`crate::firing::JobState::replace_at`]; confirmed by a look ([`SettleAnswer`]) when that time has come.
        replace_at: Option<Timestamp>,
    },
    /// It would start before its time by the database's clock: ask again then.
    Early {
        /// Not before this.
        start_at: Timestamp,
    },
    /// The row was written to since, and is still prepared for the run at another version. If only a part of a batch has started, it may
    /// have started too. Settle tells.
    Moved,
    /// The database lost commits, and this firing may have started in them, or nobody has accepted that yet: give it back.
    Suspended,
    /// The row does not carry the run any more, or the firing went back to Idle: forget it.
    Gone,
}

/// A run that ended, as a finish records it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finished {
    /// Which run.
    pub at: RunRef,
    /// How it ended.
    pub ending: Ending,
    /// The first and last part of stdout and stderr.
    pub output: Arc<Output>,
    /// The firing that the same commit may claim of the same row.
    pub next: Option<Next>,
}

/// The firing of a job that comes up when a run of it has ended: finish, then claim, two transitions in one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Next {
    /// The id it is to have. A finish that is asked again carries the same one, so that what an attempt of unknown outcome
    /// has claimed is found.
    pub run: RunId,
    /// Only what comes up until then.
    pub until: Timestamp,
    /// Whether it may start in the same commit, where it is due already: three transitions in one.
    pub has_place: bool,
}

/// The answer to one finish. In each case the run's record is kept and the node may forget the run.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum FinishAnswer {
    /// Recorded; the row may be claimed again at this time, if it still exists.
    Recorded {
        /// As [`crate::firing::JobState::claim_at`].
        claim_at: Option<Timestamp>,
    },
    /// Recorded, now or by an earlier attempt, and the row is held again for [`Finished::next`].
    RecordedAndClaimed(Box<Claimed>),
    /// The row does not carry the run: it was recorded before.
    AlreadyGone,
}

/// The finding of a settling write.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum SettleAnswer {
    /// Still Prepared by me, at this version.
    Prepared(Claimed),
    /// Executing by me.
    Executing {
        /// Where, with the version just written.
        at: RunRef,
        /// The held firing.
        held: Held,
        /// As in [`StartAnswer::Started`].
        replace_at: Option<Timestamp>,
        /// Paused, deleted or cancelled meanwhile: a start that is settled late must not happen.
        withdrawn: bool,
    },
    /// Idle, gone, or carrying another run.
    Gone,
}

/// A run that a node knows and the database may have lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownRun {
    /// The row that carried it when it was last seen.
    pub at: RunRef,
    /// The firing as it was started, with the token.
    pub held: Held,
    /// How it ended, if its record was acknowledged; `None` while it lives or waits for its record.
    pub ended: Option<Ending>,
}

/// The answer to one run that was written back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WriteBackAnswer {
    /// A row says Executing for it.
    Executing {
        /// Which, with the version just written.
        at: RunRef,
        /// As in [`StartAnswer::Started`].
        replace_at: Option<Timestamp>,
    },
    /// It has ended, and its record is kept.
    Recorded,
    /// There is no row for it: its job is unknown, or another session runs the same firing.
    Nowhere,
}

/// How many rows of each partition of others a peek tells at the most. The rows that an owner is about to claim must not hide the one
/// that it ignores.
pub const UNCLAIMED_PER_PARTITION: usize = 8;

/// A row in a partition of another node that may be claimed, and is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unclaimed {
    /// Where.
    pub partition: u16,
    /// As [`crate::firing::JobState::claim_at`].
    pub claim_at: Timestamp,
    /// Which row.
    pub row: RowKey,
    /// Its version: the same one again means that nobody has touched it.
    pub version: u64,
    /// The executor.
    pub executor: String,
}

/// The findings of a lock-free peek.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Peek {
    /// The earliest `claim_at` in my partitions, if something comes up there until the time asked for that I can run.
    pub earliest_claim_at: Option<Timestamp>,
    /// The rows of all other partitions that fall due until then and that the node could run. Of each partition it has the first
    /// [`UNCLAIMED_PER_PARTITION`], in the order of (partition, `claim_at`, row).
    pub unclaimed: Vec<Unclaimed>,
    /// The sessions that claim, so that a node that joins or leaves is noticed before the next heartbeat.
    pub claimants: Vec<SessionId>,
    /// Runs of mine that somebody wants to end.
    pub cancels: Vec<RunId>,
    /// Runs of mine whose output somebody reads at another node. The machine passes over them: publishing is for the driver.
    pub wanted_outputs: Vec<WantedOutput>,
}

/// A run whose output is read at another node while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WantedOutput {
    /// Which run.
    pub run: RunId,
    /// How far the output that was published last goes, in bytes from its beginning; `None` before the first time.
    pub published: Option<u64>,
}
