//! A transaction on one connection, the locks it takes, and how it ends.
//!
//! A lock is taken by writing its row, so that it also conflicts on servers where a locking read blocks nobody. Outside
//! of each stands a mutex of this process, taken first and ascending: callers of one process queue without a
//! connection.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;
use mysql_async::Row;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::cache::clock_estimate::{ClockEstimate, Estimate};
use crate::cache::definition_cache::Cache;
use crate::cache::row_cache::{Known, RowCache};
use crate::clock::Clock;
use crate::clock::boottime_us;
use crate::definition::Definition;
use crate::mysql::client::connection::Connection;
use crate::mysql::client::open::Options;
use crate::mysql::client::pool::{OpeningStatement, Pool, Unbegun};
use crate::mysql::encoding::rows::Columns;
use crate::mysql::write::losses::{ConcurrentRuns, STANDING, read_standing};
use crate::tables::Standing;
use crate::{ControlError, StoreError, StoreResult};

/// How often a transaction is tried that lost against another one.
pub(in crate::mysql) const TRIES: u32 = 8;

/// The lock row of the sessions; that of a partition is its number and 1.
const SESSIONS: u32 = 0;

/// The locks beside the rows that are written.
#[derive(Debug, Clone, Copy)]
pub(in crate::mysql) enum Locks<'a> {
    /// Nothing: known rows are compared and swapped.
    Rows,
    /// Nothing either, for a session that is asked for first.
    Standing(SessionId),
    /// The sessions.
    Sessions,
    /// A set of partitions, for a session that is asked for next.
    Partitions(&'a [u16], SessionId),
    /// The sessions and all partitions.
    All,
}

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy)]
pub(in crate::mysql) enum Kind {
    /// It sees one state of the database throughout.
    Reads,
    /// It begins with its first statement, as its connection commits nothing by itself.
    Writes,
}

/// One state of the database for all that is looked at together.
const BEGIN_READING: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

const CLOCK: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// The question for the time and, with it, for what a session must know of itself.
fn clock_of(session: Option<SessionId>) -> OpeningStatement<'static> {
    match session {
        None => OpeningStatement::asking(CLOCK, vec![]),
        Some(session) => OpeningStatement::asking(STANDING, vec![session.as_u64().into()]),
    }
}

/// The lock rows that a transaction begins with.
fn lock_ids(locks: Locks<'_>, partitions: u16) -> StoreResult<Vec<u32>> {
    match locks {
        Locks::Rows | Locks::Standing(_) => Ok(Vec::new()),
        Locks::Sessions | Locks::All => Ok(vec![SESSIONS]),
        Locks::Partitions(..) if !enabled(Guard::ClaimLocks) => Ok(Vec::new()),
        Locks::Partitions(wanted, _) => match wanted.iter().find(|partition| **partition >= partitions) {
            Some(unknown) => Err(unknown_partition(*unknown, partitions)),
            None => Ok(ids_of(wanted)),
        },
    }
}

fn unknown_partition(partition: u16, count: u16) -> StoreError {
    StoreError::Permanent(format!("there is no partition {partition} among {count}"))
}

/// Ascending.
fn ids_of(partitions: &[u16]) -> Vec<u32> {
    let ids: BTreeSet<u32> = partitions.iter().map(|partition| u32::from(*partition) + 1).collect();
    ids.into_iter().collect()
}

fn lock_sql(ids: &[u32]) -> String {
    format!("UPDATE lock_row FORCE INDEX (PRIMARY) SET epoch = epoch + 1 WHERE id IN ({})", list(ids))
}

/// Shared by all transactions of a store.
pub(in crate::mysql) struct Context {
    pub clock: Option<Arc<dyn Clock>>,
    pub partitions: u16,
    cache: Mutex<Cache>,
    held: Mutex<RowCache>,
    reckoning: Mutex<ClockEstimate>,
    pub statement_timeout: Duration,
    process_locks: Vec<Arc<AsyncMutex<()>>>,
}

