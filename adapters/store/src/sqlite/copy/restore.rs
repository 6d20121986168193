//! A backup becomes the database again.
//!
//! A database that is restored while no server lives has nobody to notice that commits are lost: nodes notice it by what they
//! remember. So the restore itself opens the loss window, in the copy, before the copy gets its name. The lease on the file proves
//! that no run of the old database goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::CopyError;
use super::backup::is_same;
use super::pages::{Draft, Progress, open, remove, sync_directory};
use crate::clock::{Clock, SystemClock};
use crate::sqlite::client::error::OpenError;
use crate::sqlite::client::inspect;
use crate::sqlite::client::lease::Lease;
use crate::sqlite::client::names::beside;
use crate::sqlite::client::open::{OpenOptions, known_version, stored_version, writer};
use crate::sqlite::losses;
use crate::{RecordedLoss, StoreError};

/// A database that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The version of the schema in the backup. The database has the newest one.
    pub version: i64,
    /// Where the database of before is kept, if there was one.
    pub kept: Option<PathBuf>,
    /// The time whose commits may be lost; nothing is started until somebody has accepted it.
    pub window: LossWindow,
}

/// Puts the backup `file` in the place of `database`. Blocks the thread.
///
/// # Errors
/// [`CopyError`]; the database is as it was then.
pub fn restore(file: &Path, database: &Path, progress: Progress<'_>) -> Result<Restored, CopyError> {
    if !file.exists() {
        return Err(CopyError::NoBackup(file.to_owned()));
    }
    if is_same(file, database) {
        return Err(CopyError::Itself(file.to_owned()));
    }
    // A link to the database stays one.
    let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let lease = Lease::acquire(&database, Duration::ZERO)?;
    let from = read_only(file).map_err(CopyError::of_sqlite(file))?;
    let version = stored_version(&from).map_err(CopyError::of_sqlite(file))?;
    if version == 0 {
        return Err(CopyError::Foreign(file.to_owned()));
    }
    if version > known_version() {
        return Err(OpenError::Newer { path: file.to_owned(), found: version, known: known_version() }.into());
    }
    let draft = Draft::new(beside(&database, ".restoring"))?;
    let done = draft.fill(&from, file, progress).and_then(|copy| {
        copy.close().map_err(|(_, error)| CopyError::of_sqlite(&draft.path)(error))?;
        let window = prepare(&draft)?;
        draft.sync()?;
        let kept = exchange(&draft, &database)?;
        Ok(Restored { version, kept, window })
    });
    if done.is_err() {
        // The fault itself is told; what is left over goes with the next restore.
        let _ = remove(&draft.path);
    }
    drop(lease);
    done
}

/// A backup is not changed, and no file is made beside it. One that was copied with its log is read with it.
fn read_only(file: &Path) -> rusqlite::Result<Connection> {
    if beside(file, "-wal").exists() {
        return open(file);
    }
    inspect::read_only(file)
}

/// Brings the copy to the newest schema, and opens the window of what it lost.
fn prepare(draft: &Draft) -> Result<LossWindow, CopyError> {
    let path = &draft.path;
    let (conn, _) = writer(path, &OpenOptions::default())?;
    let told = |error: StoreError| OpenError::Other { path: path.clone(), reason: error.to_string() };
    let loss = loss(&conn, SystemClock.now()).map_err(CopyError::of_sqlite(path))?;
    losses::note(&conn, &loss).map_err(told)?;
    conn.close().map_err(|(_, error)| CopyError::of_sqlite(path)(error))?;
    Ok(loss.window)
}

/// From the last sign of life in the backup until now.
fn loss(conn: &Connection, now: Timestamp) -> rusqlite::Result<RecordedLoss> {
    let newest = "SELECT id, node, heartbeat_at FROM session UNION ALL SELECT id, NULL, ended_at FROM spent_session \
                  ORDER BY 3 DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        let id = SessionId::from_random(row.get::<_, i64>(0)? as u64);
        Ok((id, row.get(1)?, Timestamp::from_ms(row.get(2)?)))
    };
    // Without a session nothing ever ran on it.
    let found = conn.query_row(newest, [], read).optional()?;
    let (session, node, last_known) = found.unwrap_or((SessionId::from_random(0), None, now));
    let window = LossWindow { from_at: last_known.min(now), until_at: now, noticed_at: now };
    Ok(RecordedLoss { window, session, node, accepted_at: None })
}

/// The old database gets a second name, then the copy takes its first one. So a crash leaves one of them, whole.
fn exchange(draft: &Draft, database: &Path) -> Result<Option<PathBuf>, CopyError> {
    let kept = if database.exists() { Some(keep(database)?) } else { None };
    std::fs::rename(&draft.path, database).map_err(CopyError::of_file(database, "replaced"))?;
    sync_directory(database)?;
    Ok(kept)
}

fn keep(database: &Path) -> Result<PathBuf, CopyError> {
    let stamp: String = SystemClock.now().to_rfc3339_short().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let names = (1..).map(|n| match n {
        1 => beside(database, &format!(".before-{stamp}")),
        n => beside(database, &format!(".before-{stamp}-{n}")),
    });
    let is_free = |name: &PathBuf| name.symlink_metadata().is_err();
    let kept = names.into_iter().find(is_free).unwrap_or_else(|| beside(database, ".before"));
    fold(database, &kept)?;
    std::fs::hard_link(database, &kept).map_err(CopyError::of_file(&kept, "made"))?;
    sync_directory(&kept)?;
    Ok(kept)
}

/// Makes the old database one file. A log of it that stayed would be read as one of the new database. The log gets a second name
/// first, for SQLite deletes the log of a file that it cannot read.
fn fold(database: &Path, kept: &Path) -> Result<(), CopyError> {
    let (log, kept_log) = (beside(database, "-wal"), beside(kept, "-wal"));
    if log.exists() {
        std::fs::hard_link(&log, &kept_log).map_err(CopyError::of_file(&kept_log, "made"))?;
    }
    let folded = open(database).and_then(|conn| {
        // Refused while another process has the file open.
        conn.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0))
    });
    let is_damaged = match folded {
        Ok(mode) if mode == "delete" => Ok(false),
        Ok(_) => Err(CopyError::InUse(database.to_owned())),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(true),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Err(CopyError::InUse(database.to_owned())),
            _ => Err(CopyError::of_sqlite(database)(error)),
        },
    };
    if !matches!(is_damaged, Ok(true)) {
        // All of it is in the file, or stays where it was.
        remove(&kept_log)?;
        return is_damaged.map(|_| ());
    }
    remove(&log)?;
    remove(&beside(database, "-shm"))
}
