//! The exception matrix: the reaction of a node to each answer of its store, for each run that the answer concerns.
//!
//! The database and the memory must agree. Any statement may have been applied although the client saw an error, and may even be
//! applied *later*. So an unknown outcome is an answer of its own and is never taken for a failure. The matrix is the
//! transition function of the node: a run's stage and the answer go in, the next stage and the effects come out. Nothing
//! else decides what becomes of a run. There is no catch-all arm: a new answer does not compile before it has a reaction.

use std::fmt::Write as _;

/// An answer for one run, by the call that the run was waiting for.
///
/// `RolledBack` means not applied, and the same may work later. `Refused` means not applied, and the same never works.
/// `Unknown` means perhaps applied, or still to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Claim, Idle -> Prepared: the row is Prepared under this id.
    ClaimPrepared,
    /// Claim: the row is Executing, as the same commit started it.
    ClaimStarted,
    /// Claim: the row is held, and the node drains or is suspended.
    ClaimClosed,
    /// Claim: the row is held under the id of a run that lives here. Only the id of a manual run comes twice.
    ClaimLivesHere,
    /// Claim: acknowledged, and this id was not used.
    ClaimUnused,
    /// Claim failed.
    ClaimRolledBack,
    /// Claim failed.
    ClaimRefused,
    /// Claim failed.
    ClaimUnknown,
    /// Start, Prepared -> Executing: acknowledged.
    StartStarted,
    /// Start: acknowledged, and there is no keeper left to run it.
    StartUnrunnable,
    /// Start: too early by the database's clock.
    StartEarly,
    /// Start: the row is at another version, or started in part of a statement.
    StartMoved,
    /// Start: a loss of commits is not accepted, or the firing may have started in lost commits.
    StartSuspended,
    /// Start: the row does not carry the run any more.
    StartGone,
    /// Start failed.
    StartRolledBack,
    /// Start failed.
    StartRefused,
    /// Start failed.
    StartUnknown,
    /// Finish, Executing -> Idle: recorded.
    FinishRecorded,
    /// Finish: recorded, and the job's next firing is claimed under the successor's id.
    FinishClaimed,
    /// Finish: it was recorded before.
    FinishGone,
    /// Finish failed.
    FinishRolledBack,
    /// Finish failed.
    FinishRefused,
    /// Finish failed.
    FinishUnknown,
    /// Release, Prepared or Executing -> Idle of a run that was never spawned: acknowledged.
    ReleaseDone,
    /// Release failed.
    ReleaseRolledBack,
    /// Release failed.
    ReleaseRefused,
    /// Release failed.
    ReleaseUnknown,
    /// Settle, of an unknown outcome: the row is Prepared under this id.
    SettlePrepared,
    /// Settle: the same, and the node drains or is suspended.
    SettleClosed,
    /// Settle: the row is Executing under this id.
    SettleExecuting,
    /// Settle: the same, but the job was paused, deleted or cancelled, or the node is suspended.
    SettleWithdrawn,
    /// Settle: the same, but there is no keeper, or recovery found the row and the definition is not known.
    SettleUnrunnable,
    /// Settle: Idle, gone, or another run's.
    SettleGone,
    /// Settle failed.
    SettleRolledBack,
    /// Settle failed.
    SettleRefused,
    /// Settle failed.
    SettleUnknown,
    /// Recheck, a settling write to the row of a run that executes here: the row is Executing.
    RecheckExecuting,
    /// Recheck: the row does not say Executing under this id.
    RecheckGone,
    /// Recheck failed.
    RecheckFailed,
    /// Write back, while a loss of commits is not accepted: a row is Executing for the run.
    WritebackExecuting,
    /// Write back: no row can hold the run, as its job is unknown or another session runs the same firing.
    WritebackNowhere,
    /// Write back failed.
    WritebackRolledBack,
    /// Write back failed.
    WritebackRefused,
    /// Write back failed.
    WritebackUnknown,
}

