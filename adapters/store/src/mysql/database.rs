//! MySQL as the database of the cluster's protocol: its pools, and the statements that are not about one table.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use mysql_async::Row;

use crate::clock::boottime_us;
use crate::cluster::port::{ClockAnswer, Connection, Database, NotBegun, Opened, Opening, Pool};
use crate::feed::commits_within;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::open::Pools;
use crate::mysql::client::pool::{self, OpeningStatement};
use crate::mysql::client::server::Server;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::write::sessions::{STANDING, read_concurrent_runs, read_standing};
use crate::{ServerReport, StoreError, StoreResult};

/// All reads of the transaction see one state of the database.
const SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

const CLOCK: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// One MySQL or MariaDB database.
pub struct MySqlDatabase {
    pub(in crate::mysql) pools: Pools,
    pub(in crate::mysql) server: Arc<Server>,
}

impl MySqlDatabase {
    const fn pool(&self, pool: Pool) -> &pool::Pool {
        match pool {
            Pool::Heartbeats => &self.pools.heartbeats,
            Pool::Writers => &self.pools.writers,
            Pool::Readers => &self.pools.readers,
            Pool::SingleStatements => &self.pools.single_statements,
        }
    }
}

impl Database for MySqlDatabase {
    type Connection = MySqlConnection;

    /// A transaction that writes begins with its first statement, as its connection commits nothing by itself.
    async fn begin(
        &self,
        pool: Pool,
        _call: &'static str,
        opening: &Opening<'_>,
    ) -> Result<(MySqlConnection, Opened), NotBegun> {
        let first = match opening {
            Opening::Snapshot => OpeningStatement::asking(SNAPSHOT, vec![]),
            Opening::Clock(session) => clock_statement(*session),
            Opening::LockRows(ids) => OpeningStatement::locking(lock_statement(ids)),
        };
        let (mut connection, rows) = self.pool(pool).begin(&first).await?;
        let opened = match opening {
            Opening::Snapshot => Ok(Opened::Snapshot),
            Opening::Clock(session) => read_clock(rows, *session).map(Opened::Clock),
            Opening::LockRows(_) => connection.done().map(|done| Opened::LockRows(done.matched)),
        };
        match opened {
            Ok(opened) => Ok((connection, opened)),
            Err(error) => {
                connection.give_up().await;
                Err(error.into())
            }
        }
    }

    async fn connection(&self, pool: Pool, fresh: bool) -> StoreResult<MySqlConnection> {
        self.pool(pool).connection(fresh).await
    }

    /// Behind a failover an idle connection may lead to another server, so it is a new one.
    async fn current(&self) -> StoreResult<Option<MySqlConnection>> {
        match &self.pools.current {
            Some(pool) => pool.connection(true).await.map(Some),
            None => Ok(None),
        }
    }

    fn forget_idle(&self, pool: Pool) {
        self.pool(pool).clear();
    }

    fn commits_within(&self) -> Duration {
        commits_within(self.pools.statement_timeout, self.pools.holder_timeout)
    }

    fn boot_us(&self) -> u64 {
        boottime_us()
    }

    fn server(&self) -> Option<ServerReport> {
        self.server.report()
    }

    async fn in_time<T: Send>(&self, wait: impl Future<Output = T> + Send) -> Option<T> {
        tokio::time::timeout(self.pools.statement_timeout, wait).await.ok()
    }
}

impl Connection for MySqlConnection {
    fn is_lost(&self) -> bool {
        self.lost
    }

    fn has_conflict(&self) -> bool {
        self.conflict
    }

    fn note_conflict(&mut self) {
        self.conflict = true;
    }

    async fn clock(&mut self, session: Option<SessionId>) -> StoreResult<ClockAnswer> {
        let rows = clock_statement(session).ask(self).await?;
        read_clock(rows, session)
    }

    async fn lock_rows(&mut self, ids: &[u32]) -> StoreResult<u64> {
        Ok(self.run(&lock_statement(ids)).await?.matched)
    }

    async fn lock_row_ids(&mut self) -> StoreResult<Vec<u32>> {
        self.query("SELECT id FROM lock_row").await?.into_iter().map(|row| Columns::of(row).next()).collect()
    }

    async fn commit(&mut self) -> StoreResult<()> {
        self.send_commit().await
    }

    async fn give_up(self) {
        self.roll_back().await;
    }

    fn give_back(self) {
        self.return_to_pool();
    }
}

/// The question for the time and, with it, for the standing of a session.
fn clock_statement(session: Option<SessionId>) -> OpeningStatement<'static> {
    match session {
        None => OpeningStatement::asking(CLOCK, vec![]),
        Some(session) => OpeningStatement::asking(STANDING, vec![session.as_u64().into()]),
    }
}

fn read_clock(mut rows: Vec<Row>, session: Option<SessionId>) -> StoreResult<ClockAnswer> {
    let row = rows.pop().ok_or_else(|| StoreError::Retryable("the database tells no time".to_owned()))?;
    let mut from = Columns::of(row);
    let now_us = from.next()?;
    let standing = match session {
        None => None,
        Some(session) => {
            let concurrent_runs = read_concurrent_runs(&mut from)?;
            Some((read_standing(from, session)?, concurrent_runs))
        }
    };
    Ok(ClockAnswer { now_us, standing })
}

fn lock_statement(ids: &[u32]) -> String {
    format!("UPDATE lock_row FORCE INDEX (PRIMARY) SET epoch = epoch + 1 WHERE id IN ({})", list(ids))
}
