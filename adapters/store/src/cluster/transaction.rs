//! A transaction on one connection: it takes its locks first, reads after, and says how it ended.

use std::sync::Arc;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::was_behind;
use carillon_domain::time::Timestamp;
use tokio::sync::OwnedMutexGuard;

use crate::alerts::AlertError;
use crate::cache::row_cache::UnreadRows;
use crate::cluster::locks::{Locks, ids_of, without_locks};
use crate::cluster::port::{
    ClockAnswer, ConcurrentRuns, Connection, Database, NotBegun, Opened, Opening, Pool, Sessions,
};
use crate::cluster::shared::StoreState;
use crate::tables::Standing;
use crate::{ControlError, StoreError, StoreResult};

/// How often a transaction is tried that lost against another one.
pub(crate) const TRIES: u32 = 8;

/// One transaction.
pub(crate) struct Transaction<D: Database> {
    database: Arc<D>,
    pub connection: D::Connection,
    pub shared: Arc<StoreState>,
    pub now_us: i64,
    /// Whether there is anything to commit.
    pub wrote: bool,
    /// Nothing is open on the connection: each statement reads for itself.
    at_a_glance: bool,
    /// The rows that it uses without reading them, and those that it writes.
    pub unread: UnreadRows,
    /// Whose standing is read with the time, and what it was.
    session: Option<SessionId>,
    pub standing: Option<(SessionId, Standing)>,
    /// The concurrent runs of the cluster when the standing was read.
    pub concurrent_runs: ConcurrentRuns,
    /// The newest sequence of that session that this transaction has read, if it has read any.
    seen_seq: Option<u64>,
    /// The lock rows that were written last.
    locked: Vec<u32>,
    _process_locks: Vec<OwnedMutexGuard<()>>,
}

