//! One row that a database refuses must not wedge the others (DESIGN section 4, row 3).

use carillon_domain::guard::{Guard, stands};
use carillon_domain::node::port::FinishAnswer;

use super::ops::transit::without_output;
use super::{Finished, StoreError};

type Answers = Result<Vec<FinishAnswer>, StoreError>;

/// Records a batch of ended runs. A part that is refused for good is halved until the row that is to blame stands alone;
/// that one is tried again as a minimal row. What is recorded twice on the way is the same fact.
pub(super) fn finish(record: &mut dyn FnMut(&[Finished]) -> Answers, runs: &[Finished]) -> Answers {
    match (record(runs), runs) {
        (Err(StoreError::Permanent(_)), [one]) => record(&[without_output(one)]),
        (Err(StoreError::Permanent(_)), _) if !runs.is_empty() && stands(Guard::Bisect) => {
            let (left, right) = runs.split_at(runs.len() / 2);
            let (left, right) = (finish(record, left), finish(record, right));
            let mut answers = left?;
            answers.extend(right?);
            Ok(answers)
        }
        (answer, _) => answer,
    }
}
