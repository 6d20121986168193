//! The guards: the conditions that keep the invariants. Each has a switch, so that a test can show that it is needed.
//!
//! A release build has no switches: every guard is enabled. In a build with debug assertions, one or two guards can be
//! removed for the life of the process. Then the invariant that the guard keeps ([`Guard::keeps`]) must break.
//! `tests/tests/guards.rs` shows this for every guard with a scenario, which passes while the guard is enabled.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU16, Ordering};

/// An invariant: a statement that must always hold. The predicates are in [`invariants`](crate::invariants).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// A job has at most one live run, unless it allows overlap.
    S1,
    /// A firing starts at most once, unless `retry` or `on_lost = rerun` asks for more.
    S2,
    /// A live child of a live session has its row Executing, with its run id.
    S3,
    /// An acknowledged claim stays until its holder, a fence or an answered call changes it.
    S4,
    /// No run starts after a pause or a deletion was answered, before its time, or later than its policy allows.
    S5,
    /// History has one row for each run, and every row makes sense.
    S6,
    /// Versions, cursors, tokens and other counters never decrease.
    S7,
    /// A node past its lease starts nothing and has no living children.
    S8,
    /// A route is told of nothing that did not happen, of each fact once, and of an end only after its beginning.
    S9,
    /// After faults have ended, every row returns to Idle.
    L1,
    /// After faults have ended, no run is stuck in a node's memory.
    L2,
    /// After faults have ended, each fact that a route asks for has reached every receiver of the route.
    L3,
}

