//! Jobs as people see them, each by its name: the question that is asked most. One statement answers it, for all who ask at
//! the same time, without a transaction around it.

use std::sync::Arc;

use carillon_domain::firing::JobState;
use carillon_domain::id::RunId;
use carillon_domain::run::RunRecord;
use mysql_async::Row;

use crate::batch_loader::BatchLoader;
use crate::definition::Definition;
use crate::mysql::client::pool::Pool;
use crate::mysql::encoding::rows::{self, Columns, RECORD, STATE};
use crate::mysql::read::history::newest_due;
use crate::mysql::read::select::{DEFINITION, NAMES, definition_of, names_of};
use crate::mysql::transaction::{Context, Transaction};
use crate::tables::{JobRow, SeenJob};
use crate::{JobKey, StoreError, StoreResult};

/// One that cannot be read is an error of its own.
type Seen = StoreResult<Option<SeenJob>>;

/// How many statements are on their way at once; the other readers have connections too.
const LANES: usize = 2;
/// How many jobs one statement looks at.
const MOST_TOGETHER: usize = 100;

impl Transaction {
    /// Living jobs, in the order asked for.
    async fn select_seen_jobs(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Seen>> {
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
        for row in self.line.select(&sql, (names_of(keys)?,)).await? {
            let place: usize = row.get_opt(0).and_then(Result::ok).unwrap_or(0);
            let Some(answer) = answers.get_mut(place.wrapping_sub(1)) else { continue };
            match (self.seen(row), &mut *answer) {
                (Ok(seen), Ok(Some(known))) => {
                    if order(&seen.last_run) > order(&known.last_run) {
                        known.last_run = seen.last_run;
                    }
                }
                (seen, _) => *answer = seen.map(Some),
            }
        }
        Ok(answers)
    }

    pub(in crate::mysql) async fn select_seen_job(&mut self, key: &JobKey) -> Seen {
        let mut answers = self.select_seen_jobs(std::slice::from_ref(key)).await?;
        answers.pop().unwrap_or(Ok(None))
    }

    fn seen(&mut self, row: Row) -> StoreResult<SeenJob> {
        let mut from = Columns::of(row);
        let _place: u64 = from.next()?;
        let state = rows::state_of(&mut from)?;
        let node = from.next()?;
        let last_run = if from.is_null() {
            from.skip(RECORD);
            None
        } else {
            Some(rows::record_of(&mut from)?)
        };
        let definition = self.definition(&state, &mut from)?;
        Ok(SeenJob { row: JobRow { state: Arc::new(state), definition }, node, last_run })
    }

    /// The definition of a row, which follows in `from`: read, unless it is known.
    fn definition(&mut self, state: &JobState, from: &mut Columns) -> StoreResult<Arc<Definition>> {
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

/// Who looks at jobs.
pub(in crate::mysql) struct JobLoader {
    readers: Arc<Pool>,
    context: Arc<Context>,
    gatherer: BatchLoader<JobKey, Seen>,
}

impl JobLoader {
    pub fn new(readers: Arc<Pool>, context: Arc<Context>) -> Self {
        Self { readers, context, gatherer: BatchLoader::new(LANES, MOST_TOGETHER) }
    }

    pub async fn job(&self, key: &JobKey) -> Seen {
        let (readers, context) = (self.readers.clone(), self.context.clone());
        let all = async move |keys: Vec<JobKey>| match look(&readers, &context, &keys).await {
            Ok(answers) => answers,
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        };
        let ending = || Err(StoreError::Retryable("the server is ending".to_owned()));
        self.gatherer.ask(key.clone(), all).await.unwrap_or_else(ending)
    }
}

/// A connection that was closed while it was idle costs nothing but another one.
async fn look(readers: &Pool, context: &Arc<Context>, keys: &[JobKey]) -> StoreResult<Vec<Seen>> {
    let mut fresh = false;
    loop {
        let mut looking = Transaction::looking(readers.line(fresh).await?, context.clone());
        let seen = looking.select_seen_jobs(keys).await;
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
