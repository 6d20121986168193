//! A transaction on one connection, the locks it takes, and how it ends.
//!
//! A lock is taken by writing its row, so that it also conflicts on servers where a locking read blocks nobody. Outside
//! of each stands a mutex of this process, taken first and ascending: callers of one process queue without a
//! connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use carillon_domain::guard::{Guard, stands};
use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::line::Line;
use super::rows::Columns;
use crate::store::clock::Clock;
use crate::store::definition::Definition;
use crate::store::sqlite::cache::Cache;
use crate::store::{ControlError, StoreError};

type Answer<T> = Result<T, StoreError>;

/// How often a transaction is tried that lost against another one.
pub(super) const TRIES: u32 = 8;

/// The lock row of the sessions; that of a partition is its number and 1.
const SESSIONS: u32 = 0;

/// What is locked besides the rows that are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Locks<'a> {
    /// Nothing: known rows are compared and swapped.
    Rows,
    /// The sessions.
    Sessions,
    /// A set of partitions; the operation takes their lock rows.
    Partitions(&'a [u16]),
    /// The sessions and all partitions.
    All,
}

/// What all transactions of a store share.
pub(super) struct Context {
    pub clock: Option<Arc<dyn Clock>>,
    pub partitions: u16,
    pub cache: Mutex<Cache>,
    pub statement_timeout: Duration,
    turnstiles: Vec<Arc<AsyncMutex<()>>>,
}

impl Context {
    pub fn new(clock: Option<Arc<dyn Clock>>, partitions: u16, statement_timeout: Duration) -> Self {
        let turnstiles = (0..=partitions).map(|_| Arc::default()).collect();
        Self { clock, partitions, cache: Mutex::default(), statement_timeout, turnstiles }
    }

    /// Waits in line inside this process, ascending.
    pub async fn pass(&self, locks: Locks<'_>) -> Answer<Vec<OwnedMutexGuard<()>>> {
        let mut wanted: Vec<usize> = match locks {
            Locks::Rows => Vec::new(),
            Locks::Sessions => vec![0],
            Locks::Partitions(partitions) => partitions.iter().map(|partition| usize::from(*partition) + 1).collect(),
            Locks::All => (0..self.turnstiles.len()).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        let passing = async {
            let mut passed = Vec::with_capacity(wanted.len());
            for turnstile in wanted.iter().filter_map(|at| self.turnstiles.get(*at)) {
                passed.push(turnstile.clone().lock_owned().await);
            }
            passed
        };
        let late = |_| StoreError::Retryable("others of this process hold the locks for too long".to_owned());
        tokio::time::timeout(self.statement_timeout, passing).await.map_err(late)
    }
}

/// One transaction.
pub(super) struct Transaction {
    pub line: Line,
    pub context: Arc<Context>,
    pub now_us: i64,
    /// Whether there is anything to commit.
    pub wrote: bool,
    _passed: Vec<OwnedMutexGuard<()>>,
}

impl Transaction {
    /// On a line on which it was begun.
    pub async fn new(
        line: Line,
        context: Arc<Context>,
        locks: Locks<'_>,
        passed: Vec<OwnedMutexGuard<()>>,
    ) -> Answer<Self> {
        let mut this = Self { line, context, now_us: 0, wrote: false, _passed: passed };
        let begun = match locks {
            Locks::Rows => this.look_at_the_clock().await,
            Locks::Sessions | Locks::All => this.lock(&[SESSIONS]).await,
            Locks::Partitions(_) => Ok(()),
        };
        match begun {
            Ok(()) => Ok(this),
            Err(error) => {
                this.line.give_up().await;
                Err(error)
            }
        }
    }

    /// No transaction at all: for one statement that reads, and asks for no time.
    pub fn looking(line: Line, context: Arc<Context>) -> Self {
        Self { line, context, now_us: 0, wrote: false, _passed: Vec::new() }
    }

    /// The database's time, which stands still until the next lock is taken.
    async fn look_at_the_clock(&mut self) -> Answer<()> {
        self.now_us = match &self.context.clock {
            Some(clock) => clock.now_us(),
            None => {
                let sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
                let row = self.line.query(sql).await?.pop();
                let row = row.ok_or_else(|| StoreError::Retryable("the database tells no time".to_owned()))?;
                Columns::of(row).next()?
            }
        };
        Ok(())
    }

