//! Reading jobs and runs in flight, a batch with one statement.
//!
//! Numbers go into the text of a statement, everything else is a parameter. What is read under READ COMMITTED is only
//! what a write will compare: a definition that does not belong to its row any more ends the transaction as a conflict.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId};
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::time::Timestamp;
use mysql_async::{Row, Value};

use crate::codec::run_bytes;
use crate::definition::{Definition, from_document};
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::rows::{self, CONCURRENT, CONCURRENT_ORDER, Columns, STATE};
use crate::mysql::transaction::{Transaction, list};
use crate::tables::{ConcurrentJob, JobRow};
use crate::{ClaimRequest, JobKey, StoreError, StoreResult};

/// More than any database holds.
pub(in crate::mysql) fn limit_of(limit: usize) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX).min(u64::from(u32::MAX))
}

/// So many parameters for an `IN`.
pub(in crate::mysql) fn marks(count: usize) -> String {
    vec!["?"; count].join(",")
}

pub(in crate::mysql) fn json<T: serde::Serialize + ?Sized>(list: &T) -> StoreResult<String> {
    serde_json::to_string(list).map_err(|error| StoreError::Permanent(error.to_string()))
}

/// A list of texts as a column `value`.
pub(in crate::mysql) const TEXTS: &str =
    "SELECT value FROM JSON_TABLE(?, '$[*]' COLUMNS (value VARCHAR(128) PATH '$')) texts";

/// [`names_of`] jobs, each with its place from 1.
pub(in crate::mysql) const NAMES: &str = "JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, \
     namespace VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[0]', \
     name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[1]'))";

/// The parameter of [`NAMES`].
pub(in crate::mysql) fn names_of(keys: &[JobKey]) -> StoreResult<String> {
    json(&keys.iter().map(|key| [key.namespace.as_str(), key.name.as_str()]).collect::<Vec<_>>())
}

/// The columns of a definition.
pub(in crate::mysql) const DEFINITION: &str =
    "j.namespace, j.name, j.document, j.generation, j.anchor_at, j.created_at, j.updated_at";

/// The columns of [`DEFINITION`].
pub(in crate::mysql) fn definition_of(from: &mut Columns) -> StoreResult<Arc<Definition>> {
    let key = JobKey { namespace: from.next()?, name: from.next()? };
    let (document, generation): (String, u64) = (from.next()?, from.next()?);
    let times: [i64; 3] = [from.next()?, from.next()?, from.next()?];
    let [anchor_at, created_at, updated_at] = times.map(Timestamp::from_ms);
    let job = from_document(key, &document)?;
    let timeline = job.timeline(anchor_at).map_err(|error| unreadable(format!("{}: {error}", job.key())))?;
    let job = Arc::new(job);
    Ok(Arc::new(Definition { job, timeline, generation, anchor_at, created_at, updated_at }))
}

impl Transaction {
    /// The definitions of jobs; one that cannot be read is an error of its own.
    async fn definitions(&mut self, ids: &[JobId]) -> StoreResult<BTreeMap<JobId, StoreResult<Arc<Definition>>>> {
        let mut found = BTreeMap::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let list = list(ids);
        // Many jobs are made at once: by the statistics of a moment ago the table is so small that reading all of it is cheaper.
        let sql = format!("SELECT j.id, {DEFINITION} FROM job j FORCE INDEX (PRIMARY) WHERE j.id IN ({list})");
        for row in self.line.query(&sql).await? {
            let mut from = Columns::of(row);
            let id = JobId(from.next()?);
            let definition = definition_of(&mut from);
            if let Ok(definition) = &definition {
                self.remember(id, definition);
            }
            found.insert(id, definition);
        }
        Ok(found)
    }

    /// Job rows of a statement that answers [`STATE`], each with its definition or why it has none.
    async fn with_definitions(&mut self, found: Vec<Row>) -> StoreResult<Vec<(JobId, StoreResult<JobRow>)>> {
        let mut states = Vec::with_capacity(found.len());
        for row in found {
            let id = JobId(row.get_opt(0).and_then(Result::ok).unwrap_or(0));
            states.push((id, rows::state(row)));
        }
        let known: BTreeMap<JobId, Arc<Definition>> = states
            .iter()
            .filter_map(|(id, state)| Some((*id, self.cached(*id, state.as_ref().ok()?.generation)?)))
            .collect();
        let unknown: Vec<JobId> = states.iter().map(|(id, _)| *id).filter(|id| !known.contains_key(id)).collect();
        let mut read = self.definitions(&unknown).await?;
        let mut answer = Vec::with_capacity(states.len());
        for (id, state) in states {
            let definition = match known.get(&id) {
                Some(known) => Ok(known.clone()),
                None => read.remove(&id).unwrap_or_else(|| Err(unreadable(format!("job {id} has no definition")))),
            };
            if let (Ok(state), Ok(definition)) = (&state, &definition)
                && state.generation != definition.generation
            {
                return Err(self.moved_on());
            }
            answer.push((id, state.and_then(|state| Ok(JobRow { definition: definition?, state: Arc::new(state) }))));
        }
        Ok(answer)
    }