impl Context {
    /// Of a store that was opened with `options` on a database of so many partitions.
    pub fn new(options: Options, partitions: u16) -> Self {
        let Options { clock, statement_timeout, held, .. } = options;
        let (cache, rows) = (Mutex::new(Cache::of(held)), Mutex::new(RowCache::of(held)));
        let process_locks = (0..=partitions).map(|_| Arc::default()).collect();
        let reckoning = Mutex::default();
        Self { clock, partitions, cache, held: rows, reckoning, statement_timeout, process_locks }
    }

    pub fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that this process holds, as far as they are known.
    pub fn held(&self) -> MutexGuard<'_, RowCache> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The estimate for a session, without asking the database.
    pub fn reckoned(&self, session: SessionId) -> Option<Estimate> {
        let known = self.reckoning().known(session, boottime_us())?;
        Some(Estimate { now: self.clock.as_ref().map_or(known.now, |clock| clock.now()), ..known })
    }

    pub fn reckoning(&self) -> MutexGuard<'_, ClockEstimate> {
        self.reckoning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what may be of commits that were lost.
    pub fn forget_lost(&self, losses_until: Option<Timestamp>) {
        self.cache().forget_lost(losses_until);
        self.held().forget_lost(losses_until);
    }

    /// Waits in line inside this process, ascending.
    pub async fn pass(&self, locks: Locks<'_>) -> StoreResult<Vec<OwnedMutexGuard<()>>> {
        let mut wanted: Vec<usize> = match locks {
            Locks::Rows | Locks::Standing(_) => Vec::new(),
            Locks::Sessions => vec![0],
            Locks::Partitions(partitions, _) => {
                partitions.iter().map(|partition| usize::from(*partition) + 1).collect()
            }
            Locks::All => (0..self.process_locks.len()).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        let passing = async {
            let mut passed = Vec::with_capacity(wanted.len());
            for process_lock in wanted.iter().filter_map(|at| self.process_locks.get(*at)) {
                passed.push(process_lock.clone().lock_owned().await);
            }
            passed
        };
        let late = |_| StoreError::Retryable("others of this process hold the locks for too long".to_owned());
        tokio::time::timeout(self.statement_timeout, passing).await.map_err(late)
    }
}

/// One transaction.
pub(in crate::mysql) struct Transaction {
    pub line: Connection,
    pub context: Arc<Context>,
    pub now_us: i64,
    /// Whether there is anything to commit.
    pub wrote: bool,
    pub known: Known,
    /// Whose standing is asked for with the time, and what it was.
    session: Option<SessionId>,
    pub standing: Option<(SessionId, Standing)>,
    /// The concurrent runs of the cluster when the standing was read.
    pub concurrent_runs: ConcurrentRuns,
    /// The lock rows that were written last.
    locked: Vec<u32>,
    _passed: Vec<OwnedMutexGuard<()>>,
}

impl Transaction {
    /// Begins with the first statement of the transaction: an idle connection that is dead fails there, before anything is
    /// done on it.
    pub async fn begin(pool: &Pool, context: Arc<Context>, kind: Kind, locks: Locks<'_>) -> Result<Self, Unbegun> {
        let passed = context.pass(locks).await?;
        let session = match locks {
            Locks::Standing(session) | Locks::Partitions(_, session) => Some(session),
            Locks::Rows | Locks::Sessions | Locks::All => None,
        };
        let ids = lock_ids(locks, context.partitions)?;
        let first = match (kind, &ids[..]) {
            (Kind::Reads, _) => OpeningStatement::asking(BEGIN_READING, vec![]),
            (Kind::Writes, []) => clock_of(session),
            (Kind::Writes, ids) => OpeningStatement::locking(lock_sql(ids)),
        };
        let (line, rows) = pool.begin(&first).await?;
        let mut this = Self::on(line, context, session, passed);
        let begun = match (kind, &ids[..]) {
            (Kind::Reads, _) => this.look_at_the_clock().await,
            (Kind::Writes, []) => this.read_clock(rows),
            (Kind::Writes, ids) => this.lock_taken(ids).await,
        };
        match begun {
            Ok(()) => Ok(this),
            Err(error) => {
                let again = this.line.has_conflict();
                this.line.give_up().await;
                Err(Unbegun { error, again })
            }
        }
    }

