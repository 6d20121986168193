//! The schema and the lock rows, made by whoever comes first.
//!
//! MySQL's DDL is not transactional, and the migration tool takes no lock. So all of it happens under one named lock of the server. Each
//! step is a single statement that does nothing the second time, and a step that was interrupted is repeated. So is one that lost against
//! the same step of a node at another server.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::time::Instant;

use crate::cluster::{lock_name, without_locks};
use crate::copy::layout::{MARK, NOT_WHOLE};
use crate::migrations;
use crate::mysql::client::address::Address;
use crate::mysql::client::error::{self, OpenError};
use crate::mysql::client::open::Options;

/// The lowest version of the schema that a binary must know to work on the newest one. It is stored as `oldest_friend`, and an older binary
/// reads it from a schema that it does not know.
///
/// Steps only add tables, and columns that are nullable or have a default. So the statements of the release before still work, and both
/// run side by side while a cluster is upgraded node by node. This number may move up to the newest version of the release before the
/// current one. It does so if a step or a writer does something that a binary from before that version must not see. It never moves to a
/// version that comes with the same release. No release stands before the first one, so it is the first version.
const OLDEST_FRIEND: i64 = 1;

/// How long a start waits for another one that makes the same schema.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the server's lock, of which 64 characters count, as the database's may be as long. MySQL 9.7 has no MD5.
const MUTEX: &str = "CONCAT('carillon ', LEFT(SHA2(DATABASE(), 256), 32))";

