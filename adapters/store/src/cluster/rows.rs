//! The rows of a transaction, as calls and views read them: from the row cache, from the cache of definitions, or by statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::node::port::{RowKey, RunRef};

use crate::cluster::port::{ConcurrentQuery, Connection, Database, ReadRows, StateQuery, StateRead};
use crate::cluster::transaction::Transaction;
use crate::definition::Definition;
use crate::tables::{ConcurrentJob, JobRow};
use crate::{ClaimRequest, JobKey, StoreError, StoreResult};

/// The error for a job whose definition is gone.
fn undefined(id: JobId) -> StoreError {
    StoreError::Permanent(format!(
        "a stored row cannot be read: job {id} has no definition; it may have been written by a newer Carillon"
    ))
}

impl<D: Database> Transaction<D> {
    /// Definitions, which are remembered, but not those that this transaction wrote: an id that is rolled back is used again.
    async fn read_definitions(&mut self, ids: &[JobId]) -> StoreResult<BTreeMap<JobId, StoreResult<Arc<Definition>>>> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.connection.definitions(ids).await?;
        if !self.wrote {
            let mut cache = self.shared.definitions();
            for (id, definition) in &found {
                definition.iter().for_each(|definition| cache.put(*id, definition.clone()));
            }
        }
        Ok(found)
    }

    /// Rows, each with its definition or why it has none. Reads see the newest commit, so a definition that is not of its row's
    /// generation ends the transaction as a conflict.
    async fn with_definitions(&mut self, states: Vec<StateRead>) -> StoreResult<Vec<(JobId, StoreResult<JobRow>)>> {
        let cached =
            |(id, state): &StateRead| Some((*id, self.shared.definition(*id, state.as_ref().ok()?.generation)?));
        let known: BTreeMap<JobId, Arc<Definition>> = states.iter().filter_map(cached).collect();
        let unknown: Vec<JobId> = states.iter().map(|(id, _)| *id).filter(|id| !known.contains_key(id)).collect();
        let mut read = self.read_definitions(&unknown).await?;
        let mut answer = Vec::with_capacity(states.len());
        for (id, state) in states {
            let definition = match known.get(&id) {
                Some(known) => Ok(known.clone()),
                None => read.remove(&id).unwrap_or_else(|| Err(undefined(id))),
            };
            if let (Ok(state), Ok(definition)) = (&state, &definition)
                && state.generation != definition.generation
            {
                return Err(self.connection.moved_on());
            }
            answer.push((id, state.and_then(|state| Ok(JobRow { definition: definition?, state: Arc::new(state) }))));
        }
        Ok(answer)
    }

    async fn rows_of(&mut self, query: StateQuery<'_>) -> StoreResult<Vec<(JobId, StoreResult<JobRow>)>> {
        let states = self.connection.states(query).await?;
        self.with_definitions(states).await
    }

    /// Rows of jobs, each of which must be readable.
    pub async fn read_rows(&mut self, query: StateQuery<'_>) -> StoreResult<Vec<JobRow>> {
        self.rows_of(query).await?.into_iter().map(|(_, row)| row).collect()
    }

    pub async fn read_by_id(&mut self, ids: &[JobId]) -> StoreResult<Vec<Option<JobRow>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.read_rows(StateQuery::Ids(ids)).await?;
        let found: BTreeMap<JobId, JobRow> = rows.into_iter().map(|row| (row.state.id, row)).collect();
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The rows that carry runs. Those that are cached at the version that the caller saw are not read.
    pub async fn read_of_runs(&mut self, runs: &[RunRef]) -> StoreResult<Vec<Option<JobRow>>> {
        let (mut rows, mut unknown) = (BTreeMap::new(), Vec::new());
        for at in runs {
            let RowKey::Job(id) = at.row else { continue };
            match self.shared.cached_row(at) {
                Some(row) => _ = rows.insert(id, row),
                None => unknown.push(id),
            }
        }
        // Two runs of one row that is cached at one of the versions: it is read.
        unknown.iter().for_each(|id| _ = rows.remove(id));
        rows.keys().for_each(|id| self.unread.take(*id));
        if !unknown.is_empty() {
            let read = self.read_rows(StateQuery::Ids(&unknown)).await?;
            rows.extend(read.into_iter().map(|row| (row.state.id, row)));
        }
        Ok(rows.into_values().map(Some).collect())
    }

    pub async fn read_by_key(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobRow>>> {
        let ids = self.connection.ids_by_name(keys).await?;
        let known: Vec<JobId> = ids.iter().copied().flatten().collect();
        let mut rows = self.read_by_id(&known).await?.into_iter();
        Ok(ids.into_iter().map(|id| id.and_then(|_| rows.next().flatten())).collect())
    }

    pub async fn read_by_run(&mut self, run: RunId) -> StoreResult<Option<JobRow>> {
        if let Some(row) = self.read_rows(StateQuery::HeldRun(run)).await?.pop() {
            return Ok(Some(row));
        }
        Ok(self.read_rows(StateQuery::WaitingRun(run)).await?.pop())
    }

    /// The rows that fall due first. Each partition is asked for twice its share; only if one may have more among the first, for as many
    /// as all together.
    pub async fn read_due(&mut self, request: &ClaimRequest) -> StoreResult<Vec<JobRow>> {
        let limit = request.runs.len();
        if request.partitions.is_empty() || limit == 0 || request.executors.is_empty() {
            return Ok(Vec::new());
        }
        let share = limit.div_ceil(request.partitions.len()).saturating_mul(2).min(limit);
        let mut due = self.connection.first_due(request, share).await?;
        let last = due.get(limit - 1).copied();
        let hides_more = |partition: &u16| {
            let of_it = |entry: &&(i64, JobId, u16)| entry.2 == *partition;
            let (count, farthest) = (due.iter().filter(of_it).count(), due.iter().rfind(of_it).copied());
            count >= share && (last.is_none() || farthest < last)
        };
        if share < limit && request.partitions.iter().any(hides_more) {
            due = self.connection.first_due(request, limit).await?;
        }
        let ids: Vec<JobId> = due.into_iter().take(limit).map(|(_, id, _)| id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: BTreeMap<JobId, JobRow> =
            self.read_readable(StateQuery::Ids(&ids)).await?.into_iter().map(|row| (row.state.id, row)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// One row of a newer binary must not keep this one from all the others.
    pub async fn read_readable(&mut self, query: StateQuery<'_>) -> StoreResult<Vec<JobRow>> {
        let mut found = Vec::new();
        for (id, row) in self.rows_of(query).await? {
            match row {
                Ok(row) => found.push(row),
                Err(StoreError::Permanent(problem)) => {
                    tracing::error!(job = %id, problem, "a job's row cannot be read")
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Concurrent runs, each with its job's definition.
    pub async fn read_concurrent(&mut self, query: ConcurrentQuery<'_>) -> StoreResult<Vec<ConcurrentJob>> {
        let found: Vec<ConcurrentRun> = self.connection.concurrent_runs(query).await?;
        let mut jobs: Vec<JobId> = found.iter().map(|row| row.key.job).collect();
        jobs.dedup();
        let definitions = self.read_definitions(&jobs).await?;
        let of = |id: JobId| definitions.get(&id).cloned().unwrap_or_else(|| Err(undefined(id)));
        found.into_iter().map(|row| Ok(ConcurrentJob { definition: of(row.key.job)?, row })).collect()
    }

    pub async fn read_concurrent_by_key(&mut self, keys: &[FiringKey]) -> StoreResult<Vec<Option<ConcurrentJob>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.read_concurrent(ConcurrentQuery::Keys(keys)).await?;
        let found: BTreeMap<FiringKey, ConcurrentJob> = found.into_iter().map(|run| (run.row.key, run)).collect();
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    pub async fn read_concurrent_by_run(&mut self, run: RunId) -> StoreResult<Option<ConcurrentJob>> {
        if let Some(found) = self.read_concurrent(ConcurrentQuery::HeldRun(run)).await?.pop() {
            return Ok(Some(found));
        }
        Ok(self.read_concurrent(ConcurrentQuery::WaitingRun(run)).await?.pop())
    }
}