    /// No transaction at all: for one statement that reads, and asks for no time.
    pub fn looking(line: Connection, context: Arc<Context>) -> Self {
        Self::on(line, context, None, Vec::new())
    }

    fn on(
        line: Connection,
        context: Arc<Context>,
        session: Option<SessionId>,
        passed: Vec<OwnedMutexGuard<()>>,
    ) -> Self {
        Self {
            line,
            context,
            now_us: 0,
            wrote: false,
            known: Known::default(),
            session,
            standing: None,
            concurrent_runs: ConcurrentRuns::default(),
            locked: vec![],
            _passed: passed,
        }
    }

    /// The database's time, which stands still until the next lock is taken, and where the session stands.
    async fn look_at_the_clock(&mut self) -> StoreResult<()> {
        let rows = clock_of(self.session).ask(&mut self.line).await?;
        self.read_clock(rows)
    }

    fn read_clock(&mut self, mut rows: Vec<Row>) -> StoreResult<()> {
        let row = rows.pop().ok_or_else(|| StoreError::Retryable("the database tells no time".to_owned()))?;
        let mut from = Columns::of(row);
        let now_us = from.next()?;
        self.context.reckoning().hear(now_us, boottime_us());
        self.now_us = self.context.clock.as_ref().map_or(now_us, |clock| clock.now_us());
        if let Some(session) = self.session {
            self.concurrent_runs = ConcurrentRuns::read(&mut from)?;
            let standing = read_standing(from, session)?;
            self.context.reckoning().see(session, &standing);
            self.standing = Some((session, standing));
        }
        Ok(())
    }

    /// Writes the lock rows of partitions.
    pub async fn lock_partition_rows(&mut self, partitions: &[u16]) -> StoreResult<()> {
        let count = self.context.partitions;
        if let Some(unknown) = partitions.iter().find(|partition| **partition >= count) {
            return Err(unknown_partition(*unknown, count));
        }
        let ids = ids_of(partitions);
        if ids == self.locked {
            return Ok(());
        }
        if ids.is_empty() {
            return self.look_at_the_clock().await;
        }
        self.line.run(&lock_sql(&ids)).await?;
        self.lock_taken(&ids).await
    }

    /// Lock rows were written; each must be there. The time is that after the wait.
    async fn lock_taken(&mut self, ids: &[u32]) -> StoreResult<()> {
        if self.line.done()?.matched != ids.len() as u64 && enabled(Guard::LockRowExists) {
            return Err(self.missing_lock(ids).await?);
        }
        self.locked = ids.to_vec();
        self.look_at_the_clock().await
    }

    async fn missing_lock(&mut self, ids: &[u32]) -> StoreResult<StoreError> {
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
        self.context.cache().get(id, generation)
    }

    /// Remembers a definition; not one that this transaction wrote, for a number that is rolled back comes again.
    pub fn remember(&self, id: JobId, definition: &Arc<Definition>) {
        if !self.wrote {
            self.context.cache().put(id, definition.clone());
        }
    }

    /// Commits what succeeded, rolls back what did not. `true` when it lost against another one and may be tried again.
    pub async fn end<T, E: Ending>(mut self, answer: Result<T, E>) -> (Result<T, E>, bool) {
        let answer = match answer {
            Ok(answer) if self.wrote => self.line.commit().await.map(|()| answer).map_err(E::from),
            answer => answer,
        };
        self.known.end(&mut self.context.held(), answer.is_ok());
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
pub(in crate::mysql) trait Ending: From<StoreError> {
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
pub(in crate::mysql) fn lock_name(id: u32) -> String {
    if id == SESSIONS { "the sessions".to_owned() } else { format!("partition {}", id - 1) }
}

/// The sentence for lock rows that are not there.
pub(in crate::mysql) fn without_locks(ids: &[u32]) -> String {
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
pub(in crate::mysql) fn list<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
