//! The way to a server: new connections, encrypted as the address asks, and the end of those in doubt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Opts};
use tokio::time::{Instant, timeout};

use crate::mysql::client::address::Address;

/// How long a KILL may take before it is given up: the server's own timeouts end the connection then.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the server is and how long it may take.
#[derive(Debug)]
pub(in crate::mysql) struct Server {
    opts: Opts,
    plain: Option<Opts>,
    /// It offered no TLS when it was asked last.
    is_plain: AtomicBool,
    pub statement_timeout: Duration,
}

/// An open connection and when it was opened.
pub(in crate::mysql) struct DriverConnection {
    pub conn: Conn,
    pub opened: Instant,
}

impl Server {
    pub fn at(address: &Address, statement_timeout: Duration) -> Self {
        let (opts, plain) = (address.opts.clone(), address.plain.clone());
        Self { opts, plain, is_plain: AtomicBool::new(false), statement_timeout }
    }

    /// A connection, encrypted as the address asks.
    async fn dial(&self) -> mysql_async::Result<Conn> {
        if let Some(plain) = self.plain.as_ref().filter(|_| self.is_plain.load(Ordering::Relaxed)) {
            let conn = Conn::new(plain.clone()).await;
            // It may have got a certificate since.
            self.is_plain.store(conn.is_ok(), Ordering::Relaxed);
            return conn;
        }
        match (Conn::new(self.opts.clone()).await, &self.plain) {
            (Err(Error::Driver(DriverError::NoClientSslFlagFromServer)), Some(plain)) => {
                self.is_plain.store(true, Ordering::Relaxed);
                Conn::new(plain.clone()).await
            }
            (conn, _) => conn,
        }
    }

    /// A new connection with its session settings.
    pub async fn connect(&self, settings: &[String]) -> Result<DriverConnection, mysql_async::Error> {
        let opened = Instant::now();
        let connecting = async {
            let mut conn = self.dial().await?;
            for setting in settings {
                conn.query_drop(setting).await?;
            }
            Ok(DriverConnection { conn, opened })
        };
        let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time");
        timeout(self.statement_timeout, connecting).await.unwrap_or_else(|_| Err(late().into()))
    }

    /// Ends a connection from another one. Best effort: one that has gone already is as good. A server that was
    /// restarted since gives the same numbers to others, who must not suffer for it.
    pub async fn kill(&self, driver: DriverConnection) {
        let id = driver.conn.id();
        let killing = async {
            let mut conn = self.dial().await?;
            let uptime: Option<(String, u64)> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await?;
            if uptime.is_some_and(|(_, uptime_s)| driver.opened.elapsed() <= Duration::from_secs(uptime_s)) {
                conn.query_drop(format!("KILL CONNECTION {id}")).await?;
            }
            conn.disconnect().await
        };
        match timeout(KILL_TIMEOUT, killing).await {
            Ok(Ok(())) => tracing::info!(connection = id, "a connection in doubt was ended"),
            Ok(Err(error)) => tracing::debug!(connection = id, %error, "a connection in doubt could not be ended"),
            Err(_) => tracing::warn!(connection = id, "a connection in doubt could not be ended in time"),
        }
    }
}
