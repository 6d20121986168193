//! Opening a database: what its server must be, the settings of each session.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::lease::Timing;

use crate::clock::Clock;
use crate::mysql::client::address::Address;
use crate::mysql::client::error::OpenError;
use crate::mysql::client::pool::Pool;
use crate::mysql::client::server::Server;
use crate::mysql::topology::{Answers, ServerState, Topology, causality, reads_everything};

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
    /// The session timing that the configuration gives; `None` where it follows the servers.
    pub timing: Option<Timing>,
    /// After how long the server throws out a transaction whose client says nothing, in place of half a lease; for tests.
    #[doc(hidden)]
    pub holder_timeout: Option<Duration>,
    /// How many firings the node holds at the most: so many rows and definitions are remembered.
    pub held: usize,
    /// Which kind of servers the address names, and whether several of them may be written to.
    pub topology: Topology,
    /// Tells the time in place of the server; for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Plays an older binary, which knows the schema up to this version; for tests.
    #[doc(hidden)]
    pub knows_up_to: Option<i64>,
    /// `false` plays nodes at different servers of a cluster, whose named locks keep nobody out; for tests.
    #[doc(hidden)]
    pub takes_schema_lock: bool,
    /// It is one end of a copy, so it need not be whole.
    #[doc(hidden)]
    pub for_copy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            partitions: 16,
            writers: 8,
            readers: 4,
            statement_timeout: Duration::from_secs(5),
            timing: None,
            holder_timeout: None,
            held: 10_000,
            topology: Topology::default(),
            clock: None,
            knows_up_to: None,
            takes_schema_lock: true,
            for_copy: false,
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
    /// Reads that miss nothing that was acknowledged, where other servers may be ahead.
    pub current: Option<Pool>,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// After how long the server throws out a transaction whose client says nothing.
    pub holder_timeout: Duration,
}

/// How many statements that commit by themselves are on their way at a time: so many starts are.
const SINGLE_STATEMENTS: usize = 2;

/// A node that froze inside a transaction must not hold up the others until it is fenced. With a longer lease they do not wait longer.
fn holder_timeout(timing: &Timing) -> Duration {
    (timing.self_kill_after / 2).min(Duration::from_secs(6))
}

impl Answers {
    /// Refuses a server on which promises cannot be kept, and warns of one that keeps them less well.
    pub fn check(&self, address: &Address) -> Result<(), OpenError> {
        if let Some(why) = self.why_unfit().or_else(|| self.state.why_unfit()) {
            return Err(address.unfit(why));
        }
        self.state.weaknesses().into_iter().for_each(|weakness| tracing::warn!(place = address.place, "{weakness}"));
        Ok(())
    }
}

impl ServerState {
    /// Which of its settings break promises, and what to do about it.
    pub fn why_unfit(&self) -> Option<String> {
        let why = if self.is_on("log_bin") && self.is("binlog_format", "STATEMENT") {
            "binlog_format is STATEMENT, which loses the order of transactions under READ COMMITTED; set it to ROW"
        } else if self.number("max_allowed_packet").is_some_and(|bytes| bytes < 16 << 20) {
            "max_allowed_packet is below 16M, and outputs would not fit; set it to 16M or more"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// The settings with which a crash may take back what was acknowledged.
    pub fn weaknesses(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.is("innodb_flush_log_at_trx_commit", "1") {
            found.push(
                "innodb_flush_log_at_trx_commit is not 1: the server acknowledges what a crash may take back"
                    .to_owned(),
            );
        }
        if self.is_on("log_bin") && !self.is("sync_binlog", "1") {
            found.push("sync_binlog is not 1: a crash may leave replicas behind the primary".to_owned());
        }
        found
    }

    /// The settings of every session. A transaction whose client is frozen is thrown out after `holder_timeout`:
    /// MariaDB has a setting for that, MySQL only the one for idle connections.
    fn settings(&self, options: &Options, holder_timeout: Duration, isolation: &str) -> Vec<String> {
        let waits = options.statement_timeout.as_secs().saturating_sub(1).max(1);
        let idle = holder_timeout.as_secs().max(1);
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
}

impl Answers {
    /// The settings of every session.
    fn settings(&self, options: &Options, holder_timeout: Duration, isolation: &str) -> Vec<String> {
        let mut settings = self.state.settings(options, holder_timeout, isolation);
        settings.extend(causality(self.engine(), options.topology).into_iter().map(str::to_owned));
        settings
    }

    /// The pools, none of them connected yet.
    pub fn pools(&self, server: &Arc<Server>, options: &Options, timing: &Timing) -> Pools {
        let holder_timeout = options.holder_timeout.unwrap_or_else(|| holder_timeout(timing));
        let settings = |isolation| self.settings(options, holder_timeout, isolation);
        let long = Duration::from_secs(1800);
        let fresh_for = if self.state.is_mariadb() { long } else { holder_timeout * 3 / 4 };
        let pool = |settings, size| Pool::new(server.clone(), settings, size, fresh_for);
        // A transaction that writes begins with its first statement, so no statement only begins.
        let mut writing = settings("READ COMMITTED");
        writing.push("SET SESSION autocommit = 0".to_owned());
        // Between its statements such a connection holds nothing that others wait for.
        let mut single = settings("READ COMMITTED");
        single.push("SET SESSION autocommit = 1, wait_timeout = 3600".to_owned());
        let current = reads_everything(self.engine()).map(|setting| {
            let mut settings = settings("READ COMMITTED");
            settings.push(setting.to_owned());
            pool(settings, 1)
        });
        Pools {
            heartbeats: pool(writing.clone(), 1),
            writers: pool(writing, options.writers),
            readers: pool(settings("REPEATABLE READ"), options.readers),
            single_statements: Pool::new(server.clone(), single, SINGLE_STATEMENTS, long),
            current,
            statement_timeout: options.statement_timeout,
            holder_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&str, &str)]) -> Result<(), String> {
        let state = ServerState::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let address = Address::of("mysql://u:secret@db.example:3307/carillon").unwrap();
        let answers = Answers { state, members: None };
        answers.check(&address).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_that_break_promises_are_refused() {
        assert_eq!(check(&[("read_only", "OFF"), ("wsrep_on", "OFF")]), Ok(()));
        assert_eq!(check(&[("wsrep_on", "ON")]), Ok(()), "a Galera cluster is written through one server");
        let group = [("group_replication_group_name", "g"), ("group_replication_single_primary_mode", "OFF")];
        assert!(check(&group).unwrap_err().contains("several primaries"));
        assert!(check(&[("version", "8.0.11-TiDB-v8.5.0")]).unwrap_err().contains("TiDB"));
        assert_eq!(check(&[("log_bin", "OFF"), ("binlog_format", "STATEMENT")]), Ok(()));
        assert!(check(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")]).unwrap_err().contains("ROW"));
    }
}
