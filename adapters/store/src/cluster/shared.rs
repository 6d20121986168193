//! The state that all transactions of a store share: caches, and the process locks in front of the lock rows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_domain::id::{JobId, SessionId};
use carillon_domain::node::port::RunRef;
use carillon_domain::time::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::cache::clock_estimate::{ClockEstimate, Estimate};
use crate::cache::definition_cache::Cache;
use crate::cache::row_cache::RowCache;
use crate::clock::Clock;
use crate::cluster::locks::Locks;
use crate::definition::Definition;
use crate::reports::namespaces::JobNamespaces;
use crate::tables::JobRow;

/// Shared by all transactions of a store.
pub(crate) struct StoreState {
    /// Tells the time in place of the database; for tests.
    pub clock: Option<Arc<dyn Clock>>,
    pub partitions: u16,
    definitions: Mutex<Cache>,
    rows: Mutex<RowCache>,
    estimate: Mutex<ClockEstimate>,
    /// Of jobs whose records were counted.
    pub namespaces: JobNamespaces,
    process_locks: Vec<Arc<AsyncMutex<()>>>,
}

impl StoreState {
    /// For a node that holds at most `held` firings.
    pub fn new(clock: Option<Arc<dyn Clock>>, partitions: u16, held: usize) -> Self {
        Self {
            clock,
            partitions,
            definitions: Mutex::new(Cache::of(held)),
            rows: Mutex::new(RowCache::of(held)),
            estimate: Mutex::default(),
            namespaces: JobNamespaces::default(),
            process_locks: (0..=partitions).map(|_| Arc::default()).collect(),
        }
    }

    pub fn definitions(&self) -> MutexGuard<'_, Cache> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that this process holds, as far as they are cached.
    pub fn rows(&self) -> MutexGuard<'_, RowCache> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn estimate(&self) -> MutexGuard<'_, ClockEstimate> {
        self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The estimate for a session, without a question to the database.
    pub fn estimate_of(&self, session: SessionId, boot_us: u64) -> Option<Estimate> {
        let known = self.estimate().known(session, boot_us)?;
        Some(Estimate { now: self.clock.as_ref().map_or(known.now, |clock| clock.now()), ..known })
    }

    /// The database's time by the estimate, in microseconds, if it was told lately.
    pub fn estimated_us(&self, boot_us: u64) -> Option<i64> {
        let estimated_us = self.estimate().now_us(boot_us)?;
        Some(self.clock.as_ref().map_or(estimated_us, |clock| clock.now_us()))
    }

    pub fn definition(&self, id: JobId, generation: u64) -> Option<Arc<Definition>> {
        self.definitions().get(id, generation)
    }

    /// The job's row that carries the run, as this process wrote it, with its definition.
    pub fn cached_row(&self, at: &RunRef) -> Option<JobRow> {
        let state = self.rows().get(at)?.clone();
        let definition = self.definition(state.id, state.generation)?;
        Some(JobRow { state, definition })
    }

    /// Forgets rows that may be of commits that were lost.
    pub fn forget_lost(&self, losses_until: Option<Timestamp>) {
        self.definitions().forget_lost(losses_until);
        self.rows().forget_lost(losses_until);
        self.namespaces.forget_lost(losses_until);
    }

    /// Takes the process locks, ascending: callers of one process queue here, without a connection.
    pub async fn take_process_locks(&self, locks: Locks<'_>) -> Vec<OwnedMutexGuard<()>> {
        let wanted = locks.in_process(self.process_locks.len());
        let mut taken = Vec::with_capacity(wanted.len());
        for process_lock in wanted.iter().filter_map(|at| self.process_locks.get(*at)) {
            taken.push(process_lock.clone().lock_owned().await);
        }
        taken
    }
}
