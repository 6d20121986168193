//! Starting what is known, with one statement that commits by itself.
//!
//! Most starts are of few rows, all of which this process wrote itself when it claimed them, and a session that was in order a
//! moment ago. Asking for the time and the session, writing and committing are three round trips then of which the first tells
//! nothing new. So the rows are taken for what they were, the session too, and the time is reckoned; the UPDATE confirms all of
//! it. Where it matches nothing it was wrong to do so, and a transaction does it all again with asking. Where it matches a part
//! of the rows these run and the others do not: each is told to have moved, and settled.

use carillon_domain::firing::JobState;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::mechanism::{Mechanism, enabled as uses};
use carillon_domain::node::port::{RowKey, RunRef, StartAnswer};

use crate::cache::clock_estimate::Estimate;
use crate::cache::row_cache;
use crate::calls::node;
use crate::mysql::MySqlStore;
use crate::mysql::transaction::{Context, list};
use crate::mysql::write::update::assignments;
use crate::tables::{JobRow, Write};
use crate::{Me, StoreError, StoreResult};

/// Of more rows than this the round trips that are spared are a small part of what is done; and MariaDB makes something else of
/// an `IN` from a thousand values on.
const MOST: usize = 250;

impl MySqlStore {
    /// `None` where not all is known, more is to be done than to start, or it is not as it was known to be.
    pub(in crate::mysql) async fn start_optimistically(
        &self,
        me: Me,
        runs: &[RunRef],
    ) -> StoreResult<Option<Vec<StartAnswer>>> {
        let Some((sql, writes, answers)) = self.context.optimistic_start(me, runs) else { return Ok(None) };
        let mut line = self.pools.lone.line(false).await?;
        let outcome = line.run_alone(&sql).await;
        let all =
            outcome.as_ref().is_ok_and(|done| done.matched == runs.len() as u64 || !enabled(Guard::UpdateMatches));
        let mut written = row_cache::Known::default();
        written.wrote(writes);
        written.end(&mut self.context.held(), all);
        match outcome {
            Ok(done) => {
                line.give_back();
                let moved = || vec![StartAnswer::Moved; runs.len()];
                Ok(if all { Some(answers) } else { (done.matched > 0).then(moved) })
            }
            Err(StoreError::Unknown(text)) => {
                self.context.reckoning().forget();
                self.pools.lone.clear();
                line.give_up().await;
                Err(StoreError::Unknown(text))
            }
            // It has waited for a row as long as a start may.
            Err(error) => {
                let again = line.has_conflict();
                line.give_up().await;
                if again { Ok(None) } else { Err(error) }
            }
        }
    }
}

type OptimisticStart = (String, Vec<Write<JobState>>, Vec<StartAnswer>);

impl Context {
    /// The statement, what it writes, and what is answered when it has.
    fn optimistic_start(&self, me: Me, runs: &[RunRef]) -> Option<OptimisticStart> {
        if runs.is_empty() || runs.len() > MOST || !uses(Mechanism::OptimisticStart) {
            return None;
        }
        let known = self.reckoned(me.session)?;
        let known_rows = runs.iter().map(|at| self.known_row(at)).collect::<Option<_>>()?;
        let (writes, answers) = node::optimistic_start(known, me.session, runs, known_rows)?;
        let set = assignments(&writes)?;
        let holds =
            if enabled(Guard::OptimisticStanding) { self.holds(me, known, &ids_of(runs)) } else { String::new() };
        let rows = rows(me.session, &writes);
        Some((format!("UPDATE job_state FORCE INDEX (PRIMARY) SET {set} WHERE {rows}{holds}"), writes, answers))
    }

    /// The job's row that carries the run, as this process wrote it, with its definition.
    pub(in crate::mysql) fn known_row(&self, at: &RunRef) -> Option<JobRow> {
        let state = self.held().get(at)?.clone();
        let definition = self.cache().get(state.id, state.generation)?;
        Some(JobRow { state, definition })
    }

    /// That a transaction would be told the same by `STANDING`: the session is not ended and has not lost a heartbeat, no
    /// window of lost commits is open or new, none of the jobs has a concurrent run, and it is not before the time that was reckoned.
    fn holds(&self, me: Me, known: Estimate, jobs: &str) -> String {
        let (session, acked) = (me.session.as_u64(), me.acked);
        let until = known.losses_until.map_or("NULL".to_owned(), |until| until.as_ms().to_string());
        let time = match self.clock {
            None => {
                format!(" AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= {}000", known.now.as_ms())
            }
            Some(_) => String::new(),
        };
        format!(
            " AND EXISTS (SELECT 1 FROM session WHERE id = {session} AND state <> 'ended' AND seq >= {acked}) \
             AND NOT EXISTS (SELECT 1 FROM loss_window WHERE is_open = 1) \
             AND (SELECT MAX(until_at) FROM loss_window) <=> {until} AND NOT EXISTS (SELECT 1 FROM concurrent_run WHERE job_id IN ({jobs})){time}"
        )
    }
}

/// The numbers of the jobs.
fn ids_of(runs: &[RunRef]) -> String {
    let id = |at: &RunRef| match at.row {
        RowKey::Job(id) => Some(id),
        RowKey::Concurrent(_) => None,
    };
    list(&runs.iter().filter_map(id).map(|id| id.0).collect::<Vec<_>>())
}

/// The rows, each as it was known.
fn rows(session: SessionId, writes: &[Write<JobState>]) -> String {
    let before = || writes.iter().filter_map(|write| write.before.as_ref());
    let ids: Vec<u64> = before().map(|row| row.id.0).collect();
    let versions: Vec<String> = before().map(|row| format!("({},{})", row.id.0, row.version)).collect();
    let as_known = match enabled(Guard::UpdateVersion) {
        true => format!(" AND (id, version) IN ({}) AND held_session = {}", versions.join(","), session.as_u64()),
        false => String::new(),
    };
    format!("id IN ({}){as_known}", list(&ids))
}
