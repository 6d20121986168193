//! One job as people see it: the question that is asked most, with one statement and without a transaction around it.

use std::sync::Arc;

use carillon_domain::firing::JobState;
use carillon_domain::id::RunId;
use carillon_domain::run::RunRecord;

use super::pool::Pool;
use super::rows::{self, Columns, RECORD, STATE};
use super::select::{DEFINITION, definition_of};
use super::transaction::{Context, Transaction};
use crate::store::definition::Definition;
use crate::store::tables::{JobRow, SeenJob};
use crate::store::{JobKey, StoreError};

type Answer<T> = Result<T, StoreError>;

impl Transaction {
    /// A row for each attempt at the newest due time; the last of them is the newest record.
    pub(super) async fn select_seen_job(&mut self, key: &JobKey) -> Answer<Option<SeenJob>> {
        let sql = format!(
            "SELECT {STATE}, n.node, {RECORD}, {DEFINITION} FROM job j FORCE INDEX (job_name) \
             STRAIGHT_JOIN job_state s ON s.id = j.id LEFT JOIN session n ON n.id = s.held_session \
             LEFT JOIN run r FORCE INDEX (run_attempt) ON r.job_id = j.id AND r.due_at = \
             (SELECT m.due_at FROM run m FORCE INDEX (run_attempt) WHERE m.job_id = j.id ORDER BY m.due_at DESC LIMIT 1) \
             WHERE j.namespace = ? AND j.name = ? AND j.living = 1"
        );
        let mut seen: Option<SeenJob> = None;
        for row in self.line.select(&sql, (&key.namespace, &key.name)).await? {
            let mut from = Columns::of(row);
            let state = rows::state_of(&mut from)?;
            let node = from.next()?;
            let last_run = match from.is_null() {
                true => {
                    from.skip(RECORD);
                    None
                }
                false => Some(rows::record_of(&mut from)?),
            };
            match &mut seen {
                Some(seen) if order(&last_run) > order(&seen.last_run) => seen.last_run = last_run,
                Some(_) => {}
                None => {
                    let row = JobRow { definition: self.definition(&state, &mut from)?, state };
                    seen = Some(SeenJob { row, node, last_run });
                }
            }
        }
        Ok(seen)
    }

    /// The definition of a row, which follows in `from`: read, unless it is known.
    fn definition(&mut self, state: &JobState, from: &mut Columns) -> Answer<Arc<Definition>> {
        if let Some(known) = self.cached(state.id, state.generation) {
            return Ok(known);
        }
        let definition = definition_of(from)?;
        if definition.generation != state.generation {
            return Err(self.moved_on());
        }
        self.remember(state.id, &definition);
        Ok(definition)
    }
}

/// Among records of one due time.
fn order(record: &Option<RunRecord>) -> Option<(u32, RunId)> {
    record.as_ref().map(|record| (record.attempt, record.id))
}

/// Looks at one job; a statement of its own needs no transaction. A connection that was closed while it was idle costs
/// nothing but another one.
pub(super) async fn look(pool: &Pool, context: &Arc<Context>, key: &JobKey) -> Answer<Option<SeenJob>> {
    let mut fresh = false;
    loop {
        let mut looking = Transaction::looking(pool.line(fresh).await?, context.clone());
        let seen = looking.select_seen_job(key).await;
        let lost = looking.line.is_lost();
        if seen.is_ok() {
            looking.line.give_back()
        } else {
            looking.line.give_up().await
        }
        if !lost || fresh {
            return seen;
        }
        fresh = true;
    }
}
