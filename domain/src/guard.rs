//! The guards that keep what must always hold, each with a switch, so that it can be shown that none of them is idle.
//!
//! In a release build a guard always stands and its switch is compiled away. In a build with debug assertions one of them,
//! or two, can be removed for the life of the process; then the invariant that it keeps ([`Guard::keeps`]) must be found
//! broken. `tests/tests/guards.rs` shows that of every guard, by a story that holds while the guard stands.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::invariants::Invariant;

/// The list: what each one prevents, its name on command lines, the invariant it keeps and the place where it stands.
macro_rules! guards {
    ($($(#[$doc:meta])+ $guard:ident $name:literal keeps $invariant:ident in $place:literal;)+) => {
        /// A condition that keeps something from going wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Guard {
            $($(#[$doc])+ $guard,)+
        }

        impl Guard {
            /// All of them.
            pub const ALL: [Guard; [$($name),+].len()] = [$(Guard::$guard),+];

            /// Its name on command lines and in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Guard::$guard => $name,)+
                }
            }

            /// What breaks without it.
            pub const fn keeps(self) -> Invariant {
                match self {
                    $(Guard::$guard => Invariant::$invariant,)+
                }
            }

            /// The file in which it stands.
            pub const fn place(self) -> &'static str {
                match self {
                    $(Guard::$guard => $place,)+
                }
            }
        }
    };
}

