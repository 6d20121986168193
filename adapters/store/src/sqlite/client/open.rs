//! Opening a database file: its address, its mode, its schema.

use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::copy::layout::{MARK, NOT_WHOLE};
use crate::migrations;
use crate::sqlite::client::error::OpenError;
use crate::sqlite::client::names::directory_of;

/// How a statement waits for another process, such as a command line that imports while the server runs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Several processes may make one new database at the same time; all steps are one transaction, so one of them wins it.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The choices when a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// How many partitions a *new* database gets; an existing one keeps its own.
    pub partitions: u16,
    /// How many connections read beside the one that writes.
    pub readers: usize,
    /// How many firings the node holds at the most: so many definitions are remembered.
    pub held: usize,
    /// The file grows to no more than this many pages (`PRAGMA max_page_count`).
    pub max_pages: Option<u32>,
    /// It is one end of a copy, so it need not be whole.
    #[doc(hidden)]
    pub for_copy: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { partitions: 16, readers: 2, held: 10_000, max_pages: None, for_copy: false }
    }
}

/// The file behind `sqlite://carillon.db` (relative) or `sqlite:///var/lib/carillon.db` (absolute).
///
/// # Errors
/// [`OpenError::BadUrl`].
pub fn path_of_url(url: &str) -> Result<PathBuf, OpenError> {
    let bad = || OpenError::BadUrl(url.to_owned());
    let path = url.strip_prefix("sqlite://").ok_or_else(bad)?;
    if path.is_empty() || path.ends_with('/') || path.contains(['?', '#', '\0']) {
        return Err(bad());
    }
    Ok(PathBuf::from(path))
}

/// The connection that writes, with the newest schema, and the number of partitions.
pub(in crate::sqlite) fn writer(path: &Path, options: &OpenOptions) -> Result<(Connection, u16), OpenError> {
    make_file(path)?;
    let mut tried = 0;
    loop {
        match try_writer(path, options) {
            Err(Failed::Again(_)) if tried < TRIES => std::thread::sleep(BETWEEN_TRIES),
            Err(Failed::Again(error)) | Err(Failed::Now(error)) => return Err(error),
            Ok(opened) => return Ok(opened),
        }
        tried += 1;
    }
}

/// A connection that only reads.
pub(in crate::sqlite) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    plan_once(&conn)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Plans do not look at the values of parameters. Otherwise each execution of a statement with `LIMIT ?` reads and plans its text anew.
fn plan_once(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

enum Failed {
    /// Another process is making the same database.
    Again(OpenError),
    Now(OpenError),
}

/// Made with mode 0600, because definitions may hold secrets.
fn make_file(path: &Path) -> Result<(), OpenError> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        return Err(OpenError::NoDirectory { path: path.to_owned(), directory: directory.to_owned() });
    }
    match FileOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::NotWritable { path: path.to_owned(), reason: error.to_string() }),
    }
}

