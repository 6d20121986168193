//! The exception matrix: what a node does when a store's answer is good, bad or missing (DESIGN section 4).
//!
//! go-crontab found the hard part of a distributed crontab here: the database and the memory must agree although any
//! statement may have been applied while the client saw an error, and may even be applied *later*. So `Unknown` is an answer
//! of its own, never taken for a failure, and every row of the matrix says what it leads to. Two tables, no catch-all arm:
//! a new step or answer does not compile before it has been thought about.

use std::fmt::Write as _;

/// A transition that a node asks a store for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Idle -> Prepared.
    Claim,
    /// Prepared -> Executing.
    Start,
    /// Executing -> Idle.
    Finish,
    /// Prepared or Executing -> Idle without a run: hand-back and recovery.
    Reset,
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Committed and acknowledged.
    Applied,
    /// Acknowledged, but the row is not as the guard wants it.
    Guarded,
    /// Rolled back for certain; the same may work later.
    RolledBack,
    /// Rolled back for certain; the same will never work.
    Refused,
    /// It may have been applied, or may still be.
    Unknown,
}

impl From<crate::node::call::Failure> for Answer {
    fn from(failure: crate::node::call::Failure) -> Self {
        match failure {
            crate::node::call::Failure::RolledBack => Answer::RolledBack,
            crate::node::call::Failure::Refused => Answer::Refused,
            crate::node::call::Failure::Unknown => Answer::Unknown,
        }
    }
}

/// What the node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reaction {
    /// Puts it into *prepared*; what its claim has started in the same commit is spawned.
    Adopt,
    /// Spawns it and puts it into *executing*: the only way to a start.
    Spawn,
    /// Forgets it: nothing of it is mine.
    Forget,
    /// Leaves it in the set in which it is and asks again, later and later.
    AskAgain,
    /// Keeps its run id in *pending*, so that recovery adopts the row should it turn up, and does not sweep it.
    KeepPending,
    /// Starts nothing; settles by a guarded write before anything else.
    Settle,
    /// Gives the row back unstarted: into *uncertain*.
    GiveBack,
    /// It is done: out of every set.
    Done,
}

impl Step {
    /// Every step, in the order of the matrix.
    pub const ALL: [Step; 4] = [Step::Claim, Step::Start, Step::Finish, Step::Reset];
}

impl Answer {
    /// Every answer.
    pub const ALL: [Answer; 5] =
        [Answer::Applied, Answer::Guarded, Answer::RolledBack, Answer::Refused, Answer::Unknown];
}

/// The matrix.
pub const fn react(step: Step, answer: Answer) -> Reaction {
    match (step, answer) {
        (Step::Claim, Answer::Applied) => Reaction::Adopt,
        (Step::Claim, Answer::Guarded | Answer::RolledBack | Answer::Refused) => Reaction::Forget,
        (Step::Claim, Answer::Unknown) => Reaction::KeepPending,

        (Step::Start, Answer::Applied) => Reaction::Spawn,
        (Step::Start, Answer::Guarded) => Reaction::Forget,
        (Step::Start, Answer::RolledBack) => Reaction::AskAgain,
        (Step::Start, Answer::Refused) => Reaction::GiveBack,
        (Step::Start, Answer::Unknown) => Reaction::Settle,

        // A finish is never given up: the store makes a repeated one harmless by the run id.
        (Step::Finish, Answer::Applied | Answer::Guarded) => Reaction::Done,
        (Step::Finish, Answer::RolledBack | Answer::Refused | Answer::Unknown) => Reaction::AskAgain,

        (Step::Reset, Answer::Applied | Answer::Guarded) => Reaction::Done,
        (Step::Reset, Answer::RolledBack | Answer::Refused | Answer::Unknown) => Reaction::AskAgain,
    }
}

/// What a settling write found of a row in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// Prepared, with my run id.
    Prepared,
    /// Executing, with my run id.
    Executing,
    /// Executing, with my run id, but paused, deleted or cancelled meanwhile, or nothing may start.
    Withdrawn,
    /// Idle, gone, or another run's.
    Gone,
}

impl Found {
    /// Everything that can be found.
    pub const ALL: [Found; 4] = [Found::Prepared, Found::Executing, Found::Withdrawn, Found::Gone];
}

/// What follows once doubt is settled. `Finish` and `Reset` settle themselves by being asked again.
pub const fn settled(found: Found) -> Reaction {
    match found {
        Found::Prepared => Reaction::Adopt,
        Found::Executing => Reaction::Spawn,
        Found::Withdrawn => Reaction::GiveBack,
        Found::Gone => Reaction::Forget,
    }
}

/// The matrix as docs/matrix.md shows it: Markdown, generated so that page and code cannot differ.
pub fn as_markdown() -> String {
    let mut text = String::from("| step |");
    for answer in Answer::ALL {
        let _ = write!(text, " {answer:?} |");
    }
    text.push_str("\n|---|---|---|---|---|---|\n");
    for step in Step::ALL {
        let _ = write!(text, "| {step:?} |");
        for answer in Answer::ALL {
            let _ = write!(text, " {:?} |", react(step, answer));
        }
        text.push('\n');
    }
    text.push_str("\n| a settling write finds the row | then |\n|---|---|\n");
    for found in Found::ALL {
        let _ = writeln!(text, "| {found:?} | {:?} |", settled(found));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_acknowledged_or_a_settled_start_spawns() {
        for step in Step::ALL {
            for answer in Answer::ALL {
                let spawns = react(step, answer) == Reaction::Spawn;
                assert_eq!(spawns, (step, answer) == (Step::Start, Answer::Applied), "{step:?} {answer:?}");
            }
        }
        let spawning: Vec<_> = Found::ALL.into_iter().filter(|found| settled(*found) == Reaction::Spawn).collect();
        assert_eq!(spawning, [Found::Executing]);
    }

    #[test]
    fn an_unknown_outcome_is_never_taken_for_an_answer() {
        for step in Step::ALL {
            let reaction = react(step, Answer::Unknown);
            assert!(
                matches!(reaction, Reaction::KeepPending | Reaction::Settle | Reaction::AskAgain),
                "{step:?} leads to {reaction:?}"
            );
        }
    }

    #[test]
    fn a_run_that_ended_is_kept_until_its_record_is_acknowledged() {
        for answer in [Answer::RolledBack, Answer::Refused, Answer::Unknown] {
            assert_eq!(react(Step::Finish, answer), Reaction::AskAgain);
            assert_eq!(react(Step::Reset, answer), Reaction::AskAgain);
        }
    }

    #[test]
    fn the_page_shows_every_cell() {
        let page = as_markdown();
        for step in Step::ALL {
            let row = Answer::ALL.map(|answer| format!(" {:?} |", react(step, answer))).concat();
            assert!(page.contains(&format!("| {step:?} |{row}\n")), "{step:?}: {page}");
        }
        for found in Found::ALL {
            assert!(page.contains(&format!("| {found:?} | {:?} |\n", settled(found))), "{found:?}: {page}");
        }
    }
}