    /// Job rows, each with its definition. `rest` begins after FROM.
    pub(in crate::mysql) async fn jobs(&mut self, rest: &str, params: Vec<Value>) -> StoreResult<Vec<JobRow>> {
        let found = self.line.select(&format!("SELECT {STATE} FROM {rest}"), params).await?;
        self.with_definitions(found).await?.into_iter().map(|(_, row)| row).collect()
    }

    /// Rows of numbers that are known.
    async fn jobs_of(&mut self, ids: &[JobId]) -> StoreResult<Vec<(JobId, StoreResult<JobRow>)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT {STATE} FROM job_state s FORCE INDEX (PRIMARY) WHERE s.id IN ({})", list(ids));
        let found = self.line.query(&sql).await?;
        self.with_definitions(found).await
    }

    pub(in crate::mysql) async fn select_jobs(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<JobRow>>> {
        let mut found = BTreeMap::new();
        for (id, row) in self.jobs_of(ids).await? {
            found.insert(id, row?);
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The jobs' rows that carry runs: those that are known at the version at which the caller saw them are not read.
    pub(in crate::mysql) async fn select_jobs_of_runs(&mut self, runs: &[RunRef]) -> StoreResult<Vec<Option<JobRow>>> {
        let (mut rows, mut unknown) = (BTreeMap::new(), Vec::new());
        for at in runs {
            let RowKey::Job(id) = at.row else { continue };
            match self.context.known_row(at) {
                Some(row) => _ = rows.insert(id, row),
                None => unknown.push(id),
            }
        }
        // Two runs of one row that is known at one of the versions: it is read.
        unknown.iter().for_each(|id| _ = rows.remove(id));
        rows.keys().for_each(|id| self.known.take(*id));
        for (id, row) in self.jobs_of(&unknown).await? {
            rows.insert(id, row?);
        }
        Ok(rows.into_values().map(Some).collect())
    }

    /// The numbers of living jobs, in the order asked for.
    pub(in crate::mysql) async fn ids_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobId>>> {
        let sql = format!(
            "SELECT t.place, j.id FROM {NAMES} t STRAIGHT_JOIN job j FORCE INDEX (job_name) \
             ON j.namespace = t.namespace AND j.name = t.name AND j.living = 1"
        );
        let mut ids = vec![None; keys.len()];
        for row in self.line.select(&sql, (names_of(keys)?,)).await? {
            let mut from = Columns::of(row);
            let (place, id): (usize, u64) = (from.next()?, from.next()?);
            if let Some(at) = ids.get_mut(place.wrapping_sub(1)) {
                *at = Some(JobId(id));
            }
        }
        Ok(ids)
    }

    pub(in crate::mysql) async fn select_jobs_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobRow>>> {
        let ids = self.ids_by_key(keys).await?;
        let known: Vec<JobId> = ids.iter().copied().flatten().collect();
        let mut rows = self.select_jobs(&known).await?.into_iter();
        Ok(ids.into_iter().map(|id| id.and_then(|_| rows.next().flatten())).collect())
    }

    pub(in crate::mysql) async fn select_job_by_run(&mut self, run: RunId) -> StoreResult<Option<JobRow>> {
        let run = Value::Bytes(run_bytes(run).to_vec());
        let held = "session n STRAIGHT_JOIN job_state s FORCE INDEX (job_state_held) \
                    ON s.held_session = n.id AND s.held_run = ?";
        if let Some(row) = self.jobs(held, vec![run.clone()]).await?.pop() {
            return Ok(Some(row));
        }
        Ok(self.jobs("job_state s FORCE INDEX (job_state_manual) WHERE s.manual_run = ?", vec![run]).await?.pop())
    }

    /// The rows of the partitions that come up first. The index has all that is asked; only what is taken is read. Each
    /// partition is asked for twice its share; only if one may have more among the first, for as much as all together.
    pub(in crate::mysql) async fn select_due_jobs(&mut self, request: &ClaimRequest) -> StoreResult<Vec<JobRow>> {
        let limit = request.runs.len();
        if request.partitions.is_empty() || limit == 0 || request.executors.is_empty() {
            return Ok(Vec::new());
        }
        let share = limit.div_ceil(request.partitions.len()).saturating_mul(2).min(limit);
        let mut due = self.first_due(request, share).await?;
        let last = due.get(limit - 1).copied();
        let hides_more = |partition: &u16| {
            let of_it = |entry: &&(i64, JobId, u16)| entry.2 == *partition;
            let (count, farthest) = (due.iter().filter(of_it).count(), due.iter().rfind(of_it).copied());
            count >= share && (last.is_none() || farthest < last)
        };
        if share < limit && request.partitions.iter().any(hides_more) {
            due = self.first_due(request, limit).await?;
        }
        let ids: Vec<JobId> = due.into_iter().take(limit).map(|(_, id, _)| id).collect();
        self.readable(&ids).await
    }

    /// Of each partition at least so many, if there are: when they come up, ascending, their numbers and partitions. Few
    /// different numbers are asked for, as each is a statement of its own to a server.
    async fn first_due(&mut self, request: &ClaimRequest, of_each: usize) -> StoreResult<Vec<(i64, JobId, u16)>> {
        let limit = limit_of(of_each.checked_next_power_of_two().unwrap_or(of_each));
        let places = marks(request.executors.len());
        let (mut sql, mut params) = (String::new(), Vec::new());
        for partition in &request.partitions {
            let union = if sql.is_empty() { "" } else { " UNION ALL " };
            let _infallible = write!(
                sql,
                "{union}(SELECT claim_at, id, partition_id FROM job_state FORCE INDEX (job_state_due) \
                 WHERE partition_id = {partition} AND claim_at <= ? AND executor IN ({places}) \
                 ORDER BY claim_at, id LIMIT {limit})"
            );
            params.push(Value::from(request.until.as_ms()));
            params.extend(request.executors.iter().map(Value::from));
        }
        let mut due: Vec<(i64, JobId, u16)> = Vec::new();
        for row in self.line.select(&sql, params).await? {
            let mut from = Columns::of(row);
            due.push((from.next()?, JobId(from.next()?), from.next()?));
        }
        due.sort_unstable();
        Ok(due)
    }

    /// One row of a newer binary must not keep this one from all the others.
    async fn readable(&mut self, ids: &[JobId]) -> StoreResult<Vec<JobRow>> {
        let mut found = BTreeMap::new();
        for (id, row) in self.jobs_of(ids).await? {
            match row {
                Ok(row) => {
                    found.insert(id, row);
                }
                Err(StoreError::Permanent(problem)) => tracing::error!(job = %id, problem, "a due job cannot be read"),
                Err(error) => return Err(error),
            }
        }
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// Active rows, each with its job's definition. `rest` begins after FROM.
    pub(in crate::mysql) async fn concurrent(
        &mut self,
        rest: &str,
        params: Vec<Value>,
    ) -> StoreResult<Vec<ConcurrentJob>> {
        let mut found = Vec::new();
        for row in self.line.select(&format!("SELECT {CONCURRENT} FROM {rest}"), params).await? {
            found.push(rows::concurrent(row)?);
        }
        let mut jobs: Vec<JobId> = found.iter().map(|row| row.key.job).collect();
        jobs.dedup();
        let definitions = self.definitions(&jobs).await?;
        let of = |id: JobId| match definitions.get(&id) {
            Some(definition) => definition.clone(),
            None => Err(unreadable(format!("job {id} has no definition"))),
        };
        found.into_iter().map(|row| Ok(ConcurrentJob { definition: of(row.key.job)?, row })).collect()
    }

    pub(in crate::mysql) async fn select_concurrent(
        &mut self,
        keys: &[FiringKey],
    ) -> StoreResult<Vec<Option<ConcurrentJob>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let place = |key: &FiringKey| format!("({},{},'{}')", key.job.0, key.due_at.as_ms(), key.trigger.as_str());
        let places: Vec<String> = keys.iter().map(place).collect();
        let rest = format!("concurrent_run a WHERE (a.job_id, a.due_at, a.trigger_name) IN ({})", places.join(","));
        let found: BTreeMap<FiringKey, ConcurrentJob> = self
            .concurrent(&rest, Vec::new())
            .await?
            .into_iter()
            .map(|concurrent| (concurrent.row.key, concurrent))
            .collect();
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    pub(in crate::mysql) async fn select_active_by_run(&mut self, run: RunId) -> StoreResult<Option<ConcurrentJob>> {
        let run = Value::Bytes(run_bytes(run).to_vec());
        let held = "session n STRAIGHT_JOIN concurrent_run a FORCE INDEX (concurrent_run_held) ON a.held_session = n.id AND a.held_run = ?";
        if let Some(row) = self.concurrent(held, vec![run.clone()]).await?.pop() {
            return Ok(Some(row));
        }
        Ok(self
            .concurrent("concurrent_run a FORCE INDEX (concurrent_run_waiting) WHERE a.waiting_run = ?", vec![run])
            .await?
            .pop())
    }

    pub(in crate::mysql) async fn select_due_concurrent(
        &mut self,
        request: &ClaimRequest,
    ) -> StoreResult<Vec<ConcurrentJob>> {
        if request.partitions.is_empty() || request.runs.is_empty() {
            return Ok(Vec::new());
        }
        let rest = format!(
            "concurrent_run a STRAIGHT_JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ? AND s.partition_id IN ({}) \
             AND s.executor IN ({TEXTS}) ORDER BY a.claim_at, {CONCURRENT_ORDER} LIMIT {}",
            list(&request.partitions),
            limit_of(request.runs.len())
        );
        self.concurrent(&rest, vec![request.until.as_ms().into(), json(&request.executors)?.into()]).await
    }
}
