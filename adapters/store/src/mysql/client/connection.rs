//! One connection: every statement with a timeout, and a hard end where there is doubt.
//!
//! The driver has no hard close. A connection that is dropped drains and rolls back in its own time, while its statement may wait for a
//! lock on the server. So a connection in doubt is ended by KILL from another one, and never returns to its pool. The same holds if its
//! caller went away in the middle.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::lease::ChosenTiming;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::mysql::client::error::{self, StatementFailure};
use crate::mysql::client::pool::IdleConnections;
use crate::mysql::client::server::{DriverConnection, Server};
use crate::mysql::topology::BeatOfServer;
use crate::{StoreError, StoreResult};

/// The effect of a statement.
#[derive(Debug, Clone, Copy)]
pub(in crate::mysql) struct Done {
    /// Rows that matched, changed or not; for an insert, rows inserted.
    pub matched: u64,
    /// Rows of an insert that were there already.
    pub duplicates: u64,
}

/// A connection in use.
pub struct MySqlConnection {
    driver: Option<DriverConnection>,
    server: Arc<Server>,
    idle: IdleConnections,
    /// It is not to be used again.
    pub(in crate::mysql) lost: bool,
    silent: bool,
    /// An error said that somebody else was faster.
    pub(in crate::mysql) conflict: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl MySqlConnection {
    pub(in crate::mysql) fn new(
        driver: DriverConnection,
        server: Arc<Server>,
        idle: IdleConnections,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { driver: Some(driver), server, idle, lost: false, silent: false, conflict: false, permit }
    }

    /// Whether no answer came in time, and not even an error.
    pub(in crate::mysql) fn is_silent(&self) -> bool {
        self.silent
    }

    /// The right to another connection in place of this one.
    pub(in crate::mysql) fn take_permit(&mut self) -> Option<OwnedSemaphorePermit> {
        self.permit.take()
    }

    fn failed(&mut self, failure: StatementFailure) -> StoreError {
        self.lost |= failure.lost;
        if failure.not_writer
            && let Some(driver) = &self.driver
        {
            self.server.leave(driver);
        }
        self.conflict |= failure.conflict;
        failure.error
    }

    fn outcome<T>(&mut self, outcome: Result<mysql_async::Result<T>, tokio::time::error::Elapsed>) -> StoreResult<T> {
        match outcome {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(error::statement(&error))),
            Err(_) => {
                self.silent = true;
                Err(self.failed(error::silence(false)))
            }
        }
    }

    fn conn(&mut self) -> StoreResult<&mut Conn> {
        let usable = if self.lost { None } else { self.driver.as_mut() };
        usable.map(|driver| &mut driver.conn).ok_or_else(|| StoreError::Retryable("the connection is gone".to_owned()))
    }

    /// The name that its server has for itself.
    pub(in crate::mysql) fn server_identity(&self) -> Option<String> {
        self.driver.as_ref().map(|driver| driver.identity.clone())
    }

    /// The session timing of this node, once it is chosen.
    pub(in crate::mysql) fn timing(&self) -> Option<ChosenTiming> {
        self.server.timing()
    }

    /// The servers of all sessions were read.
    pub(in crate::mysql) fn see_sessions(&self, beats: &[BeatOfServer<'_>]) {
        self.server.see_sessions(beats);
    }

    /// How long a statement may take.
    pub(in crate::mysql) fn statement_timeout(&self) -> Duration {
        self.server.statement_timeout
    }

    /// A prepared statement that answers rows.
    pub(in crate::mysql) async fn select(
        &mut self,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> StoreResult<Vec<Row>> {
        let limit = self.server.statement_timeout;
        let params = params.into();
        let outcome = timeout(limit, self.conn()?.exec(sql, params)).await;
        self.outcome(outcome)
    }

    /// A statement without parameters that answers rows.
    pub(in crate::mysql) async fn query(&mut self, sql: &str) -> StoreResult<Vec<Row>> {
        let limit = self.server.statement_timeout;
        let outcome = timeout(limit, self.conn()?.query(sql)).await;
        self.outcome(outcome)
    }

    /// A prepared statement that writes.
    pub(in crate::mysql) async fn exec(&mut self, sql: &str, params: impl Into<Params> + Send) -> StoreResult<Done> {
        let limit = self.server.statement_timeout;
        let params = params.into();
        let outcome = timeout(limit, self.conn()?.exec_drop(sql, params)).await;
        self.outcome(outcome)?;
        self.done()
    }

    /// A statement without parameters that writes.
    pub(in crate::mysql) async fn run(&mut self, sql: &str) -> StoreResult<Done> {
        let limit = self.server.statement_timeout;
        let outcome = timeout(limit, self.conn()?.query_drop(sql)).await;
        self.outcome(outcome)?;
        self.done()
    }

    /// A statement without parameters that writes and commits by itself: only an acknowledged one is believed.
    pub(in crate::mysql) async fn run_alone(&mut self, sql: &str) -> StoreResult<Done> {
        let limit = self.server.statement_timeout;
        match timeout(limit, self.conn()?.query_drop(sql)).await {
            Ok(Ok(())) => self.done(),
            Ok(Err(error)) => Err(self.failed(error::single_statement(&error))),
            Err(_) => Err(self.failed(error::silence(true))),
        }
    }

    /// The effect of the last statement.
    pub(in crate::mysql) fn done(&mut self) -> StoreResult<Done> {
        let conn = self.conn()?;
        let duplicates = duplicates_in(&conn.info());
        Ok(Done { matched: conn.affected_rows(), duplicates })
    }

    /// Sends the COMMIT. Only an acknowledged one is believed.
    pub(in crate::mysql) async fn send_commit(&mut self) -> StoreResult<()> {
        let limit = self.server.statement_timeout;
        match timeout(limit, self.conn()?.query_drop("COMMIT")).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.failed(error::commit(&error))),
            Err(_) => Err(self.failed(error::silence(true))),
        }
    }

    /// Rolls back, and ends the connection where that fails or where it is in doubt.
    pub(in crate::mysql) async fn roll_back(mut self) {
        if self.lost || self.run("ROLLBACK").await.is_err() {
            if let Some(driver) = self.driver.take() {
                self.server.kill(driver).await;
            }
        } else {
            self.return_to_pool();
        }
    }

    /// Back to the pool; nothing is open on it.
    pub(in crate::mysql) fn return_to_pool(mut self) {
        if let Some(driver) = self.driver.take().filter(|_| !self.lost) {
            self.idle.put(driver);
        }
    }
}

impl Drop for MySqlConnection {
    /// The caller went away in the middle.
    fn drop(&mut self) {
        let Some(driver) = self.driver.take() else { return };
        let server = self.server.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { server.kill(driver).await });
        }
    }
}

/// From `Records: 3  Duplicates: 1  Warnings: 0`.
fn duplicates_in(info: &str) -> u64 {
    let after = info.split("Duplicates: ").nth(1).unwrap_or_default();
    after.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::duplicates_in;

    #[test]
    fn duplicates_are_read_from_the_servers_words() {
        assert_eq!(duplicates_in("Records: 3  Duplicates: 12  Warnings: 0"), 12);
        assert_eq!(duplicates_in(""), 0);
    }
}
