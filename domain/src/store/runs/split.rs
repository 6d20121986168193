//! One run that a database refuses must not hold up the others of its batch.

use std::borrow::Cow;
use std::sync::Arc;

use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::node::port::{FinishAnswer, Finished};
use crate::run::Output;

/// A batch of runs to record, split where the database refuses a part for good.
///
/// A refused part is halved until the run to blame is alone. That run is tried again without its output. A run that is
/// recorded twice on the way is the same fact.
pub struct SplitFinish<'a> {
    /// Parts to record, the next one last. An owned part is a run without its output.
    left: Vec<Cow<'a, [Finished]>>,
    answers: Vec<FinishAnswer>,
}

/// The next step after the database has refused a part for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRefusal {
    /// Smaller parts follow.
    Split,
    /// This run follows without its output.
    WithoutOutput(RunId),
    /// No smaller part helps: the error is the answer.
    GiveUp,
}

impl<'a> SplitFinish<'a> {
    /// The whole batch as one part.
    pub fn of(runs: &'a [Finished]) -> Self {
        Self { left: vec![Cow::Borrowed(runs)], answers: Vec::with_capacity(runs.len()) }
    }

    /// The next part to record.
    pub fn next_part(&mut self) -> Option<Cow<'a, [Finished]>> {
        self.left.pop()
    }

    /// The part is recorded.
    pub fn recorded(&mut self, answers: Vec<FinishAnswer>) {
        self.answers.extend(answers);
    }

    /// The database has refused the part for good.
    pub fn refused(&mut self, part: Cow<'a, [Finished]>) -> AfterRefusal {
        match part {
            Cow::Borrowed([one]) => {
                self.left.push(Cow::Owned(vec![without_output(one)]));
                AfterRefusal::WithoutOutput(one.at.run)
            }
            Cow::Borrowed(part) if !part.is_empty() && enabled(Guard::Bisect) => {
                let (left, right) = part.split_at(part.len() / 2);
                self.left.extend([Cow::Borrowed(right), Cow::Borrowed(left)]);
                AfterRefusal::Split
            }
            Cow::Borrowed(_) | Cow::Owned(_) => AfterRefusal::GiveUp,
        }
    }

    /// One answer for each run, in their order.
    pub fn answers(self) -> Vec<FinishAnswer> {
        self.answers
    }
}

/// The run without its output, which is what a database may refuse.
fn without_output(finished: &Finished) -> Finished {
    Finished { output: Arc::new(Output { bytes: Vec::new(), truncated: true }), ..finished.clone() }
}