guards! {
    // The rules of a row.

    /// What is held is not claimed by another.
    ClaimIdle "claim-idle" keeps S4 in "domain/src/firing/claim.rs";
    /// What is held has no time at which it may be claimed, in the row and in the index that claims read.
    HeldNotDue "held-not-due" keeps S4 in "domain/src/firing/state.rs";
    /// A finish or a reset matches only the run that it speaks of.
    RunId "run-id" keeps S3 in "domain/src/firing/mod.rs";
    /// A finish or a reset matches only what its sender's session holds: a manual run keeps its id from claim to claim.
    Owner "owner" keeps S3 in "domain/src/firing/mod.rs";
    /// A sweep takes only what the ended session holds.
    SweepOwn "sweep-own" keeps S3 in "domain/src/firing/recover.rs";
    /// Nothing starts before its time, however far ahead the clock of its node is.
    NotEarly "not-early" keeps S5 in "domain/src/firing/start.rs";
    /// What has become a misfire since it was claimed goes back to its policy.
    NotLate "not-late" keeps S5 in "domain/src/firing/start.rs";
    /// A pause takes back what is prepared.
    PauseReleases "pause-releases" keeps S5 in "domain/src/firing/pause.rs";
    /// Of a paused job nothing but a manual run is claimed.
    ClaimUnpaused "claim-unpaused" keeps S5 in "domain/src/firing/claim.rs";
    /// A run beside its row that was withdrawn while it ran gets no further attempt.
    WithdrawnEnds "withdrawn-ends" keeps S5 in "domain/src/firing/concurrent.rs";
    /// A pause or a deletion is told to the rows beside the job's own.
    PropagateToConcurrent "propagate-to-concurrent" keeps S5 in "domain/src/store/unit_of_work.rs";
    /// The row of a job that was deleted while it ran goes with the run's end.
    FinishDeleted "finish-deleted" keeps S5 in "domain/src/firing/finish.rs";
    /// The row of a job that was deleted while its start was in doubt goes with the hand-back.
    ResetDeleted "reset-deleted" keeps S5 in "domain/src/firing/recover.rs";
    /// Nothing starts beside a run that it may not overlap.
    NoForbiddenOverlap "no-forbidden-overlap" keeps S1 in "domain/src/store/unit_of_work.rs";
    /// The cursor never goes back, although a manual run that was lost is looked at from before it.
    CursorForward "cursor-forward" keeps S7 in "domain/src/firing/state.rs";
    /// The first claim after a loss of commits lifts the version above every token that was given out in them.
    VersionLift "version-lift" keeps S7 in "domain/src/firing/mod.rs";
    /// The token of a run beside its row is drawn from the version of the job's row.
    TokenOfJob "token-of-job" keeps S7 in "domain/src/firing/concurrent.rs";
    /// A firing that may have started in lost commits is recorded, and not claimed again.
    LostCommitsClaim "lost-commits-claim" keeps S2 in "domain/src/firing/lost_commits.rs";
    /// Nor is it started, if it was claimed before the loss was noticed.
    LostCommitsStart "lost-commits-start" keeps S2 in "domain/src/store/runs/start.rs";

    // What a node does.

    /// The ids of a claim of unknown outcome are kept, so that a row that turns up is adopted.
    PendingKept "pending-kept" keeps L1 in "domain/src/node/claiming.rs";
    /// Recovery leaves alone what a claim on its way has taken.
    ClaimInFlight "claim-in-flight" keeps S3 in "domain/src/node/recovery.rs";
    /// What the store says is mine and no set of mine holds is given back.
    Recovery "recovery" keeps L1 in "domain/src/node/recovery.rs";
    /// A start of unknown outcome is settled, neither forgotten nor taken for failed.
    SettleUnknown "settle-unknown" keeps L1 in "domain/src/node/starting.rs";
    /// A finish is asked again until it is acknowledged.
    FinishRepeats "finish-repeats" keeps S2 in "domain/src/node/finishing.rs";
    /// A reset is asked again until it is acknowledged.
    ResetRepeats "reset-repeats" keeps L1 in "domain/src/node/recovery.rs";
    /// The lease counts from before the heartbeat was sent.
    LeaseFromSending "lease-from-sending" keeps S8 in "domain/src/node/lifecycle.rs";
    /// The first lease counts from before the registration was sent.
    LeaseFromRegistering "lease-from-registering" keeps S8 in "domain/src/node/mod.rs";
    /// A node ends itself when its lease is over.
    SelfKill "self-kill" keeps S8 in "domain/src/node/lifecycle.rs";
    /// A sequence that changes is a sign of life: its silence begins anew.
    HeartbeatRestartsExpiry "heartbeat-restarts-expiry" keeps S8 in "domain/src/lease.rs";
    /// While a loss of commits is not accepted nobody's silence counts, as sequences may have come back.
    LossRestartsExpiry "loss-restarts-expiry" keeps S8 in "domain/src/node/withholding.rs";
    /// Timings by which others would act before the children are dead are refused.
    FencingInequality "fencing-inequality" keeps S8 in "domain/src/lease.rs";
    /// A node that drains asks the store what it holds before it leaves.
    DrainListsHeld "drain-lists-held" keeps L1 in "domain/src/node/lifecycle.rs";

    // What a store does in one transaction.

    /// A start matches only the version of the row that its sender was told.
    StartVersion "start-version" keeps L1 in "domain/src/store/runs/start.rs";
    /// So does a reset.
    ResetVersion "reset-version" keeps S3 in "domain/src/store/runs/settle.rs";
    /// Settling writes before it looks, so that a stray start matches nothing.
    SettleDisarms "settle-disarms" keeps L1 in "domain/src/store/runs/settle.rs";
    /// Settling tells of a pause or a deletion that came meanwhile.
    SettleRechecks "settle-rechecks" keeps S5 in "domain/src/store/runs/settle.rs";
    /// A session that is over claims nothing.
    ClaimAlive "claim-alive" keeps L1 in "domain/src/store/runs/claim.rs";
    /// A session that is over starts nothing.
    StartAlive "start-alive" keeps S8 in "domain/src/store/runs/start.rs";
    /// Only a session that was ended is swept.
    SweepEnded "sweep-ended" keeps S8 in "domain/src/store/sessions.rs";
    /// Nobody is ended by a sequence that was seen before commits were lost.
    ExpireSeenSinceLoss "expire-seen-since-loss" keeps S8 in "domain/src/store/sessions.rs";
    /// The tombstone stays until the last row is swept.
    TombstoneStays "tombstone-stays" keeps L1 in "domain/src/store/sessions.rs";
    /// A session that closes while it holds something leaves a tombstone.
    CloseLeavesTombstone "close-leaves-tombstone" keeps L1 in "domain/src/store/sessions.rs";
    /// A claim notices that commits were lost.
    ClaimDetectsLoss "claim-detects-loss" keeps S2 in "domain/src/store/runs/claim.rs";
    /// A start notices that commits were lost.
    StartDetectsLoss "start-detects-loss" keeps S2 in "domain/src/store/runs/start.rs";
    /// A heartbeat notices that commits were lost.
    HeartbeatDetectsLoss "heartbeat-detects-loss" keeps S2 in "domain/src/store/sessions.rs";
    /// Nothing is claimed while a loss is not accepted.
    SuspendClaims "suspend-claims" keeps S2 in "domain/src/store/runs/claim.rs";
    /// Nothing is started while a loss is not accepted.
    SuspendStarts "suspend-starts" keeps S2 in "domain/src/store/runs/start.rs";
    /// A session that is over leaves its last sequence, so that a fenced node does not take itself for forgotten.
    EndedSequenceKept "ended-sequence-kept" keeps L1 in "domain/src/store/losses.rs";
    /// The versions of a new job begin above those of deleted ones.
    HighestVersion "highest-version" keeps S7 in "domain/src/store/put.rs";
    /// A batch of records that is refused is halved until the one to blame stands alone.
    Bisect "bisect" keeps L2 in "domain/src/store/runs/split.rs";

    // What the statements of a database match.

    /// `state <> 'ended'`: a heartbeat does not bring an ended session back.
    HeartbeatNotEnded "heartbeat-not-ended" keeps S3 in "adapters/store/src/*/tables.rs";
    /// `seq < ?`: a heartbeat that comes late takes nothing back.
    HeartbeatNewer "heartbeat-newer" keeps S7 in "adapters/store/src/*/tables.rs";
    /// `seq = ?`: a session is ended only if its heartbeat is still the one that was seen.
    EndSeen "end-seen" keeps S8 in "adapters/store/src/*/tables.rs";
    /// `version = ?` where a job's row is updated.
    UpdateVersion "update-version" keeps S5 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// What a start of known rows has not asked for is asked by its statement.
    OptimisticStanding "optimistic-standing" keeps S8 in "adapters/store/src/mysql/known.rs";
    /// `version = ?` where a row beside it is updated.
    UpdateConcurrentVersion "update-concurrent-version" keeps S5 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// An update must match every row that it names.
    UpdateMatches "update-matches" keeps S5 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// `version = ?` where a job's row is deleted.
    DeleteVersion "delete-version" keeps S3 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// `version = ?` where a row beside it is deleted.
    DeleteConcurrentVersion "delete-concurrent-version" keeps S3 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// A deletion must match every row that it names.
    DeleteMatches "delete-matches" keeps S5 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// A claim has the locks of its partitions before it reads.
    ClaimLocks "claim-locks" keeps L1 in "adapters/store/src/calls/node.rs";
    /// A sweep has the locks of all partitions before it reads.
    SweepLocks "sweep-locks" keeps L1 in "adapters/store/src/calls/node.rs";
    /// A lock row that is missing is an error, not a free pass.
    LockRowExists "lock-row-exists" keeps L1 in "adapters/store/src/mysql/transaction.rs";
    /// `ON DUPLICATE KEY`: a record that is there already is the same fact, and no error for ever.
    RecordTwice "record-twice" keeps L1 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// `ON DUPLICATE KEY`: so is an output.
    OutputTwice "output-twice" keeps L1 in "adapters/store/src/{sqlite,mysql}/change.rs";
    /// `written < ?`: what is shown of a run's output never goes back.
    LiveForward "live-forward" keeps S7 in "adapters/store/src/*/live.rs";

    // One server a file, and the keeper.

    /// One server at a time has a database file.
    FileLease "file-lease" keeps S8 in "adapters/store/src/sqlite/lease.rs";
    /// The keeper holds the lease on the file until its last child is dead.
    KeeperHolds "keeper-holds" keeps S8 in "adapters/keeper/src/start.rs";
    /// The keeper kills every child when the deadline passes.
    KeeperDeadline "keeper-deadline" keeps S8 in "adapters/keeper/src/runs.rs";
    /// The keeper kills every child when its node is gone.
    KeeperAbandons "keeper-abandons" keeps S8 in "adapters/keeper/src/runs.rs";
    /// The keeper forks nothing after the deadline.
    KeeperSpawn "keeper-spawn" keeps S8 in "adapters/keeper/src/runs.rs";
    /// A child looks at the deadline again right before it becomes the program.
    KeeperExec "keeper-exec" keeps S8 in "adapters/keeper/src/child.rs";
}