/// The next stage of the run, and the effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reaction {
    /// *Prepared*; it starts at its time. After a failed call a backoff comes first, here as everywhere.
    Wait,
    /// *Prepared*; it starts at the time that the answer names.
    WaitUntil,
    /// *Executing*, and spawned: the only way to a child.
    Spawn,
    /// *Outcome unknown*; a settling write follows.
    Settle,
    /// *Releasing*; the row goes back unstarted.
    Release,
    /// *Releasing*, and a heartbeat at once, whose answer tells the reason.
    ReleaseAndBeat,
    /// *Ended*; it is recorded again.
    RecordAgain,
    /// *Pending*: recovery settles the row if it appears. Recovery follows at once.
    KeepPending,
    /// Forgotten.
    Forget,
    /// Forgotten, and a claim follows: the job may be due again.
    ForgetAndClaim,
    /// Forgotten, and its record is kept. A claim follows where the job is due again soon; a successor is taken in as a claim
    /// is.
    Recorded,
    /// *Executing*; the row's version and the time of a replacement are noted.
    Refresh,
    /// *Executing*, as it was.
    KeepRunning,
    /// *Executing*; its row is rechecked.
    Recheck,
    /// As it was; it is written back again.
    WriteAgain,
}

impl Event {
    /// Every cell, in the order of the page.
    pub const ALL: [Event; 44] = [
        Event::ClaimPrepared,
        Event::ClaimStarted,
        Event::ClaimClosed,
        Event::ClaimLivesHere,
        Event::ClaimUnused,
        Event::ClaimRolledBack,
        Event::ClaimRefused,
        Event::ClaimUnknown,
        Event::StartStarted,
        Event::StartUnrunnable,
        Event::StartEarly,
        Event::StartMoved,
        Event::StartSuspended,
        Event::StartGone,
        Event::StartRolledBack,
        Event::StartRefused,
        Event::StartUnknown,
        Event::FinishRecorded,
        Event::FinishClaimed,
        Event::FinishGone,
        Event::FinishRolledBack,
        Event::FinishRefused,
        Event::FinishUnknown,
        Event::ReleaseDone,
        Event::ReleaseRolledBack,
        Event::ReleaseRefused,
        Event::ReleaseUnknown,
        Event::SettlePrepared,
        Event::SettleClosed,
        Event::SettleExecuting,
        Event::SettleWithdrawn,
        Event::SettleUnrunnable,
        Event::SettleGone,
        Event::SettleRolledBack,
        Event::SettleRefused,
        Event::SettleUnknown,
        Event::RecheckExecuting,
        Event::RecheckGone,
        Event::RecheckFailed,
        Event::WritebackExecuting,
        Event::WritebackNowhere,
        Event::WritebackRolledBack,
        Event::WritebackRefused,
        Event::WritebackUnknown,
    ];
}

impl Reaction {
    /// Every reaction.
    pub const ALL: [Reaction; 15] = [
        Reaction::Wait,
        Reaction::WaitUntil,
        Reaction::Spawn,
        Reaction::Settle,
        Reaction::Release,
        Reaction::ReleaseAndBeat,
        Reaction::RecordAgain,
        Reaction::KeepPending,
        Reaction::Forget,
        Reaction::ForgetAndClaim,
        Reaction::Recorded,
        Reaction::Refresh,
        Reaction::KeepRunning,
        Reaction::Recheck,
        Reaction::WriteAgain,
    ];
}

/// The matrix.
pub const fn react(event: Event) -> Reaction {
    match event {
        Event::ClaimPrepared => Reaction::Wait,
        Event::ClaimStarted => Reaction::Spawn,
        Event::ClaimClosed => Reaction::Release,
        Event::ClaimLivesHere => Reaction::KeepRunning,
        Event::ClaimUnused => Reaction::Forget,
        Event::ClaimRolledBack | Event::ClaimRefused => Reaction::Forget,
        Event::ClaimUnknown => Reaction::KeepPending,

        Event::StartStarted => Reaction::Spawn,
        Event::StartUnrunnable => Reaction::Release,
        Event::StartEarly => Reaction::WaitUntil,
        Event::StartMoved => Reaction::Settle,
        Event::StartSuspended => Reaction::ReleaseAndBeat,
        Event::StartGone => Reaction::ForgetAndClaim,
        Event::StartRolledBack => Reaction::Wait,
        Event::StartRefused => Reaction::Release,
        Event::StartUnknown => Reaction::Settle,

        Event::FinishRecorded => Reaction::Recorded,
        Event::FinishClaimed => Reaction::Recorded,
        Event::FinishGone => Reaction::Recorded,
        // A finish is never given up: the run id makes a second record impossible.
        Event::FinishRolledBack | Event::FinishRefused | Event::FinishUnknown => Reaction::RecordAgain,

        Event::ReleaseDone => Reaction::ForgetAndClaim,
        Event::ReleaseRolledBack | Event::ReleaseRefused | Event::ReleaseUnknown => Reaction::Release,

        Event::SettlePrepared => Reaction::Wait,
        Event::SettleClosed => Reaction::Release,
        Event::SettleExecuting => Reaction::Spawn,
        Event::SettleWithdrawn | Event::SettleUnrunnable => Reaction::Release,
        Event::SettleGone => Reaction::Forget,
        // Only an acknowledged commit is believed.
        Event::SettleRolledBack | Event::SettleRefused | Event::SettleUnknown => Reaction::Settle,

        Event::RecheckExecuting => Reaction::Refresh,
        // The heartbeat tells whether the session was ended.
        Event::RecheckGone => Reaction::KeepRunning,
        Event::RecheckFailed => Reaction::Recheck,

        Event::WritebackExecuting => Reaction::Refresh,
        Event::WritebackNowhere => Reaction::KeepRunning,
        Event::WritebackRolledBack | Event::WritebackRefused | Event::WritebackUnknown => Reaction::WriteAgain,
    }
}

