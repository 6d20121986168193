//! Jobs as people see them, by name: one statement for many.

use std::sync::Arc;

use carillon_domain::id::RunId;
use mysql_async::Row;

use crate::cluster::port::{CachedDefinition, Connection};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::{self, Columns, RECORD, STATE};
use crate::mysql::read::history::newest_due;
use crate::mysql::read::select::{DEFINITION, NAMES, definition_of, names_of};
use crate::tables::{JobRow, SeenJob};
use crate::{JobKey, StoreResult};

/// One that cannot be read is an error of its own.
type Seen = StoreResult<Option<SeenJob>>;

impl MySqlConnection {
    /// Living jobs, in the order asked for.
    pub(in crate::mysql) async fn select_jobs_by_name(
        &mut self,
        keys: &[JobKey],
        cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<Seen>> {
        // A row for each attempt at the newest due time; the last of them is the newest record.
        let sql = format!(
            "SELECT t.place, {STATE}, n.node, {RECORD}, {DEFINITION} FROM {NAMES} t \
             STRAIGHT_JOIN job j FORCE INDEX (job_name) \
             ON j.namespace = t.namespace AND j.name = t.name AND j.living = 1 \
             STRAIGHT_JOIN job_state s ON s.id = j.id LEFT JOIN session n ON n.id = s.held_session \
             LEFT JOIN run r FORCE INDEX (run_attempt) ON r.job_id = j.id AND r.due_at = {}",
            newest_due("j.id")
        );
        let mut answers: Vec<Seen> = keys.iter().map(|_| Ok(None)).collect();
        for row in self.select(&sql, (names_of(keys)?,)).await? {
            let place: usize = row.get_opt(0).and_then(Result::ok).unwrap_or(0);
            let Some(answer) = answers.get_mut(place.wrapping_sub(1)) else { continue };
            match (self.seen(row, cached), &mut *answer) {
                (Ok(seen), Ok(Some(known))) => {
                    if last_run_of(&seen) > last_run_of(known) {
                        known.last_run = seen.last_run;
                    }
                }
                (seen, _) => *answer = seen.map(Some),
            }
        }
        Ok(answers)
    }

    fn seen(&mut self, row: Row, cached: CachedDefinition<'_>) -> StoreResult<SeenJob> {
        let mut from = Columns::of(row);
        let _place: u64 = from.next()?;
        self.seen_of(from, cached)
    }

    /// A job from the columns of its state, its node, its newest record and its definition.
    pub(in crate::mysql) fn seen_of(
        &mut self,
        mut from: Columns,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<SeenJob> {
        let state = rows::state_of(&mut from)?;
        let node = from.next()?;
        let last_run = if from.is_null() {
            from.skip(RECORD);
            None
        } else {
            Some(rows::record_of(&mut from)?)
        };
        let definition = match cached(state.id, state.generation) {
            Some(cached) => cached,
            None => definition_of(&mut from)?,
        };
        if definition.generation != state.generation {
            return Err(self.moved_on());
        }
        Ok(SeenJob { row: JobRow { state: Arc::new(state), definition }, node, last_run })
    }
}

/// The place of its newest record among those of one due time.
pub(in crate::mysql) fn last_run_of(seen: &SeenJob) -> Option<(u32, RunId)> {
    seen.last_run.as_ref().map(|record| (record.attempt, record.id))
}
