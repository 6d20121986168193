//! One connection whose statements are given one by one, so that scripts can be run here and on a real server alike.

use std::sync::Arc;

use carillon_domain::id::{JobId, SessionId};

use super::line::Line;
use super::locks::Row;
use super::server::{Shared, lock};
use super::transaction::{Locks, Transaction};
use crate::tables::Tables;
use crate::{NewSession, SessionState, StoreError};

/// How a server refuses a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// 1205: the lock was not granted in time, and the statement is rolled back.
    LockWaitTimeout,
    /// 1213: the transaction is rolled back, so that others go on.
    Deadlock,
    /// 1062: there is such a row.
    Duplicate,
    /// The connection is gone.
    Lost,
}

type Answer<T> = Result<T, Refused>;

/// A connection to the fake server.
pub struct Connection {
    server: Shared,
    transaction: Option<Transaction>,
}

fn refused(error: &StoreError) -> Refused {
    let text = error.to_string();
    let has = |number: &str| text.contains(number);
    if has("1205") {
        Refused::LockWaitTimeout
    } else if has("1213") {
        Refused::Deadlock
    } else if has("1062") {
        Refused::Duplicate
    } else {
        Refused::Lost
    }
}

impl Connection {
    pub(super) fn new(server: Shared) -> Self {
        Self { server, transaction: None }
    }

    /// `START TRANSACTION`.
    ///
    /// # Errors
    /// [`Refused::Lost`].
    pub async fn begin(&mut self) -> Answer<()> {
        self.transaction = None;
        let line = Line::begin(self.server.clone(), 0, "script").await.map_err(|error| refused(&error))?;
        let partitions = lock(&self.server).data.partitions;
        let begun = Transaction::new(line, partitions, Locks::Rows, Arc::default()).await;
        self.transaction = Some(begun.map_err(|error| refused(&error))?);
        Ok(())
    }

    fn open(&mut self) -> Answer<&mut Transaction> {
        self.transaction.as_mut().ok_or(Refused::Lost)
    }

    /// `UPDATE lock_row SET epoch = epoch + 1 WHERE id IN (...)`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn write_lock_rows(&mut self, ids: &[u32]) -> Answer<()> {
        self.open()?.lock_rows(ids).await.map_err(|error| refused(&error))
    }

    /// `UPDATE job_state SET version = version + 1 WHERE id = ? AND version = ?`: how many rows matched.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn write_job(&mut self, id: JobId, version: u64) -> Answer<u64> {
        self.open()?.bump_job(id, version).await.map_err(|error| refused(&error))
    }

    /// `SELECT version FROM job_state WHERE id = ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn read_job(&mut self, id: JobId) -> Answer<Option<u64>> {
        let rows = self.open()?.jobs_by_id(&[id]).await.map_err(|error| refused(&error))?;
        Ok(rows.into_iter().flatten().next().map(|row| row.state.version))
    }

    /// `INSERT INTO session`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn insert_session(&mut self, id: SessionId) -> Answer<()> {
        let (node, address, version) = ("n".to_owned(), "a".to_owned(), "v".to_owned());
        let new = NewSession { id, node, address, version };
        self.open()?.insert_session(&new).await.map_err(|error| refused(&error))
    }

    /// `UPDATE session SET seq = ?, state = 'live' WHERE id = ? AND state <> 'ended' AND seq < ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn beat(&mut self, id: SessionId, seq: u64) -> Answer<()> {
        self.open()?.beat(id, seq, SessionState::Live).await.map_err(|error| refused(&error))
    }

    /// `SELECT seq FROM session WHERE id = ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn read_session(&mut self, id: SessionId) -> Answer<Option<u64>> {
        let standing = self.open()?.standing(id).await.map_err(|error| refused(&error))?;
        Ok(standing.session.map(|own| own.beat.seq))
    }

    /// `COMMIT`.
    ///
    /// # Errors
    /// [`Refused::Lost`] where nothing can be told.
    pub async fn commit(&mut self) -> Answer<()> {
        let transaction = self.transaction.take().ok_or(Refused::Lost)?;
        let (answer, _) = transaction.end::<(), StoreError>(Ok(())).await;
        answer.map_err(|error| refused(&error))
    }

    /// `ROLLBACK`.
    pub async fn roll_back(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            let _told = transaction.end::<(), StoreError>(Err(StoreError::Retryable(String::new()))).await;
        }
    }

    /// The connection is closed, whatever is open on it.
    pub fn close(&mut self) {
        self.transaction = None;
    }
}

impl Transaction {
    async fn bump_job(&mut self, id: JobId, version: u64) -> Result<u64, StoreError> {
        self.lock_statement(&[Row::State(id)]).await?;
        let Some(mut write) = self.job_write(id)? else { return Ok(0) };
        let stands = write.before.as_ref().is_some_and(|before| before.version == version);
        if let Some(after) = write.after.as_mut().filter(|_| stands) {
            Arc::make_mut(after).version += 1;
            self.keep_job(write)?;
        }
        Ok(u64::from(stands))
    }
}
