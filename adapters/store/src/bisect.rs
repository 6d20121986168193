//! One row that a database refuses must not wedge the others (DESIGN section 4, row 3).

use std::borrow::Cow;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::node::port::FinishAnswer;

use super::ops::transit::without_output;
use super::{Finished, StoreError};

/// A batch of ended runs, of which each part is recorded by itself. A part that is refused for good is halved until the row that
/// is to blame stands alone; that one is tried again as a minimal row. What is recorded twice on the way is the same fact.
pub(super) struct Parts<'a> {
    /// The next one last. One that is owned is a minimal row.
    left: Vec<Cow<'a, [Finished]>>,
    answers: Vec<FinishAnswer>,
}

impl<'a> Parts<'a> {
    pub fn of(runs: &'a [Finished]) -> Self {
        Self { left: vec![Cow::Borrowed(runs)], answers: Vec::with_capacity(runs.len()) }
    }

    /// What is to be recorded next.
    pub fn next(&mut self) -> Option<Cow<'a, [Finished]>> {
        self.left.pop()
    }

    /// Takes in what became of a part.
    ///
    /// # Errors
    /// Those that no smaller part helps against.
    pub fn recorded(
        &mut self,
        part: Cow<'a, [Finished]>,
        answer: Result<Vec<FinishAnswer>, StoreError>,
    ) -> Result<(), StoreError> {
        match (answer, part) {
            (Err(StoreError::Permanent(problem)), Cow::Borrowed([one])) => {
                tracing::error!(run = %one.at.run, problem, "a run is recorded without its output");
                self.left.push(Cow::Owned(vec![without_output(one)]));
            }
            (Err(StoreError::Permanent(_)), Cow::Borrowed(part)) if !part.is_empty() && enabled(Guard::Bisect) => {
                let (left, right) = part.split_at(part.len() / 2);
                self.left.extend([Cow::Borrowed(right), Cow::Borrowed(left)]);
            }
            (answer, _) => self.answers.extend(answer?),
        }
        Ok(())
    }

    /// What became of all of them, in their order.
    pub fn answers(self) -> Vec<FinishAnswer> {
        self.answers
    }
}