/// The reaction of the running node: the matrix, unless a test has changed a cell.
pub(crate) fn reaction_to(event: Event) -> Reaction {
    #[cfg(debug_assertions)]
    if let Some(reaction) = changed::reaction(event) {
        return reaction;
    }
    react(event)
}

/// Changing a cell, so that a test can show that the node's behaviour depends on it. Only in builds with debug assertions.
#[cfg(debug_assertions)]
mod changed {
    use std::cell::Cell;

    use super::{Event, Reaction};

    thread_local! {
        static CELL: Cell<Option<(Event, Reaction)>> = const { Cell::new(None) };
    }

    pub(super) fn reaction(event: Event) -> Option<Reaction> {
        CELL.get().filter(|(changed, _)| *changed == event).map(|(_, reaction)| reaction)
    }

    /// Runs `behaviour` with one cell changed, on this thread.
    pub fn with_cell_changed<T>(event: Event, reaction: Reaction, behaviour: impl FnOnce() -> T) -> T {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                CELL.set(None);
            }
        }
        let _restore = Restore;
        CELL.set(Some((event, reaction)));
        behaviour()
    }
}

#[cfg(debug_assertions)]
pub use changed::with_cell_changed;

/// The matrix as docs/matrix.md shows it: Markdown, generated so that page and code cannot differ.
pub fn as_markdown() -> String {
    let mut text = String::from("| call | answer | reaction |\n|---|---|---|\n");
    for event in Event::ALL {
        let name = format!("{event:?}");
        let end =
            name.char_indices().skip(1).find(|(_, letter)| letter.is_uppercase()).map_or(name.len(), |(at, _)| at);
        let (call, answer) = name.split_at(end);
        let _ = writeln!(text, "| {call} | {answer} | {:?} |", react(event));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_failure(event: Event) -> bool {
        let name = format!("{event:?}");
        ["RolledBack", "Refused", "Unknown", "Failed"].iter().any(|failure| name.ends_with(failure))
    }

    #[test]
    fn only_an_acknowledged_or_a_settled_start_spawns() {
        let spawning: Vec<_> = Event::ALL.into_iter().filter(|event| react(*event) == Reaction::Spawn).collect();
        assert_eq!(spawning, [Event::ClaimStarted, Event::StartStarted, Event::SettleExecuting]);
    }

    #[test]
    fn an_unknown_outcome_is_never_taken_for_an_answer() {
        for event in Event::ALL.into_iter().filter(|event| format!("{event:?}").ends_with("Unknown")) {
            let reaction = react(event);
            let asks_again = [
                Reaction::KeepPending,
                Reaction::Settle,
                Reaction::RecordAgain,
                Reaction::Release,
                Reaction::WriteAgain,
            ];
            assert!(asks_again.contains(&reaction), "{event:?} leads to {reaction:?}");
        }
    }

    #[test]
    fn a_run_that_ended_is_kept_until_its_record_is_acknowledged() {
        for event in Event::ALL.into_iter().filter(|event| format!("{event:?}").starts_with("Finish")) {
            assert_eq!(react(event) == Reaction::RecordAgain, is_failure(event), "{event:?}");
        }
    }

    #[test]
    fn the_page_shows_every_cell() {
        let page = as_markdown();
        assert_eq!(page.lines().count(), Event::ALL.len() + 2);
        assert!(page.contains("| Start | RolledBack | Wait |\n"), "{page}");
    }

    #[test]
    fn a_changed_cell_is_changed_for_the_behaviour_alone() {
        let changed = with_cell_changed(Event::StartGone, Reaction::Spawn, || reaction_to(Event::StartGone));
        assert_eq!((changed, reaction_to(Event::StartGone)), (Reaction::Spawn, Reaction::ForgetAndClaim));
    }
}
