//! Connections that are not in use, each with its session settings made once.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql_async::{Row, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::cluster::port::NotBegun;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error;
use crate::mysql::client::server::{DriverConnection, Server};
use crate::{StoreError, StoreResult};

/// Where idle connections stand, with the time at which they came back.
#[derive(Clone, Default)]
pub(in crate::mysql) struct IdleConnections(Arc<Mutex<Vec<(DriverConnection, Instant)>>>);

impl IdleConnections {
    pub fn put(&self, driver: DriverConnection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((driver, Instant::now()));
    }

    fn take_fresh(&self, server: &Server, fresh_for: Duration) -> Option<DriverConnection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(driver, since)| {
            since.elapsed() < fresh_for && !driver.conn.is_disconnected() && server.is_current(driver)
        });
        idle.pop().map(|(driver, _)| driver)
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The first statement of a transaction.
pub(in crate::mysql) struct OpeningStatement<'a> {
    pub sql: Cow<'a, str>,
    pub params: Vec<Value>,
    /// Silence may mean that it waits for a lock, and it is not asked again on another connection.
    pub waits: bool,
}

impl<'a> OpeningStatement<'a> {
    /// One that waits for nobody.
    pub fn asking(sql: &'a str, params: Vec<Value>) -> Self {
        Self { sql: sql.into(), params, waits: false }
    }

    /// One that takes locks.
    pub fn locking(sql: String) -> Self {
        Self { sql: sql.into(), params: Vec::new(), waits: true }
    }

    pub async fn ask(&self, connection: &mut MySqlConnection) -> StoreResult<Vec<Row>> {
        if self.params.is_empty() {
            connection.query(&self.sql).await
        } else {
            connection.select(&self.sql, self.params.clone()).await
        }
    }
}

/// A bounded number of connections with the same settings.
pub(in crate::mysql) struct Pool {
    server: Arc<Server>,
    settings: Vec<String>,
    idle: IdleConnections,
    permits: Arc<Semaphore>,
    /// One that was idle for longer may have been closed by the server.
    fresh_for: Duration,
}

impl Pool {
    pub fn new(server: Arc<Server>, settings: Vec<String>, size: usize, fresh_for: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(size.max(1)));
        Self { server, settings, idle: IdleConnections::default(), permits, fresh_for }
    }

    /// None of those that are idle is to be used: one of them turned out to be dead.
    pub fn clear(&self) {
        self.idle.clear();
    }

    /// Opens one connection ahead of need.
    pub async fn warm(&self) -> Result<(), mysql_async::Error> {
        self.idle.put(self.server.connect(&self.settings).await?);
        Ok(())
    }

    /// A connection on which the first statement of a transaction was run, and its answer. An idle one that turns out to be
    /// dead costs nothing: whatever it did was not committed.
    pub async fn begin(&self, first: &OpeningStatement<'_>) -> Result<(MySqlConnection, Vec<Row>), NotBegun> {
        let mut permit = Some(self.permit().await?);
        if let Some(driver) = self.idle.take_fresh(&self.server, self.fresh_for) {
            let mut connection = MySqlConnection::new(driver, self.server.clone(), self.idle.clone(), permit.take());
            match first.ask(&mut connection).await {
                Ok(rows) => return Ok((connection, rows)),
                Err(error) if !connection.lost => return Err(refused(connection, error).await),
                Err(error) => {
                    // The others are no better: the server was away.
                    self.idle.clear();
                    if first.waits && connection.is_silent() {
                        return Err(refused(connection, error).await);
                    }
                }
            }
            permit = connection.take_permit();
        }
        let mut connection = self.connect(permit).await?;
        match first.ask(&mut connection).await {
            Ok(rows) => Ok((connection, rows)),
            Err(error) => Err(refused(connection, error).await),
        }
    }

    /// A connection on which nothing was begun; a `fresh` one where an idle one turned out to be dead.
    pub async fn connection(&self, fresh: bool) -> StoreResult<MySqlConnection> {
        let permit = Some(self.permit().await?);
        if fresh {
            self.idle.clear();
        }
        match self.idle.take_fresh(&self.server, self.fresh_for) {
            Some(driver) => Ok(MySqlConnection::new(driver, self.server.clone(), self.idle.clone(), permit)),
            None => self.connect(permit).await,
        }
    }

    async fn permit(&self) -> StoreResult<OwnedSemaphorePermit> {
        let busy = || StoreError::Retryable("no connection to the database became free in time".to_owned());
        let waiting = timeout(self.server.statement_timeout, self.permits.clone().acquire_owned());
        waiting.await.map_err(|_| busy())?.map_err(|_| busy())
    }

    async fn connect(&self, permit: Option<OwnedSemaphorePermit>) -> StoreResult<MySqlConnection> {
        let driver =
            self.server.connect(&self.settings).await.map_err(|error| match error::statement(&error).error {
                StoreError::Permanent(text)
                | StoreError::Retryable(text)
                | StoreError::LockMissing(text)
                | StoreError::Unknown(text) => StoreError::Retryable(text),
            })?;
        Ok(MySqlConnection::new(driver, self.server.clone(), self.idle.clone(), permit))
    }
}

/// The transaction did not begin.
async fn refused(connection: MySqlConnection, error: StoreError) -> NotBegun {
    let conflict = connection.conflict;
    connection.roll_back().await;
    NotBegun { error, conflict }
}