impl<D: Database> Transaction<D> {
    /// A transaction that writes. Its first statement locks, or reads the time: a connection that is dead fails there, before anything
    /// is done on it.
    pub async fn begin(
        database: &Arc<D>,
        shared: &Arc<StoreState>,
        (pool, call): (Pool, &'static str),
        locks: Locks<'_>,
    ) -> Result<Self, NotBegun> {
        let taken = database.in_time(shared.take_process_locks(locks)).await;
        let late = || StoreError::Retryable("others of this process hold the locks for too long".to_owned());
        let process_locks = taken.ok_or_else(late)?;
        let (ids, session) = (locks.opening_ids(shared.partitions)?, locks.session());
        let opening = if ids.is_empty() { Opening::Clock(session) } else { Opening::LockRows(&ids) };
        let (connection, opened) = database.begin(pool, call, &opening).await?;
        let this = Self::on(database, shared, connection, session, process_locks);
        this.opened(&ids, opened).await
    }

    /// A transaction that reads one state of the database.
    pub async fn read(database: &Arc<D>, shared: &Arc<StoreState>, call: &'static str) -> Result<Self, NotBegun> {
        let (connection, opened) = database.begin(Pool::Readers, call, &Opening::Snapshot).await?;
        Self::on(database, shared, connection, None, Vec::new()).opened(&[], opened).await
    }

    /// No transaction at all, for reads of one statement, or of several that need not agree. It sends nothing at its beginning or its end.
    /// The time is the estimate. A connection that was closed while it was idle costs only a `fresh` one.
    pub async fn glance(database: &Arc<D>, shared: &Arc<StoreState>, fresh: bool) -> Result<Self, NotBegun> {
        let connection = database.connection(Pool::Readers, fresh).await?;
        let mut this = Self::on(database, shared, connection, None, Vec::new());
        this.at_a_glance = true;
        match shared.estimated_us(database.boot_us()) {
            Some(now_us) => this.now_us = now_us,
            None => return this.opened(&[], Opened::Snapshot).await,
        }
        Ok(this)
    }

    fn on(
        database: &Arc<D>,
        shared: &Arc<StoreState>,
        connection: D::Connection,
        session: Option<SessionId>,
        process_locks: Vec<OwnedMutexGuard<()>>,
    ) -> Self {
        Self {
            database: database.clone(),
            connection,
            shared: shared.clone(),
            now_us: 0,
            wrote: false,
            at_a_glance: false,
            unread: UnreadRows::default(),
            session,
            standing: None,
            concurrent_runs: ConcurrentRuns::default(),
            seen_seq: None,
            locked: Vec::new(),
            _process_locks: process_locks,
        }
    }

    async fn opened(mut self, ids: &[u32], opened: Opened) -> Result<Self, NotBegun> {
        let begun = match opened {
            Opened::Snapshot => self.read_clock().await,
            Opened::Clock(clock) => {
                self.take_clock(clock);
                Ok(())
            }
            Opened::LockRows(count) => self.lock_taken(ids, count).await,
        };
        match begun {
            Ok(()) => Ok(self),
            Err(error) => {
                let conflict = self.connection.has_conflict();
                self.connection.give_up().await;
                Err(NotBegun { error, conflict })
            }
        }
    }

    /// Reads the database's time, which stands still until the next lock is taken, and the standing of the session.
    async fn read_clock(&mut self) -> StoreResult<()> {
        let clock = self.connection.clock(self.session).await?;
        self.take_clock(clock);
        Ok(())
    }

    fn take_clock(&mut self, clock: ClockAnswer) {
        let ClockAnswer { now_us, standing } = clock;
        self.shared.estimate().hear(now_us, self.database.boot_us());
        self.now_us = self.shared.clock.as_ref().map_or(now_us, |clock| clock.now_us());
        if let (Some(session), Some((standing, concurrent_runs))) = (self.session, standing) {
            self.shared.estimate().see(session, &standing);
            self.concurrent_runs = concurrent_runs;
            self.standing = Some((session, standing));
        }
    }

    /// Locks partitions, unless they are those that are locked.
    pub async fn lock_partition_rows(&mut self, partitions: &[u16]) -> StoreResult<()> {
        let ids = ids_of(partitions, self.shared.partitions)?;
        if ids == self.locked {
            return Ok(());
        }
        if ids.is_empty() {
            return self.read_clock().await;
        }
        let count = self.connection.lock_rows(&ids).await?;
        self.lock_taken(&ids, count).await
    }

    /// Lock rows were written; each must be there. The time is that after the wait.
    async fn lock_taken(&mut self, ids: &[u32], count: u64) -> StoreResult<()> {
        if count != ids.len() as u64 && enabled(Guard::LockRowExists) {
            return Err(self.missing_lock(ids).await?);
        }
        self.locked = ids.to_vec();
        self.read_clock().await
    }

    async fn missing_lock(&mut self, ids: &[u32]) -> StoreResult<StoreError> {
        let found = self.connection.lock_row_ids().await?;
        let missing: Vec<u32> = ids.iter().copied().filter(|id| !found.contains(id)).collect();
        if missing.is_empty() {
            return Ok(self.connection.moved_on());
        }
        // A server that is behind may not have got the rows yet, and nobody is to be told to restore what is there.
        if let Some(mut current) = self.database.current().await? {
            let found = current.lock_row_ids().await;
            current.give_up().await;
            let found = found?;
            if missing.iter().all(|id| found.contains(id)) {
                return Ok(behind());
            }
        }
        Ok(StoreError::LockMissing(without_locks(&missing)))
    }

    /// Fails if the reads that seem to show lost commits were only behind.
    pub async fn confirm_loss(&mut self, session: SessionId) -> StoreResult<()> {
        let Some(mut current) = self.database.current().await? else { return Ok(()) };
        let seq = current_seq(&mut current, session).await;
        current.give_up().await;
        if was_behind(self.seen_seq, seq?) { Err(behind()) } else { Ok(()) }
    }

    /// The sequence of a session that is over, which is kept for a day.
    pub async fn read_spent_seq(&mut self, session: SessionId) -> StoreResult<Option<u64>> {
        let seq = self.connection.spent_seq(session).await?;
        self.seen_seq = self.seen_seq.max(seq);
        Ok(seq)
    }

    /// The standing of a session, which was read with the time if the transaction is for that session.
    pub async fn read_standing(&mut self, session: SessionId) -> StoreResult<Standing> {
        let standing = match self.standing.take() {
            Some((asked, standing)) if asked == session => standing,
            _ => {
                let answer = self.connection.clock(Some(session)).await?.standing;
                let none = || StoreError::Permanent("the database told no standing".to_owned());
                let (standing, concurrent_runs) = answer.ok_or_else(none)?;
                self.concurrent_runs = concurrent_runs;
                standing
            }
        };
        self.seen_seq = self.seen_seq.max(standing.session.as_ref().map(|own| own.beat.seq));
        self.shared.forget_lost(standing.losses_until);
        Ok(standing)
    }

    /// Whether its connection is dead.
    pub fn is_lost(&self) -> bool {
        self.connection.is_lost()
    }

    pub const fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    /// Commits if `answer` is a success, otherwise rolls back. `true` if it lost against another one and may be tried again.
    pub async fn end<T, E: CallError>(mut self, answer: Result<T, E>) -> (Result<T, E>, bool) {
        let answer = match answer {
            Ok(answer) if self.wrote => self.connection.commit().await.map(|()| answer).map_err(E::from),
            answer => answer,
        };
        self.unread.end(&mut self.shared.rows(), answer.is_ok());
        let again = answer.as_ref().is_err_and(CallError::is_certain) && self.connection.has_conflict();
        match answer {
            Ok(_) if self.wrote || self.at_a_glance => self.connection.give_back(),
            _ => self.connection.give_up().await,
        }
        (answer, again)
    }
}

async fn current_seq<C: Connection>(current: &mut C, session: SessionId) -> StoreResult<Option<u64>> {
    let live = current.clock(Some(session)).await?.standing.and_then(|(standing, _)| standing.session);
    match live {
        Some(own) => Ok(Some(own.beat.seq)),
        None => current.spent_seq(session).await,
    }
}

fn behind() -> StoreError {
    StoreError::Retryable(
        "the database server is behind the others: it misses what was acknowledged already".to_owned(),
    )
}

/// The errors of calls.
pub(crate) trait CallError: From<StoreError> {
    /// Whether the database failed, and certainly nothing of the transaction was applied.
    fn is_certain(&self) -> bool;
}

impl CallError for StoreError {
    fn is_certain(&self) -> bool {
        !matches!(self, StoreError::Unknown(_))
    }
}

impl CallError for ControlError {
    fn is_certain(&self) -> bool {
        matches!(self, ControlError::Store(error) if error.is_certain())
    }
}

impl CallError for AlertError {
    fn is_certain(&self) -> bool {
        matches!(self, AlertError::Store(error) if error.is_certain())
    }
}
