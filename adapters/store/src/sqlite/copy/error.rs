//! Why a database cannot be copied, in sentences for the person at the terminal.

use std::path::{Path, PathBuf};

use super::super::client::error::OpenError;
use super::super::client::lease::LeaseError;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The file cannot be opened as a database.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A server holds the database.
    #[error("nothing is restored: {0}")]
    Lease(#[from] LeaseError),
    /// There is no such file.
    #[error("there is no database {}; name it in store.url, or by --store", .0.display())]
    NoDatabase(PathBuf),
    /// There is no such backup.
    #[error("there is no file {}; name a backup that `carillon backup` wrote", .0.display())]
    NoBackup(PathBuf),
    /// Something stands where the copy should.
    #[error("{} exists already; name another file, or replace it by --replace", .0.display())]
    Exists(PathBuf),
    /// The two are one.
    #[error("{} is the database itself; name another file", .0.display())]
    Itself(PathBuf),
    /// Another process writes to the same temporary file.
    #[error("another copy to {} is under way; wait for its end, or name another file", .0.display())]
    UnderWay(PathBuf),
    /// Another process has the database open, though no server does.
    #[error("nothing is restored: another process reads {}, perhaps a backup; wait for its end", .0.display())]
    InUse(PathBuf),
    /// No database of Carillon.
    #[error("{} is not a database of Carillon: it has no schema; name a backup that `carillon backup` wrote", .0.display())]
    Foreign(PathBuf),
    /// The copy does not hold together.
    #[error("{} is damaged: {finding}; take an older backup", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// The first finding of SQLite.
        finding: String,
    },
    /// A file could not be written, synced, linked or renamed.
    #[error("{} cannot be {done}: {reason}; look at its directory and the disk", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The deed.
        done: &'static str,
        /// The words of the system.
        reason: String,
    },
}

impl CopyError {
    pub(super) fn of_file(path: &Path, done: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, done, reason: error.to_string() }
    }

    pub(super) fn of_sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |error| OpenError::of(&path, &error).into()
    }
}