/// The list of guards: each with its condition, its name on command lines, the invariant that it keeps, and its file.
macro_rules! guards {
    ($($(#[$doc:meta])+ $guard:ident $name:literal keeps $invariant:ident in $place:literal;)+) => {
        /// A condition that keeps an invariant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Guard {
            $($(#[$doc])+ $guard,)+
        }

        impl Guard {
            /// All guards.
            pub const ALL: [Guard; [$($name),+].len()] = [$(Guard::$guard),+];

            /// The name on command lines and in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Guard::$guard => $name,)+
                }
            }

            /// The invariant that breaks without it.
            pub const fn keeps(self) -> Invariant {
                match self {
                    $(Guard::$guard => Invariant::$invariant,)+
                }
            }

            /// The file that contains it.
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

    /// A claim takes only Idle rows.
    ClaimIdle "claim-idle" keeps S4 in "domain/src/firing/claim.rs";
    /// A held row has no claim time, neither in the row nor in the index that claims read.
    HeldNotDue "held-not-due" keeps S4 in "domain/src/firing/state.rs";
    /// A finish or a reset matches only the run that it names.
    RunId "run-id" keeps S3 in "domain/src/firing/mod.rs";
    /// A finish or a reset matches only runs of its sender's session. A manual run keeps its id from claim to claim.
    Owner "owner" keeps S3 in "domain/src/firing/mod.rs";
    /// A sweep takes only rows that the ended session holds.
    SweepOwn "sweep-own" keeps S3 in "domain/src/firing/recover.rs";
    /// No run starts before its time, however far ahead the clock of its node is.
    NotEarly "not-early" keeps S5 in "domain/src/firing/start.rs";
    /// A firing that became a misfire after its claim goes back to the misfire policy.
    NotLate "not-late" keeps S5 in "domain/src/firing/start.rs";
    /// A pause releases the prepared firing.
    PauseReleases "pause-releases" keeps S5 in "domain/src/firing/pause.rs";
    /// A claim takes only manual runs of a paused job.
    ClaimUnpaused "claim-unpaused" keeps S5 in "domain/src/firing/claim.rs";
    /// A concurrent run that was withdrawn while it ran gets no retry.
    WithdrawnEnds "withdrawn-ends" keeps S5 in "domain/src/firing/concurrent.rs";
    /// A pause or a deletion reaches the concurrent runs of the job too.
    PropagateToConcurrent "propagate-to-concurrent" keeps S5 in "domain/src/store/unit_of_work.rs";
    /// The row of a job that was deleted during a run goes with the run's end.
    FinishDeleted "finish-deleted" keeps S5 in "domain/src/firing/finish.rs";
    /// The row of a job that was deleted during a start of unknown outcome goes with the reset.
    ResetDeleted "reset-deleted" keeps S5 in "domain/src/firing/recover.rs";
    /// A firing is deferred while a run lives that it may not overlap.
    NoForbiddenOverlap "no-forbidden-overlap" keeps S1 in "domain/src/store/unit_of_work.rs";
    /// The cursor never decreases, although the end of a lost manual run looks at due times before it.
    CursorForward "cursor-forward" keeps S7 in "domain/src/firing/state.rs";
    /// The first claim after lost commits lifts the version above every fencing token given out in them.
    VersionLift "version-lift" keeps S7 in "domain/src/firing/mod.rs";
    /// The fencing token of a concurrent run comes from the version of the job's row.
    TokenOfJob "token-of-job" keeps S7 in "domain/src/firing/concurrent.rs";
    /// A firing that may have started in lost commits is recorded as lost and not claimed again.
    LostCommitsClaim "lost-commits-claim" keeps S2 in "domain/src/firing/lost_commits.rs";
    /// A firing that was due in lost commits is not claimed if a run of it was written back or has a record.
    LostCommitsKnown "lost-commits-known" keeps S2 in "domain/src/store/runs/claim.rs";
    /// A firing that may have started in lost commits is not started, if it was claimed before their detection.
    LostCommitsStart "lost-commits-start" keeps S2 in "domain/src/store/runs/start.rs";

    // The decisions of a node.

    /// A node keeps the run ids of a claim of unknown outcome, so that it adopts the rows if the claim was applied.
    PendingKept "pending-kept" keeps L1 in "domain/src/node/claiming.rs";
    /// Recovery ignores rows that a claim in flight may have taken.
    ClaimInFlight "claim-in-flight" keeps S3 in "domain/src/node/ledger/recovery.rs";
    /// Recovery releases every row that the store lists for this session and the node does not know.
    Recovery "recovery" keeps L1 in "domain/src/node/ledger/recovery.rs";
    /// A start of unknown outcome is settled. It is neither forgotten nor counted as failed.
    SettleUnknown "settle-unknown" keeps L1 in "domain/src/node/starting.rs";
    /// A finish is repeated until it is acknowledged.
    FinishRepeats "finish-repeats" keeps S2 in "domain/src/node/finishing.rs";
    /// A reset is repeated until it is acknowledged.
    ResetRepeats "reset-repeats" keeps L1 in "domain/src/node/ledger/recovery.rs";
    /// The lease counts from before the heartbeat was sent.
    LeaseFromSending "lease-from-sending" keeps S8 in "domain/src/node/lifecycle.rs";
    /// The first lease counts from before the registration was sent.
    LeaseFromRegistering "lease-from-registering" keeps S8 in "domain/src/node/mod.rs";
    /// A node ends itself when its lease has run out.
    SelfKill "self-kill" keeps S8 in "domain/src/node/lifecycle.rs";
    /// A heartbeat sequence that changes restarts the expiry of its session.
    HeartbeatRestartsExpiry "heartbeat-restarts-expiry" keeps S8 in "domain/src/lease/mod.rs";
    /// An open loss window restarts every expiry, because old sequences may have come back.
    LossRestartsExpiry "loss-restarts-expiry" keeps S8 in "domain/src/node/suspension.rs";
    /// After lost commits a node writes the runs that it knows back before anybody may accept.
    WriteBack "write-back" keeps S3 in "domain/src/node/ledger/write_back.rs";
    /// A timing is refused if other nodes could act before the children of a node are dead.
    FencingInequality "fencing-inequality" keeps S8 in "domain/src/lease/mod.rs";
    /// A draining node lists the rows that it holds once more before it leaves.
    DrainListsHeld "drain-lists-held" keeps L1 in "domain/src/node/lifecycle.rs";

    // The transactions of a store.

    /// A start matches only the row version that its sender was told.
    StartVersion "start-version" keeps L1 in "domain/src/store/runs/start.rs";
    /// A reset matches only the row version that its sender was told.
    ResetVersion "reset-version" keeps S3 in "domain/src/store/runs/settle.rs";
    /// Settling writes the row before it reads it, so that a stray start matches nothing.
    SettleDisarms "settle-disarms" keeps L1 in "domain/src/store/runs/settle.rs";
    /// Settling reports a pause or a deletion that came since the claim.
    SettleRechecks "settle-rechecks" keeps S5 in "domain/src/store/runs/settle.rs";
    /// An ended session claims nothing.
    ClaimAlive "claim-alive" keeps L1 in "domain/src/store/runs/claim.rs";
    /// An ended session starts nothing.
    StartAlive "start-alive" keeps S8 in "domain/src/store/runs/start.rs";
    /// Only ended sessions are swept.
    SweepEnded "sweep-ended" keeps S8 in "domain/src/store/sessions.rs";
    /// A session is ended only by a heartbeat sequence that was read after lost commits were detected.
    ExpireSeenSinceLoss "expire-seen-since-loss" keeps S8 in "domain/src/store/sessions.rs";
    /// The tombstone of a session stays until its last row is swept.
    TombstoneStays "tombstone-stays" keeps L1 in "domain/src/store/sessions.rs";
    /// A session that closes and still holds rows leaves a tombstone.
    CloseLeavesTombstone "close-leaves-tombstone" keeps L1 in "domain/src/store/sessions.rs";
    /// A claim detects lost commits.
    ClaimDetectsLoss "claim-detects-loss" keeps S2 in "domain/src/store/runs/claim.rs";
    /// A start detects lost commits.
    StartDetectsLoss "start-detects-loss" keeps S2 in "domain/src/store/runs/start.rs";
    /// A heartbeat detects lost commits.
    HeartbeatDetectsLoss "heartbeat-detects-loss" keeps S2 in "domain/src/store/sessions.rs";
    /// No claim happens while a loss window is open.
    SuspendClaims "suspend-claims" keeps S2 in "domain/src/store/runs/claim.rs";
    /// A loss is not accepted before all live sessions have written back, and those that were forgotten are dead.
    AcceptAfterWriteBack "accept-after-write-back" keeps S3 in "domain/src/store/losses.rs";
    /// No start happens while a loss window is open.
    SuspendStarts "suspend-starts" keeps S2 in "domain/src/store/runs/start.rs";
    /// An ended session leaves its last sequence, so that a fenced node does not report lost commits.
    EndedSequenceKept "ended-sequence-kept" keeps L1 in "domain/src/store/losses.rs";
    /// The version of a new job begins above those of deleted jobs.
    HighestVersion "highest-version" keeps S7 in "domain/src/store/put.rs";
    /// A refused batch of records is halved until the record that causes the error is alone.
    Bisect "bisect" keeps L2 in "domain/src/store/runs/split.rs";

    // The statements of a database.

    /// `state <> 'ended'`: a heartbeat does not revive an ended session.
    HeartbeatNotEnded "heartbeat-not-ended" keeps S3 in "adapters/store/src/mysql/write/sessions.rs";
    /// `seq < ?`: a late heartbeat does not take the sequence back.
    HeartbeatNewer "heartbeat-newer" keeps S7 in "adapters/store/src/mysql/write/sessions.rs";
    /// `seq = ?`: a session is ended only if its sequence is still the one that was read.
    EndSeen "end-seen" keeps S8 in "adapters/store/src/mysql/write/sessions.rs";
    /// `version = ?` in updates of a job's row.
    UpdateVersion "update-version" keeps S5 in "adapters/store/src/mysql/write/update.rs";
    /// The statement of an optimistic start checks the session's standing, which nothing has read before.
    OptimisticStanding "optimistic-standing" keeps S8 in "adapters/store/src/mysql/write/single_start.rs";
    /// `version = ?` in updates of a concurrent run's row.
    UpdateConcurrentVersion "update-concurrent-version" keeps S5 in "adapters/store/src/mysql/write/change.rs";
    /// An update must match every row that it names.
    UpdateMatches "update-matches" keeps S5 in "adapters/store/src/cluster/write.rs";
    /// `version = ?` in deletions of a job's row.
    DeleteVersion "delete-version" keeps S3 in "adapters/store/src/mysql/write/change.rs";
    /// `version = ?` in deletions of a concurrent run's row.
    DeleteConcurrentVersion "delete-concurrent-version" keeps S3 in "adapters/store/src/mysql/write/change.rs";
    /// A deletion must match every row that it names.
    DeleteMatches "delete-matches" keeps S5 in "adapters/store/src/cluster/write.rs";
    /// A claim locks its partitions before it reads.
    ClaimLocks "claim-locks" keeps L1 in "adapters/store/src/calls/node.rs";
    /// A sweep locks all partitions before it reads.
    SweepLocks "sweep-locks" keeps L1 in "adapters/store/src/calls/node.rs";
    /// A missing lock row is an error. It must not count as a lock.
    LockRowExists "lock-row-exists" keeps L1 in "adapters/store/src/cluster/transaction.rs";
    /// `ON DUPLICATE KEY`: a record that exists already is accepted, because a repeated finish writes it again.
    RecordTwice "record-twice" keeps L1 in "adapters/store/src/mysql/write/record.rs";
    /// `ON DUPLICATE KEY`: an output that exists already is accepted too.
    OutputTwice "output-twice" keeps L1 in "adapters/store/src/mysql/write/change.rs";
    /// `written < ?`: an older state of the live output never replaces a newer one.
    LiveForward "live-forward" keeps S7 in "adapters/store/src/mysql/write/live_output.rs";

    // Being told.

    /// A watch step locks the cursor before it reads: of two nodes that step at once, one waits for the other.
    AlertCursorLocks "alert-cursor-locks" keeps S9 in "adapters/store/src/alerts/routes.rs";
    /// The numbers of a journal that are not visible yet are asked for again.
    JournalGaps "journal-gaps" keeps L3 in "adapters/store/src/feed/tail.rs";
    /// A delivery whose sender died is sent by another node.
    DeliveryReclaimed "delivery-reclaimed" keeps L3 in "domain/src/alert/delivery.rs";

    // The lease on a database file, and the keeper.

    /// Only one server at a time opens a database file.
    FileLease "file-lease" keeps S8 in "adapters/store/src/sqlite/client/lease.rs";
    /// The keeper holds the lease on the file until its last child is dead.
    KeeperHolds "keeper-holds" keeps S8 in "adapters/keeper/src/process/startup.rs";
    /// The keeper kills every child when the deadline passes.
    KeeperDeadline "keeper-deadline" keeps S8 in "adapters/keeper/src/process/run_supervisor.rs";
    /// The keeper kills every child when its node is gone.
    KeeperAbandons "keeper-abandons" keeps S8 in "adapters/keeper/src/process/run_supervisor.rs";
    /// The keeper forks nothing after the deadline.
    KeeperSpawn "keeper-spawn" keeps S8 in "adapters/keeper/src/process/run_supervisor.rs";
    /// A child checks the deadline again right before it becomes the program.
    KeeperExec "keeper-exec" keeps S8 in "adapters/keeper/src/process/launch/child.rs";
}

impl Guard {
    /// The guard with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.name() == name)
    }

    /// Its number in [`REMOVED`]; never 0.
    const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// The removed guards: two numbers in one word, each 0 if there is none.
static REMOVED: AtomicU16 = AtomicU16::new(0);

/// Whether a guard is enabled. Code asks this right where it checks the guard's condition.
#[inline]
pub fn enabled(guard: Guard) -> bool {
    !cfg!(debug_assertions) || !REMOVED.load(Ordering::Relaxed).to_le_bytes().contains(&guard.number())
}

/// Removes one guard for this process and enables all others. `false` in a build without debug assertions, where no
/// guard can be removed.
pub fn remove(guard: Guard) -> bool {
    set_removed([guard.number(), 0])
}

/// Removes two guards, each of which keeps the invariant without the other. Otherwise as [`remove`].
pub fn remove_both(guards: [Guard; 2]) -> bool {
    set_removed(guards.map(Guard::number))
}

fn set_removed(numbers: [u8; 2]) -> bool {
    if cfg!(debug_assertions) {
        REMOVED.store(u16::from_le_bytes(numbers), Ordering::Relaxed);
    }
    cfg!(debug_assertions)
}

/// The list as Markdown. docs/proof.md shows it, and a test compares the two, so that page and code cannot differ.
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
    fn every_guard_has_a_unique_name_and_is_enabled() {
        for guard in Guard::ALL {
            assert_eq!(Guard::from_name(guard.name()), Some(guard));
            assert!(enabled(guard));
        }
        assert_eq!(Guard::from_name("no-such-guard"), None);
    }
}
