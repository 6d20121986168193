//! The database as an ordinary user sees it that is no node.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::field::Field;
use super::outcome::last_for;
use crate::databases::{Server, blocking};

/// How a probe's write went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    /// It was acknowledged.
    Done,
    /// The server refused it, or the connection, with this number.
    Refused(u16),
    /// The server did not answer in time.
    Waits,
    /// There is no way to the server.
    Away(String),
}

/// Opens a connection to a server and writes so many bytes.
pub(super) fn write(field: &Field, server: &Server, bytes: usize, within: Duration) -> Write {
    let url = field.probe.at_member(server).url();
    let writing = async {
        let mut conn = Conn::from_url(url).await?;
        conn.exec_drop("INSERT INTO probe (text) VALUES (?)", ("x".repeat(bytes),)).await?;
        conn.disconnect().await
    };
    match blocking(async { tokio::time::timeout(within, writing).await }) {
        Ok(Ok(())) => Write::Done,
        Ok(Err(Error::Server(refused))) => Write::Refused(refused.code),
        Ok(Err(error)) => Write::Away(error.to_string()),
        Err(_) => Write::Waits,
    }
}

/// Waits until a write is acknowledged; how long that took, or how the last one went.
pub(super) fn works_again(field: &Field, server: &Server, patience: Duration) -> Result<Duration, Write> {
    let begun = Instant::now();
    loop {
        let last = write(field, server, 1, Duration::from_secs(2));
        if last == Write::Done {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > patience {
            return Err(last);
        }
        last_for(Duration::from_millis(50));
    }
}