impl Guard {
    /// The guard of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.name() == name)
    }

    /// How it is counted among those that are removed; never 0.
    const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Which guards are removed: two numbers, each 0 if there is none.
static REMOVED: AtomicU16 = AtomicU16::new(0);

/// Whether a guard does its work.
#[inline]
pub fn enabled(guard: Guard) -> bool {
    !cfg!(debug_assertions) || !REMOVED.load(Ordering::Relaxed).to_le_bytes().contains(&guard.number())
}

/// Removes a guard, and puts back any other, for this process. `false` in a build without debug assertions, where none can
/// be removed.
pub fn remove(guard: Guard) -> bool {
    set_removed([guard.number(), 0])
}

/// As [`remove`], of two that stand for one another.
pub fn remove_both(guards: [Guard; 2]) -> bool {
    set_removed(guards.map(Guard::number))
}

fn set_removed(numbers: [u8; 2]) -> bool {
    if cfg!(debug_assertions) {
        REMOVED.store(u16::from_le_bytes(numbers), Ordering::Relaxed);
    }
    cfg!(debug_assertions)
}

/// The list as docs/proof.md shows it: Markdown, generated so that page and code cannot differ.
pub fn as_markdown() -> String {
    let mut text = String::from("| guard | keeps | in |\n|---|---|---|\n");
    for guard in Guard::ALL {
        let _ = writeln!(text, "| {} | {:?} | `{}` |", guard.name(), guard.keeps(), guard.place());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_has_a_name_of_its_own_and_stands() {
        for guard in Guard::ALL {
            assert_eq!(Guard::from_name(guard.name()), Some(guard));
            assert!(enabled(guard));
        }
        assert_eq!(Guard::from_name("no-such-guard"), None);
    }
}
