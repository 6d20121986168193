//! One row that the database refuses must not wedge the others (DESIGN section 4, row 3).

use carillon_domain::guard::{Guard, stands};
use carillon_domain::node::port::FinishAnswer;

use super::MySqlStore;
use crate::store::ops::transit::without_output;
use crate::store::{Finished, Me, StoreError};

impl MySqlStore {
    /// Records a batch of ended runs. A part that is refused for good is halved until the row that is to blame stands
    /// alone; that one is tried again as a minimal row. Each part is a transaction: a run ends once, so whoever repeats
    /// the batch after an error finds what was recorded.
    pub(super) async fn finish_in_parts(
        &self,
        me: Me,
        runs: &[Finished],
        executors: &[String],
    ) -> Result<Vec<FinishAnswer>, StoreError> {
        let mut answers = Vec::with_capacity(runs.len());
        let mut parts = vec![runs];
        while let Some(part) = parts.pop() {
            match (self.finish_part(me, part, executors).await, part) {
                (Err(StoreError::Permanent(problem)), [one]) => {
                    tracing::error!(run = %one.request.at.run, problem, "a run is recorded without its output");
                    answers.extend(self.finish_part(me, &[without_output(one)], executors).await?);
                }
                (Err(StoreError::Permanent(_)), _) if !part.is_empty() && stands(Guard::Bisect) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
                (answer, _) => answers.extend(answer?),
            }
        }
        Ok(answers)
    }
}
