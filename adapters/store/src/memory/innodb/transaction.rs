//! A transaction on one connection, the locks that its statements take, and how it ends.

use std::sync::{Arc, MutexGuard};

use carillon_domain::firing::JobState;
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use super::super::data::Data;
use super::Memory;
use super::line::Line;
use super::locks::Row;
use crate::cache::row_cache::{Known, RowCache};
use crate::tables::{self, JobRow, Tables, Write, WriteSet};
use crate::{SessionView, StoreError, StoreResult};

/// The lock row of the sessions; that of a partition is its number and 1.
const SESSIONS: u32 = 0;

/// What is locked besides the rows that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locks {
    /// Nothing, or what the operation locks itself.
    Rows,
    /// The sessions.
    Sessions,
}

/// One transaction.
pub(super) struct Transaction {
    pub line: Line,
    pub partitions: u16,
    pub now_us: i64,
    wrote: bool,
    pub known: Known,
    pub memory: Arc<Memory>,
}

impl Transaction {
    pub async fn new(line: Line, partitions: u16, locks: Locks, memory: Arc<Memory>) -> StoreResult<Self> {
        let mut this = Self { line, partitions, now_us: 0, wrote: false, known: Known::default(), memory };
        let begun = match locks {
            Locks::Rows => this.look_at_the_clock().await,
            Locks::Sessions => this.lock_rows(&[SESSIONS]).await,
        };
        match begun {
            Ok(()) => Ok(this),
            Err(error) => {
                this.line.give_up().await;
                Err(error)
            }
        }
    }

    pub fn held(&self) -> MutexGuard<'_, RowCache> {
        self.memory.held()
    }

    /// A session was looked at.
    pub fn saw(&mut self, session: SessionId, standing: &tables::Standing) -> StoreResult<()> {
        self.memory.reckoning().see(session, standing);
        Ok(())
    }

    pub async fn look_at_the_clock(&mut self) -> StoreResult<()> {
        self.now_us = self.line.read(|data| data.clock.now_us()).await?;
        let now = self.now();
        self.line.write(|server, trx| server.own(trx).map(|own| own.now = now))?;
        Ok(())
    }

    /// Writes lock rows. The time is that after the wait.
    pub async fn lock_rows(&mut self, ids: &[u32]) -> StoreResult<()> {
        if !ids.is_empty() {
            self.line.statement().await?;
            let rows: Vec<Row> = ids.iter().map(|id| Row::Lock(*id)).collect();
            self.line.lock(&rows).await?;
            self.line.write(|server, trx| server.own(trx).map(|own| own.epochs.extend(ids)))?;
        }
        self.look_at_the_clock().await
    }

    /// Commits what succeeded, rolls back what did not. `true` when it lost against another one and may be tried again.
    pub async fn end<T, E>(mut self, answer: Result<T, E>) -> (Result<T, E>, bool)
    where
        E: From<StoreError>,
        for<'a> &'a E: Into<Failed>,
    {
        let answer = match answer {
            Ok(answer) if self.wrote => self.line.commit().await.map(|()| answer).map_err(E::from),
            answer => answer,
        };
        self.known.end(&mut self.memory.held(), answer.is_ok());
        let failed = answer.as_ref().is_err_and(|error| matches!(error.into(), Failed::OfTheDatabase));
        let again = failed && self.line.has_conflict();
        match answer {
            Ok(_) if self.wrote => self.line.give_back(),
            _ => self.line.give_up().await,
        }
        (answer, again)
    }

    /// A statement that locks rows and writes them if they are as it wants them.
    pub async fn statement(&mut self, rows: &[Row]) -> StoreResult<()> {
        self.line.statement().await?;
        self.wrote = true;
        self.line.lock(rows).await
    }

    /// Updates, then deletions, then insertions of one table.
    pub async fn write_rows<R>(
        &mut self,
        writes: &[Write<R>],
        row: impl Fn(&R) -> Row,
        matches: impl Fn(&Data, &R) -> bool,
        known: impl Fn(&Data, &R) -> bool,
    ) -> StoreResult<()> {
        for gone in [false, true] {
            let of_kind = writes.iter().filter(|write| write.after.is_none() == gone);
            let before: Vec<&R> = of_kind.filter_map(|write| write.before.as_deref()).collect();
            if before.is_empty() {
                continue;
            }
            let rows: Vec<Row> = before.iter().map(|before| row(before)).collect();
            self.statement(&rows).await?;
            let all = self
                .line
                .write(|server, trx| server.read(trx, |data| before.iter().all(|before| matches(data, before))))?;
            if !all {
                return Err(self.line.moved_on());
            }
        }
        let fresh = |write: &Write<R>| write.before.is_none();
        let after: Vec<&R> =
            writes.iter().filter(|write| fresh(write)).filter_map(|write| write.after.as_deref()).collect();
        if after.is_empty() {
            return Ok(());
        }
        let rows: Vec<Row> = after.iter().map(|after| row(after)).collect();
        self.statement(&rows).await?;
        let taken =
            self.line.write(|server, trx| server.read(trx, |data| after.iter().any(|after| known(data, after))))?;
        if taken { Err(self.line.duplicate()) } else { Ok(()) }
    }

    pub async fn write_session(
        &mut self,
        id: SessionId,
        change: impl FnOnce(&mut SessionView, Timestamp),
    ) -> StoreResult<()> {
        self.statement(&[Row::Session(id)]).await?;
        let now = self.now();
        self.line.write(|server, trx| {
            let view = server.read(trx, |data| data.sessions.get(&id).cloned());
            if let (Some(mut view), Some(own)) = (view, server.own(trx)) {
                change(&mut view, now);
                own.sessions.insert(id, Some(view));
            }
        })
    }
}

/// Whether it is the database that failed, and nothing of the transaction was applied.
pub(super) enum Failed {
    OfTheDatabase,
    Otherwise,
}

impl From<&StoreError> for Failed {
    fn from(error: &StoreError) -> Self {
        if matches!(error, StoreError::Unknown(_)) { Failed::Otherwise } else { Failed::OfTheDatabase }
    }
}

impl From<&crate::ControlError> for Failed {
    fn from(error: &crate::ControlError) -> Self {
        match error {
            crate::ControlError::Store(error) => error.into(),
            _ => Failed::Otherwise,
        }
    }
}

/// For scripts: single statements over a job's row.
impl Transaction {
    pub async fn lock_statement(&mut self, rows: &[Row]) -> StoreResult<()> {
        self.statement(rows).await
    }

    pub fn job_write(&mut self, id: JobId) -> StoreResult<Option<Write<JobState>>> {
        let row = self.line.write(|server, trx| server.read(trx, |data| data.row(id)))?;
        let write =
            |row: JobRow| Write { before: Some(row.state.clone()), after: Some(row.state), definition: row.definition };
        Ok(row.map(write))
    }

    pub fn keep_job(&mut self, write: Write<JobState>) -> StoreResult<()> {
        let changes = WriteSet { jobs: vec![write], ..WriteSet::default() };
        self.line.write(|server, trx| server.own(trx).map(|own| own.changes.push(changes)))?;
        Ok(())
    }
}
