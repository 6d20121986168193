//! A look at a MySQL or MariaDB database that changes nothing: it asks, and sets nothing but its own session.

use carillon_domain::lease::Timing;
use carillon_domain::time::Timestamp;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use crate::TimingReport;
use crate::clock::{Clock, SystemClock};
use crate::mysql::client::address::Address;
use crate::mysql::client::agreement::{OTHERS, beside};
use crate::mysql::client::error::{Denial, OpenError};
use crate::mysql::client::open::Options;
use crate::mysql::client::server::Server;
use crate::mysql::schema::{self, SchemaState};
use crate::mysql::topology::Answers;

/// The server that takes writes, and the database on it, as they stand.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The server's own word for its version, such as `10.11.6-MariaDB`.
    pub version: String,
    /// Why a node would refuse it: the fault and its remedy.
    pub unfit: Option<String>,
    /// Settings with which a crash may take back commits, each a sentence.
    pub weaknesses: Vec<String>,
    /// The session timing that a node would have; `Err` tells why other nodes keep it from starting.
    pub timing: Result<TimingReport, String>,
    /// The isolation of transactions that a session of a node gets; it asks for READ COMMITTED.
    pub isolation: String,
    /// The name of the database.
    pub database: String,
    /// The rights of the user, as the server shows them.
    pub grants: Vec<String>,
    /// The server's clock.
    pub clock: ClockReading,
    /// The schema.
    pub schema: SchemaState,
}

/// One reading of a server's clock. This machine's clock tells when it was asked for and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// When it was asked for.
    pub sent: Timestamp,
    /// The server's time.
    pub told: Timestamp,
    /// When the answer came.
    pub arrived: Timestamp,
}

/// Why nothing could be seen.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct InspectError {
    /// The sentence, as for a node that opens it.
    pub error: OpenError,
    /// The denial of the server, if it answers.
    pub denial: Option<Denial>,
}

/// Looks at the database of an address.
///
/// # Errors
/// [`InspectError`] when the server cannot be asked.
pub async fn inspect(url: &str, options: &Options) -> Result<Inspection, InspectError> {
    let address = Address::of(url).map_err(|error| InspectError { error, denial: None })?;
    let failed = |error: Error| InspectError { denial: Denial::of(&error), error: address.unreachable(&error) };
    let server = Server::at(&address, options.topology, options.statement_timeout);
    let (driver, answers) = server.connect_and_ask(&[]).await.map_err(failed)?;
    let (mut conn, state) = (driver.conn, &answers.state);
    let asked = tokio::time::timeout(options.statement_timeout, async {
        Ok::<_, Error>(Inspection {
            version: state.text("version").unwrap_or_default().to_owned(),
            unfit: answers.why_unfit().or_else(|| state.why_unfit()),
            weaknesses: state.weaknesses(),
            timing: timing(&mut conn, &answers, options.timing).await?,
            isolation: isolation(&mut conn, state.is_mariadb()).await?,
            database: conn.query_first("SELECT DATABASE()").await?.unwrap_or_default(),
            grants: conn.query("SHOW GRANTS").await?,
            clock: clock(&mut conn).await?,
            schema: schema::look(&mut conn).await?,
        })
    });
    let late = || Error::from(std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time"));
    let inspection = asked.await.unwrap_or_else(|_| Err(late())).map_err(failed)?;
    conn.disconnect().await.map_err(failed)?;
    Ok(inspection)
}

/// A schema of before has no sessions that tell anything.
async fn timing(
    conn: &mut Conn,
    answers: &Answers,
    given: Option<Timing>,
) -> Result<Result<TimingReport, String>, Error> {
    /// No such table, no such column.
    const NONE_YET: [u16; 2] = [1146, 1054];
    let rows = match conn.query(OTHERS).await {
        Err(Error::Server(error)) if NONE_YET.contains(&error.code) => Vec::new(),
        rows => rows?,
    };
    Ok(beside(rows, answers, given))
}

async fn isolation(conn: &mut Conn, is_mariadb: bool) -> Result<String, Error> {
    conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    let variable = if is_mariadb { "tx_isolation" } else { "transaction_isolation" };
    Ok(conn.query_first(format!("SELECT @@SESSION.{variable}")).await?.unwrap_or_default())
}

/// The second answer counts: the first one may have waited for the server to warm up.
async fn clock(conn: &mut Conn) -> Result<ClockReading, Error> {
    const CLOCK: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    let _: Option<i64> = conn.query_first(CLOCK).await?;
    let sent = SystemClock.now();
    let us: i64 = conn.query_first(CLOCK).await?.unwrap_or_default();
    Ok(ClockReading { sent, told: Timestamp::from_ms(us.div_euclid(1_000)), arrived: SystemClock.now() })
}