    /// Writes the lock rows of partitions.
    pub async fn lock_partition_rows(&mut self, partitions: &[u16]) -> Answer<()> {
        let count = self.context.partitions;
        if let Some(unknown) = partitions.iter().find(|partition| **partition >= count) {
            return Err(StoreError::Permanent(format!("there is no partition {unknown} among {count}")));
        }
        let mut ids: Vec<u32> = partitions.iter().map(|partition| u32::from(*partition) + 1).collect();
        ids.sort_unstable();
        ids.dedup();
        self.lock(&ids).await
    }

    /// Writes lock rows; each must be there. The time is that after the wait.
    async fn lock(&mut self, ids: &[u32]) -> Answer<()> {
        if !ids.is_empty() {
            let list = list(ids);
            let sql = format!("UPDATE lock_row FORCE INDEX (PRIMARY) SET epoch = epoch + 1 WHERE id IN ({list})");
            if self.line.run(&sql).await?.matched != ids.len() as u64 && stands(Guard::LockThere) {
                return Err(self.missing_lock(ids).await?);
            }
        }
        self.look_at_the_clock().await
    }

    async fn missing_lock(&mut self, ids: &[u32]) -> Answer<StoreError> {
        let mut found = Vec::new();
        for row in self.line.query("SELECT id FROM lock_row").await? {
            found.push(Columns::of(row).next::<u32>()?);
        }
        let missing: Vec<u32> = ids.iter().copied().filter(|id| !found.contains(id)).collect();
        if missing.is_empty() {
            return Ok(self.moved_on());
        }
        Ok(StoreError::LockMissing(without_locks(&missing)))
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    /// A row is not at the version that was read.
    pub fn moved_on(&mut self) -> StoreError {
        self.line.note_conflict();
        StoreError::Retryable("a row has moved on since it was read".to_owned())
    }

    pub fn cached(&self, id: JobId, generation: u64) -> Option<Arc<Definition>> {
        self.context.cache.lock().unwrap_or_else(PoisonError::into_inner).get(id, generation)
    }

    /// Remembers a definition; not one that this transaction wrote, for a number that is rolled back comes again.
    pub fn remember(&self, id: JobId, definition: &Arc<Definition>) {
        if !self.wrote {
            self.context.cache.lock().unwrap_or_else(PoisonError::into_inner).put(id, definition.clone());
        }
    }

    /// Commits what succeeded, rolls back what did not. `true` when it lost against another one and may be tried again.
    pub async fn end<T, E: Ending>(mut self, answer: Result<T, E>) -> (Result<T, E>, bool) {
        let answer = match answer {
            Ok(answer) if self.wrote => self.line.commit().await.map(|()| answer).map_err(E::from),
            answer => answer,
        };
        let database_failed = answer.as_ref().is_err_and(Ending::is_of_the_database);
        let again = database_failed && self.line.has_conflict();
        match answer {
            Ok(_) if self.wrote => self.line.give_back(),
            _ => self.line.give_up().await,
        }
        (answer, again)
    }
}

/// The errors of operations.
pub(super) trait Ending: From<StoreError> {
    /// Whether it is the database that failed, and nothing of the transaction was applied.
    fn is_of_the_database(&self) -> bool;
}

impl Ending for StoreError {
    fn is_of_the_database(&self) -> bool {
        !matches!(self, StoreError::Unknown(_))
    }
}

impl Ending for ControlError {
    fn is_of_the_database(&self) -> bool {
        matches!(self, ControlError::Store(error) if error.is_of_the_database())
    }
}

/// The name of a lock row in the table and in errors.
pub(super) fn lock_name(id: u32) -> String {
    if id == SESSIONS { "the sessions".to_owned() } else { format!("partition {}", id - 1) }
}

/// The sentence for lock rows that are not there.
pub(super) fn without_locks(ids: &[u32]) -> String {
    let names: Vec<String> = ids.iter().map(|id| lock_name(*id)).collect();
    let rows: Vec<String> = ids.iter().map(|id| format!("({id}, '{}', 0)", lock_name(*id))).collect();
    format!(
        "the lock row of {} is missing from table lock_row, and without it two nodes may take the same work: stop all \
         nodes, restore it with INSERT INTO lock_row (id, name, epoch) VALUES {}, then start them again",
        names.join(", "),
        rows.join(", ")
    )
}

/// Numbers for an `IN`.
pub(super) fn list<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