fn try_writer(path: &Path, options: &OpenOptions) -> Result<(Connection, u16), Failed> {
    let sqlite = |error: rusqlite::Error| {
        let busy = matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        let error = OpenError::of(path, &error);
        if busy { Failed::Again(error) } else { Failed::Now(error) }
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    plan_once(&conn).map_err(sqlite)?;
    if conn.is_readonly("main").map_err(sqlite)? {
        let reason = "the file, or what it stands on, is read-only".to_owned();
        return Err(Failed::Now(OpenError::NotWritable { path: path.to_owned(), reason }));
    }
    refuse_newer(path, &conn)?;
    conn.pragma_update(None, "journal_mode", "WAL").map_err(sqlite)?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(sqlite)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(sqlite)?;
    conn.set_prepared_statement_cache_capacity(128);
    migrate(path, &mut conn)?;
    let mark = conn.query_row("SELECT value FROM meta WHERE name = ?1", [MARK], |row| row.get::<_, String>(0));
    if mark.optional().map_err(sqlite)?.is_some() && !options.for_copy {
        return Err(Failed::Now(OpenError::Other { path: path.to_owned(), reason: NOT_WHOLE.to_owned() }));
    }
    let partitions = partitions(&conn, options.partitions.max(1)).map_err(sqlite)?;
    if let Some(pages) = options.max_pages {
        conn.pragma_update(None, "max_page_count", pages).map_err(sqlite)?;
    }
    Ok((conn, partitions))
}

pub(in crate::sqlite) fn known_version() -> i64 {
    migrations::newest(&migrations::sqlite())
}

pub(in crate::sqlite) fn stored_version(conn: &Connection) -> rusqlite::Result<i64> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'refinery_schema_history'";
    if conn.query_row(table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(0);
    }
    let newest = "SELECT max(version) FROM refinery_schema_history";
    Ok(conn.query_row(newest, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(0))
}

fn refuse_newer(path: &Path, conn: &Connection) -> Result<(), Failed> {
    let found = stored_version(conn).map_err(|error| Failed::Now(OpenError::of(path, &error)))?;
    let known = known_version();
    if found > known {
        return Err(Failed::Now(OpenError::Newer { path: path.to_owned(), found, known }));
    }
    Ok(())
}

fn migrate(path: &Path, conn: &mut Connection) -> Result<(), Failed> {
    if stored_version(conn).is_ok_and(|found| found == known_version()) {
        return Ok(());
    }
    // All steps in one commit: a new database costs one write to the disk, and a crash leaves no step without its mark.
    let report = migrations::sqlite().set_grouped(true).run(conn);
    // Another process may have made the same step; the next try finds it made.
    report.map(|_| ()).map_err(|error| {
        Failed::Again(OpenError::Other { path: path.to_owned(), reason: format!("its schema cannot be made: {error}") })
    })
}

fn partitions(conn: &Connection, wanted: u16) -> rusqlite::Result<u16> {
    let stored = "SELECT value FROM meta WHERE name = 'partitions'";
    let read = || conn.query_row(stored, [], |row| row.get::<_, String>(0)).optional();
    if read()?.is_none() {
        conn.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('partitions', ?1)", [wanted.to_string()])?;
    }
    Ok(read()?.and_then(|text| text.parse().ok()).unwrap_or(wanted))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_schema_is_made_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.db");
        // One of the later steps makes a table of this name.
        Connection::open(&path).unwrap().execute("CREATE TABLE alert_fact (x)", []).unwrap();
        let refused = try_writer(&path, &OpenOptions::default()).err();
        assert!(matches!(refused, Some(Failed::Again(OpenError::Other { .. }))));
        let conn = Connection::open(&path).unwrap();
        assert_eq!(stored_version(&conn).unwrap(), 0);
        let others =
            "SELECT count(*) FROM sqlite_schema WHERE tbl_name NOT IN ('alert_fact', 'refinery_schema_history')";
        assert_eq!(conn.query_row(others, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        conn.execute("DROP TABLE alert_fact", []).unwrap();
        writer(&path, &OpenOptions::default()).unwrap();
        assert_eq!(stored_version(&conn).unwrap(), known_version());
    }

    #[test]
    fn a_statement_is_planned_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.db");
        let (writer, _) = writer(&path, &OpenOptions::default()).unwrap();
        for conn in [writer, reader(&path).unwrap()] {
            let due = "SELECT id FROM job_state WHERE partition_id = ?1 AND claim_at <= ?2 ORDER BY claim_at LIMIT ?3";
            let mut due = conn.prepare_cached(due).unwrap();
            for limit in 1..5 {
                assert!(!due.exists([limit, 10 * limit, limit]).unwrap());
            }
            assert_eq!(due.get_status(StatementStatus::RePrepare), 0);
        }
    }

    #[test]
    fn an_address_names_a_file() {
        assert_eq!(path_of_url("sqlite://carillon.db").unwrap(), PathBuf::from("carillon.db"));
        assert_eq!(path_of_url("sqlite:///var/lib/c.db").unwrap(), PathBuf::from("/var/lib/c.db"));
        for bad in ["carillon.db", "sqlite://", "sqlite:///var/lib/", "mysql://h/c", "sqlite://c.db?mode=ro"] {
            assert!(matches!(path_of_url(bad), Err(OpenError::BadUrl(_))), "{bad}");
        }
    }
}
