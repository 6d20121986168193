//! The schema and the lock rows, made by whoever comes first.
//!
//! MySQL's DDL is not transactional and the migration tool takes no lock, so all of it happens under one named lock of
//! the server, each step is a single statement that does nothing the second time, and a step that was interrupted is
//! repeated.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::error::OpenError;
use super::open::Address;
use super::transaction::lock_name;

mod embedded {
    refinery::embed_migrations!("migrations/mysql");
}

/// How long a start waits for another one that makes the same schema.
const PATIENCE: Duration = Duration::from_secs(60);

/// Brings the schema up to date and answers the number of partitions.
pub(super) async fn prepare(conn: &mut Conn, address: &Address, wanted: u16) -> Result<u16, OpenError> {
    let late = |_| Err(address.unreachable(&std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
    tokio::time::timeout(PATIENCE * 2, locked(conn, address, wanted)).await.unwrap_or_else(late)
}

async fn locked(conn: &mut Conn, address: &Address, wanted: u16) -> Result<u16, OpenError> {
    let unreachable = |error: Error| address.unreachable(&error);
    let got: Option<Option<i64>> = conn
        .query_first(format!("SELECT GET_LOCK(CONCAT('carillon ', MD5(DATABASE())), {})", PATIENCE.as_secs()))
        .await
        .map_err(unreachable)?;
    if got.flatten() != Some(1) {
        return Err(OpenError::Unreachable {
            place: address.place.clone(),
            reason: "another node has been making the schema for too long".to_owned(),
        });
    }
    let made = make(conn, address, wanted).await;
    let released: Result<Option<Option<i64>>, Error> =
        conn.query_first("SELECT RELEASE_LOCK(CONCAT('carillon ', MD5(DATABASE())))").await;
    let partitions = made?;
    released.map_err(unreachable)?;
    Ok(partitions)
}

async fn make(conn: &mut Conn, address: &Address, wanted: u16) -> Result<u16, OpenError> {
    let unreachable = |error: Error| address.unreachable(&error);
    migrate(conn, address).await?;
    refuse_other_engines(conn, address).await?;
    if stored_partitions(conn).await.map_err(unreachable)?.is_none() {
        first_rows(conn, wanted.max(1)).await.map_err(unreachable)?;
    }
    let partitions = stored_partitions(conn).await.map_err(unreachable)?;
    let partitions =
        partitions.ok_or_else(|| address.unfit("the number of partitions in table meta is not a number"))?;
    refuse_missing_locks(conn, address, partitions).await?;
    Ok(partitions)
}

async fn migrate(conn: &mut Conn, address: &Address) -> Result<(), OpenError> {
    let unreachable = |error: Error| address.unreachable(&error);
    let history = "CREATE TABLE IF NOT EXISTS refinery_schema_history (version INT NOT NULL PRIMARY KEY, \
                   name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255)) ENGINE = InnoDB";
    conn.query_drop(history).await.map_err(unreachable)?;
    let done: Vec<(i64, String)> =
        conn.query("SELECT version, checksum FROM refinery_schema_history").await.map_err(unreachable)?;
    let runner = embedded::migrations::runner();
    let known = runner.get_migrations().iter().map(|step| i64::from(step.version())).max().unwrap_or(0);
    let found = done.iter().map(|(version, _)| *version).max().unwrap_or(0);
    if found > known {
        return Err(OpenError::Newer { place: address.place.clone(), found, known });
    }
    let mut steps: Vec<_> = runner.get_migrations().iter().collect();
    steps.sort_by_key(|step| step.version());
    for step in steps {
        let (version, checksum) = (i64::from(step.version()), step.checksum().to_string());
        match done.iter().find(|(done, _)| *done == version) {
            Some((_, stored)) if *stored == checksum => continue,
            Some(_) => return Err(address.unfit(format!("step {version} of its schema was made by another program"))),
            None => {}
        }
        conn.query_drop(step.sql().unwrap_or_default()).await.map_err(unreachable)?;
        let record = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                      VALUES (?, ?, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ'), ?)";
        conn.exec_drop(record, (version, step.name(), checksum)).await.map_err(unreachable)?;
    }
    Ok(())
}

async fn refuse_other_engines(conn: &mut Conn, address: &Address) -> Result<(), OpenError> {
    let sql = "SELECT CONCAT(TABLE_NAME, ' is ', ENGINE) FROM information_schema.TABLES \
               WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB' AND TABLE_NAME IN \
               ('meta', 'lock_row', 'job', 'job_state', 'active', 'run', 'output', 'session', 'uncertain_window', 'spent_session')";
    let others: Vec<String> = conn.query(sql).await.map_err(|error| address.unreachable(&error))?;
    if others.is_empty() {
        return Ok(());
    }
    let others = others.join(", ");
    Err(address
        .unfit(format!("table {others}: without InnoDB there are no row locks; ALTER TABLE ... ENGINE = InnoDB")))
}

async fn stored_partitions(conn: &mut Conn) -> Result<Option<u16>, Error> {
    let value: Option<String> = conn.query_first("SELECT value FROM meta WHERE name = 'partitions'").await?;
    Ok(value.and_then(|text| text.parse().ok()))
}

/// The number of partitions and their locks, in one commit.
async fn first_rows(conn: &mut Conn, partitions: u16) -> Result<(), Error> {
    let rows: Vec<String> = (0..=u32::from(partitions)).map(|id| format!("({id}, '{}', 0)", lock_name(id))).collect();
    conn.query_drop("START TRANSACTION").await?;
    conn.query_drop(format!("INSERT INTO lock_row (id, name, epoch) VALUES {}", rows.join(", "))).await?;
    conn.query_drop(format!("INSERT INTO meta (name, value) VALUES ('partitions', '{partitions}')")).await?;
    conn.query_drop("COMMIT").await
}

async fn refuse_missing_locks(conn: &mut Conn, address: &Address, partitions: u16) -> Result<(), OpenError> {
    let found: Vec<u32> =
        conn.query("SELECT id FROM lock_row").await.map_err(|error: Error| address.unreachable(&error))?;
    let missing: Vec<String> = (0..=u32::from(partitions)).filter(|id| !found.contains(id)).map(lock_name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(address.unfit(format!(
        "the lock row of {missing} is missing from table lock_row, and whoever needs it could not be kept out; restore \
         it with INSERT INTO lock_row while no node runs"
    )))
}
