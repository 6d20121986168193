//! One connection whose statements are given one by one, so that scripts can be run here and on a real server alike.

use std::sync::Arc;

use carillon_domain::firing::JobState;
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use super::model_connection::ModelConnection;
use super::server::{Shared, lock};
use carillon_store::cluster::port::{self, ReadRows, Sessions, StateQuery, WriteRows};
use carillon_store::tables::Write;
use carillon_store::{NewSession, SessionState, StoreError};

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

/// A connection to the model.
pub struct ScriptConnection {
    server: Shared,
    connection: Option<ModelConnection>,
}

fn refused(error: StoreError) -> Refused {
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

impl ScriptConnection {
    pub(super) fn new(server: Shared) -> Self {
        Self { server, connection: None }
    }

    /// `START TRANSACTION`.
    ///
    /// # Errors
    /// [`Refused::Lost`].
    pub async fn begin(&mut self) -> Result<(), Refused> {
        self.connection = None;
        let mut connection = ModelConnection::begin(self.server.clone(), 0, "script");
        connection.statement().await.map_err(refused)?;
        self.connection = Some(connection);
        Ok(())
    }

    fn open(&mut self) -> Result<&mut ModelConnection, Refused> {
        self.connection.as_mut().ok_or(Refused::Lost)
    }

    /// `UPDATE lock_row SET epoch = epoch + 1 WHERE id IN (...)`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn write_lock_rows(&mut self, ids: &[u32]) -> Result<(), Refused> {
        port::Connection::lock_rows(self.open()?, ids).await.map(|_| ()).map_err(refused)
    }

    /// `UPDATE job_state SET version = version + 1 WHERE id = ? AND version = ?`: how many rows matched.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn write_job(&mut self, id: JobId, version: u64) -> Result<u64, Refused> {
        let read = lock(&self.server).data.row(id);
        let Some(row) = read else { return Ok(0) };
        let at = |version| Some(Arc::new(JobState { version, ..JobState::clone(&row.state) }));
        let write = Write { before: at(version), after: at(version + 1), definition: row.definition.clone() };
        self.open()?.update_states(&[write]).await.map_err(refused)
    }

    /// `SELECT version FROM job_state WHERE id = ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn read_job(&mut self, id: JobId) -> Result<Option<u64>, Refused> {
        let rows = self.open()?.states(StateQuery::Ids(&[id])).await.map_err(refused)?;
        Ok(rows.into_iter().find_map(|(_, state)| state.ok()).map(|state| state.version))
    }

    /// `INSERT INTO session`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn insert_session(&mut self, id: SessionId) -> Result<(), Refused> {
        let (node, address, version) = ("n".to_owned(), "a".to_owned(), "v".to_owned());
        let new = NewSession { id, node, address, version };
        self.open()?.insert_session(&new, Timestamp::EPOCH).await.map_err(refused)
    }

    /// `UPDATE session SET seq = ?, state = 'live' WHERE id = ? AND state <> 'ended' AND seq < ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn beat(&mut self, id: SessionId, seq: u64) -> Result<(), Refused> {
        self.open()?.write_heartbeat(id, seq, SessionState::Live, Timestamp::EPOCH).await.map_err(refused)
    }

    /// `SELECT seq FROM session WHERE id = ?`.
    ///
    /// # Errors
    /// As the server refuses it.
    pub async fn read_session(&mut self, id: SessionId) -> Result<Option<u64>, Refused> {
        let sessions = self.open()?.sessions(false).await.map_err(refused)?;
        Ok(sessions.into_iter().find(|view| view.beat.id == id).map(|view| view.beat.seq))
    }

    /// `COMMIT`.
    ///
    /// # Errors
    /// [`Refused::Lost`] where nothing can be told.
    pub async fn commit(&mut self) -> Result<(), Refused> {
        let mut connection = self.connection.take().ok_or(Refused::Lost)?;
        let committed = connection.send_commit().await.map_err(refused);
        match committed {
            Ok(()) => connection.forget(),
            Err(_) => connection.roll_back().await,
        }
        committed
    }

    /// `ROLLBACK`.
    pub async fn roll_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.roll_back().await;
        }
    }

    /// The connection is closed, whatever is open on it.
    pub fn close(&mut self) {
        self.connection = None;
    }
}