/// The pause before the first further try; it grows with each.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Why the schema could not be made.
enum Failure {
    /// For a reason that stays, told as a sentence.
    Refused(OpenError),
    /// A statement failed.
    Statement(Error),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

/// Brings the schema up to date and answers the number of partitions.
pub(in crate::mysql) async fn prepare(conn: &mut Conn, address: &Address, options: &Options) -> Result<u16, OpenError> {
    let late = |_| Err(Failure::Statement(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
    let made = tokio::time::timeout(PATIENCE * 2, locked(conn, address, options)).await.unwrap_or_else(late);
    made.map_err(|failure| match failure {
        Failure::Refused(error) => error,
        Failure::Statement(error) => address.unreachable(&error),
    })
}

/// A schema as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaState {
    /// Its version; 0 where none is made yet.
    pub found: i64,
    /// The newest version that this binary knows.
    pub known: i64,
    /// The lowest version that a binary must know to work with it.
    pub oldest_friend: Option<i64>,
    /// Tables without row locks, each such as `job is MyISAM`.
    pub other_engines: Vec<String>,
    /// Numbers of lock rows that are not there.
    pub missing_locks: Vec<u32>,
}

/// Looks at the schema, and makes nothing.
pub(in crate::mysql) async fn look(conn: &mut Conn) -> Result<SchemaState, Error> {
    let known = migrations::newest(&migrations::mysql());
    let here: Vec<String> = conn.query("SHOW TABLES LIKE 'refinery_schema_history'").await?;
    let newest: Option<Option<i64>> = match here.is_empty() {
        true => None,
        false => conn.query_first("SELECT MAX(version) FROM refinery_schema_history").await?,
    };
    let found = newest.flatten().unwrap_or(0);
    if found == 0 {
        return Ok(SchemaState { known, ..SchemaState::default() });
    }
    let partitions = stored_partitions(conn).await?;
    let missing_locks = match partitions {
        Some(partitions) => missing_locks(conn, partitions).await?,
        // Its first rows are not written yet.
        None => Vec::new(),
    };
    let (oldest_friend, other_engines) = (oldest_friend(conn).await?, other_engines(conn).await?);
    Ok(SchemaState { found, known, oldest_friend, other_engines, missing_locks })
}

/// The lock keeps the nodes of one server from disturbing each other. In a cluster of servers each member has a lock of its own, and some
/// refuse to give any. So whoever loses against a node of another member tries again.
async fn locked(conn: &mut Conn, address: &Address, options: &Options) -> Result<u16, Failure> {
    let has_lock = options.takes_schema_lock && take_lock(conn, address).await?;
    let made = make_until_alone(conn, address, options).await;
    if has_lock {
        let released: Result<Option<Option<i64>>, Error> =
            conn.query_first(format!("SELECT RELEASE_LOCK({MUTEX})")).await;
        let partitions = made?;
        released?;
        return Ok(partitions);
    }
    made
}

/// Takes the lock of the server; `false` if it gives none.
async fn take_lock(conn: &mut Conn, address: &Address) -> Result<bool, Failure> {
    let sql = format!("SELECT GET_LOCK({MUTEX}, {})", PATIENCE.as_secs());
    match conn.query_first::<Option<i64>, _>(sql).await {
        Ok(got) if got.flatten() == Some(1) => Ok(true),
        Err(error) if error::gives_no_named_lock(&error) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Failure::Refused(OpenError::Unreachable {
            place: address.place.clone(),
            reason: "another node has been making the schema for too long".to_owned(),
        })),
    }
}

/// Every step may be repeated, so a try that lost begins again, and finds the other's steps done.
async fn make_until_alone(conn: &mut Conn, address: &Address, options: &Options) -> Result<u16, Failure> {
    let begun = Instant::now();
    // Those who lost together do not come back together.
    let spread = Duration::from_millis(u64::from(conn.id() % 16));
    for tries in 1.. {
        match make(conn, address, options).await {
            Err(Failure::Statement(error)) if error::lost_against_another(&error) && begun.elapsed() < PATIENCE => {
                tracing::debug!(%error, tries, "another node makes the schema too");
                conn.query_drop("ROLLBACK").await?;
                tokio::time::sleep((PAUSE * tries).min(LONGEST_PAUSE) + spread).await;
            }
            made => return made,
        }
    }
    Err(Failure::Statement(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
}

async fn make(conn: &mut Conn, address: &Address, options: &Options) -> Result<u16, Failure> {
    migrate(conn, address, options.knows_up_to.unwrap_or(i64::MAX)).await?;
    refuse_other_engines(conn, address).await?;
    if stored_partitions(conn).await?.is_none() {
        first_rows(conn, options.partitions.max(1)).await?;
    }
    let mark: Option<String> = conn.exec_first("SELECT value FROM meta WHERE name = ?", (MARK,)).await?;
    if mark.is_some() && !options.for_copy {
        return Err(address.unfit(NOT_WHOLE).into());
    }
    let partitions = stored_partitions(conn).await?;
    let partitions =
        partitions.ok_or_else(|| address.unfit("the number of partitions in table meta is not a number"))?;
    refuse_missing_locks(conn, address, partitions).await?;
    Ok(partitions)
}

async fn migrate(conn: &mut Conn, address: &Address, up_to: i64) -> Result<(), Failure> {
    let history = "CREATE TABLE IF NOT EXISTS refinery_schema_history (version INT NOT NULL PRIMARY KEY, \
                   name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255)) ENGINE = InnoDB";
    conn.query_drop(history).await?;
    let done: Vec<(i64, String)> = conn.query("SELECT version, checksum FROM refinery_schema_history").await?;
    let runner = migrations::mysql();
    let steps: Vec<_> = runner.get_migrations().iter().filter(|step| i64::from(step.version()) <= up_to).collect();
    let known = steps.last().map_or(0, |step| i64::from(step.version()));
    let found = done.iter().map(|(version, _)| *version).max().unwrap_or(0);
    if found > known {
        return ask_for_friendship(conn, address, found, known).await;
    }
    // Before what others may not understand is there; table meta comes with the first step.
    if found > 0 {
        befriend(conn, known).await?;
    }
    for step in steps {
        let (version, checksum) = (i64::from(step.version()), step.checksum().to_string());
        match done.iter().find(|(done, _)| *done == version) {
            Some((_, stored)) if *stored == checksum => continue,
            Some(_) => {
                return Err(address.unfit(format!("step {version} of its schema was made by another program")).into());
            }
            None => {}
        }
        apply(conn, step.sql().unwrap_or_default()).await?;
        let record = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                      VALUES (?, ?, DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ'), ?)";
        conn.exec_drop(record, (version, step.name(), checksum)).await?;
    }
    Ok(befriend(conn, known).await?)
}

/// A column or a key that is there already was added by whoever was interrupted before it could say so.
async fn apply(conn: &mut Conn, step: &str) -> Result<(), Error> {
    const COLUMN_IS_THERE: u16 = 1060;
    const KEY_IS_THERE: u16 = 1061;
    match conn.query_drop(step).await {
        Err(Error::Server(error)) if [COLUMN_IS_THERE, KEY_IS_THERE].contains(&error.code) => Ok(()),
        done => done,
    }
}

/// Tells older binaries whether they may work beside this one.
async fn befriend(conn: &mut Conn, known: i64) -> Result<(), Error> {
    let oldest = OLDEST_FRIEND.min(known);
    let sql = "INSERT INTO meta (name, value) VALUES ('oldest_friend', ?) ON DUPLICATE KEY UPDATE value = ?";
    conn.exec_drop(sql, (oldest, oldest)).await
}

/// Whether a schema that is newer than what is known here may be used all the same.
async fn ask_for_friendship(conn: &mut Conn, address: &Address, found: i64, known: i64) -> Result<(), Failure> {
    let friend = oldest_friend(conn).await?;
    let place = address.place.clone();
    match friend {
        Some(oldest) if known >= oldest => {
            tracing::warn!(
                place,
                found,
                known,
                "a newer Carillon made this schema; this one works beside it: upgrade it"
            );
            Ok(())
        }
        _ => Err(OpenError::Newer { place, found, known }.into()),
    }
}

async fn oldest_friend(conn: &mut Conn) -> Result<Option<i64>, Error> {
    let value: Option<String> = conn.query_first("SELECT value FROM meta WHERE name = 'oldest_friend'").await?;
    Ok(value.and_then(|text| text.parse().ok()))
}

async fn refuse_other_engines(conn: &mut Conn, address: &Address) -> Result<(), Failure> {
    let others = other_engines(conn).await?;
    if others.is_empty() {
        return Ok(());
    }
    let others = others.join(", ");
    let why = format!("table {others}: without InnoDB there are no row locks; ALTER TABLE ... ENGINE = InnoDB");
    Err(address.unfit(why).into())
}

/// Our tables that are of another engine, each such as `job is MyISAM`.
async fn other_engines(conn: &mut Conn) -> Result<Vec<String>, Error> {
    let sql = "SELECT CONCAT(TABLE_NAME, ' is ', ENGINE) FROM information_schema.TABLES \
               WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB' AND TABLE_NAME IN \
               ('meta', 'lock_row', 'job', 'job_state', 'concurrent_run', 'run', 'output', 'live_output', \
               'session', 'loss_window', 'spent_session', 'audit', 'run_params', 'sign_in_link', 'activity', 'job_day', \
                'history_count', 'alert_route', 'alert_fact', 'alert_incident', 'alert_delivery', 'alert_cursor', \
                'alert_watch')";
    conn.query(sql).await
}

/// The servers through which the sessions that live write, as they told with their heartbeats.
pub(in crate::mysql) async fn servers_of_sessions(conn: &mut Conn) -> Result<Vec<String>, Error> {
    let sql = "SELECT DISTINCT server FROM session WHERE state <> 'ended' AND server IS NOT NULL \
               AND heartbeat_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 - 10000";
    /// A schema of before has no such column, and its sessions tell nothing.
    const NO_COLUMN: u16 = 1054;
    match conn.query(sql).await {
        Err(Error::Server(error)) if error.code == NO_COLUMN => Ok(Vec::new()),
        found => found,
    }
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

async fn refuse_missing_locks(conn: &mut Conn, address: &Address, partitions: u16) -> Result<(), Failure> {
    let missing = missing_locks(conn, partitions).await?;
    if missing.is_empty() { Ok(()) } else { Err(address.unfit(without_locks(&missing)).into()) }
}

async fn missing_locks(conn: &mut Conn, partitions: u16) -> Result<Vec<u32>, Error> {
    let found: Vec<u32> = conn.query("SELECT id FROM lock_row").await?;
    Ok((0..=u32::from(partitions)).filter(|id| !found.contains(id)).collect())
}
