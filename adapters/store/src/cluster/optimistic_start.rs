//! A start by one statement that commits by itself.
//!
//! Most starts are of few rows that this process wrote itself when it claimed them, for a session that was in order a moment ago.
//! A transaction would spend three round trips, the first of which tells nothing new. So the start assumes the cached rows, the
//! standing and an estimate of the time, and its UPDATE confirms all of them. If it matches no row, a transaction does it all again
//! with reading. If it matches a part of the rows, these run: every row is answered as moved, and settled.

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::mechanism::{Mechanism, enabled as uses};
use carillon_domain::node::port::{RunRef, StartAnswer};

use crate::cache::row_cache;
use crate::calls::node;
use crate::cluster::ClusterStore;
use crate::cluster::port::{Connection, Database, Pool, SingleStart, WriteRows};
use crate::{Me, StoreError, StoreResult};

/// Above this size the saved round trips no longer matter, and MariaDB rewrites `IN` lists of 1,000 values into a subquery.
const MOST: usize = 250;

impl<D: Database> ClusterStore<D> {
    /// `None` if not every row is cached, if more is to be done than to start, or if something was not as assumed.
    pub(crate) async fn start_optimistically(&self, me: Me, runs: &[RunRef]) -> StoreResult<Option<Vec<StartAnswer>>> {
        if runs.is_empty() || runs.len() > MOST || !uses(Mechanism::OptimisticStart) {
            return Ok(None);
        }
        let Some(estimate) = self.shared.estimate_of(me.session, self.database.boot_us()) else { return Ok(None) };
        let Some(rows) = runs.iter().map(|at| self.shared.cached_row(at)).collect() else { return Ok(None) };
        let Some((writes, answers)) = node::optimistic_start(estimate, me.session, runs, rows) else {
            return Ok(None);
        };
        let mut connection = self.database.connection(Pool::SingleStatements, false).await?;
        let not_before = self.shared.clock.is_none().then_some(estimate.now);
        let start = SingleStart { me, writes: &writes, not_before, losses_until: estimate.losses_until };
        let outcome = connection.start_alone(&start).await;
        let matches_all = |matched: &u64| *matched == runs.len() as u64 || !enabled(Guard::UpdateMatches);
        let all = outcome.as_ref().is_ok_and(matches_all);
        let mut written = row_cache::UnreadRows::default();
        written.wrote(writes);
        written.end(&mut self.shared.rows(), all);
        match outcome {
            Ok(matched) => {
                connection.give_back();
                let moved = || vec![StartAnswer::Moved; runs.len()];
                Ok(if all { Some(answers) } else { (matched > 0).then(moved) })
            }
            Err(StoreError::Unknown(text)) => {
                self.shared.estimate().forget();
                self.database.forget_idle(Pool::SingleStatements);
                connection.give_up().await;
                Err(StoreError::Unknown(text))
            }
            // It has waited for a row as long as a start may.
            Err(error) => {
                let again = connection.has_conflict();
                connection.give_up().await;
                if again { Ok(None) } else { Err(error) }
            }
        }
    }
}
