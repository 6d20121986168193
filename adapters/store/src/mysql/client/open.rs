//! Opening a database: what its server must be, the settings of each session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::clock::Clock;
use crate::mysql::client::address::Address;
use crate::mysql::client::error::OpenError;
use crate::mysql::client::pool::Pool;
use crate::mysql::client::server::Server;

/// The choices when a database is opened.
#[derive(Clone)]
pub struct Options {
    /// How many partitions a *new* database gets; an existing one keeps its own.
    pub partitions: u16,
    /// How many connections write at the same time, heartbeats aside.
    pub writers: usize,
    /// How many connections read for people and look ahead.
    pub readers: usize,
    /// How long one statement may take, its waiting for locks included.
    pub statement_timeout: Duration,
    /// After how long the server throws out a transaction whose client says nothing: half of `self_kill_after`.
    pub holder_timeout: Duration,
    /// How many firings the node holds at the most: so many rows and definitions are remembered.
    pub held: usize,
    /// Declares that a Galera cluster is written through one server only.
    pub single_writer: bool,
    /// Tells the time in place of the server; for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Plays an older binary, which knows the schema up to this version; for tests.
    #[doc(hidden)]
    pub knows_up_to: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            partitions: 16,
            writers: 8,
            readers: 4,
            statement_timeout: Duration::from_secs(5),
            holder_timeout: Duration::from_secs(6),
            held: 10_000,
            single_writer: false,
            clock: None,
            knows_up_to: None,
        }
    }
}

/// The connections of a store.
pub(in crate::mysql) struct Pools {
    /// Heartbeats: one connection, opened before all others.
    pub heartbeats: Pool,
    pub writers: Pool,
    pub readers: Pool,
    /// For statements that commit by themselves.
    pub single_statements: Pool,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// See [`Options::holder_timeout`].
    pub holder_timeout: Duration,
}

/// How many statements that commit by themselves are on their way at a time: so many starts are.
const SINGLE_STATEMENTS: usize = 2;

/// The server's own description.
pub(in crate::mysql) struct Variables(BTreeMap<String, String>);

impl Variables {
    pub async fn read(conn: &mut Conn) -> Result<Self, mysql_async::Error> {
        let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'super_read_only', \
                   'innodb_read_only', 'log_bin', 'binlog_format', 'wsrep_on', 'innodb_flush_log_at_trx_commit', \
                   'sync_binlog', 'max_allowed_packet')";
        let rows: Vec<(String, String)> = conn.query(sql).await?;
        Ok(Self(rows.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect()))
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    fn is_on(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|found| !["0", "off", "", "none"].contains(&found.to_lowercase().as_str()))
    }

    fn is_mariadb(&self) -> bool {
        self.0.get("version").is_some_and(|version| version.contains("MariaDB"))
    }

    /// Refuses a server on which promises cannot be kept, each with what to do about it.
    pub fn check(&self, address: &Address, options: &Options) -> Result<(), OpenError> {
        if let Some(name) =
            ["read_only", "super_read_only", "innodb_read_only"].into_iter().find(|name| self.is_on(name))
        {
            return Err(
                address.unfit(format!("{name} is on: it is a replica, or it was closed for writing; name the primary"))
            );
        }
        if self.is_on("log_bin") && self.is("binlog_format", "STATEMENT") {
            return Err(address.unfit(
                "binlog_format is STATEMENT, which loses the order of transactions under READ COMMITTED; set it to ROW",
            ));
        }
        if self.is_on("wsrep_on") && !options.single_writer {
            return Err(address.unfit(
                "wsrep_on is on: in a Galera cluster two servers grant the same lock; write through one server only, \
                 and say so with store.single_writer = true",
            ));
        }
        let packet = self.0.get("max_allowed_packet").and_then(|bytes| bytes.parse::<u64>().ok());
        if packet.is_some_and(|bytes| bytes < 16 << 20) {
            return Err(
                address.unfit("max_allowed_packet is below 16M, and outputs would not fit; set it to 16M or more")
            );
        }
        if !self.is("innodb_flush_log_at_trx_commit", "1") {
            tracing::warn!(
                place = address.place,
                "innodb_flush_log_at_trx_commit is not 1: the server acknowledges what a crash may take back"
            );
        }
        if self.is_on("log_bin") && !self.is("sync_binlog", "1") {
            tracing::warn!(
                place = address.place,
                "sync_binlog is not 1: a crash may leave replicas behind the primary"
            );
        }
        Ok(())
    }

    /// The settings of every session. A transaction whose client is frozen is thrown out after `holder_timeout`:
    /// MariaDB has a setting for that, MySQL only the one for idle connections.
    fn settings(&self, options: &Options, isolation: &str) -> Vec<String> {
        let waits = options.statement_timeout.as_secs().saturating_sub(1).max(1);
        let idle = options.holder_timeout.as_secs().max(1);
        let thrown_out = if self.is_mariadb() {
            format!("wait_timeout = 3600, idle_transaction_timeout = {idle}")
        } else {
            format!("wait_timeout = {idle}")
        };
        vec![
            format!(
                "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                 innodb_lock_wait_timeout = {waits}, lock_wait_timeout = {waits}, {thrown_out}"
            ),
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin".to_owned(),
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"),
        ]
    }

    /// The pools, none of them connected yet.
    pub fn pools(&self, server: &Arc<Server>, options: &Options) -> Pools {
        let long = Duration::from_secs(1800);
        let fresh_for = if self.is_mariadb() { long } else { options.holder_timeout * 3 / 4 };
        let pool = |settings, size| Pool::new(server.clone(), settings, size, fresh_for);
        // A transaction that writes begins with its first statement, so no statement only begins.
        let mut writing = self.settings(options, "READ COMMITTED");
        writing.push("SET SESSION autocommit = 0".to_owned());
        // Between its statements such a connection holds nothing that others wait for.
        let mut single = self.settings(options, "READ COMMITTED");
        single.push("SET SESSION autocommit = 1, wait_timeout = 3600".to_owned());
        Pools {
            heartbeats: pool(writing.clone(), 1),
            writers: pool(writing, options.writers),
            readers: pool(self.settings(options, "REPEATABLE READ"), options.readers),
            single_statements: Pool::new(server.clone(), single, SINGLE_STATEMENTS, long),
            statement_timeout: options.statement_timeout,
            holder_timeout: options.holder_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn address() -> Address {
        Address::of("mysql://u:secret@db.example:3307/carillon").unwrap()
    }

    #[test]
    fn servers_that_break_promises_are_refused() {
        let check = |pairs: &[(&str, &str)], options: &Options| {
            variables(pairs).check(&address(), options).map_err(|error| error.to_string())
        };
        let options = Options::default();
        assert_eq!(check(&[("read_only", "OFF"), ("wsrep_on", "OFF")], &options), Ok(()));
        assert!(check(&[("read_only", "ON")], &options).unwrap_err().contains("read_only is on"));
        assert!(check(&[("wsrep_on", "ON")], &options).unwrap_err().contains("single_writer"));
        let declared = Options { single_writer: true, ..Options::default() };
        assert_eq!(check(&[("wsrep_on", "ON")], &declared), Ok(()));
        assert_eq!(check(&[("log_bin", "OFF"), ("binlog_format", "STATEMENT")], &options), Ok(()));
        assert!(check(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")], &options).unwrap_err().contains("ROW"));
    }
}
