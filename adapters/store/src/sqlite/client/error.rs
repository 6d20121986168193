//! SQLite's errors as the three that a caller can act on, and the sentences for a file that cannot be opened.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::StoreError;

/// An error of a statement before the COMMIT: the transaction is rolled back in any case, so nothing was applied.
pub(in crate::sqlite) fn statement(error: rusqlite::Error) -> StoreError {
    if let rusqlite::Error::FromSqlConversionFailure(_, _, problem) = &error {
        return unreadable(problem.to_string());
    }
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted
            | ErrorCode::OperationAborted
            | ErrorCode::SchemaChanged
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreError::Retryable(text),
        _ => StoreError::Permanent(text),
    }
}

/// An error of the COMMIT itself. A busy database has not begun to write. With any other error the last page of the write-ahead log may
/// have reached the disk although its sync failed. Recovery after a crash would then apply it.
pub(in crate::sqlite) fn commit(error: rusqlite::Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Retryable(text),
        _ => StoreError::Unknown(text),
    }
}

/// A stored value cannot be read by this binary.
pub(in crate::sqlite) fn unreadable(problem: String) -> StoreError {
    StoreError::Permanent(format!(
        "a stored row cannot be read: {problem}; it may have been written by a newer Carillon"
    ))
}

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is not one of SQLite's.
    #[error("\"{0}\" is not an SQLite address: write sqlite://carillon.db or sqlite:///var/lib/carillon/carillon.db")]
    BadUrl(String),
    /// The directory is not there.
    #[error("{} cannot be made: the directory {} does not exist", path.display(), directory.display())]
    NoDirectory {
        /// The database.
        path: PathBuf,
        /// Where it would stand.
        directory: PathBuf,
    },
    /// It cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    NotWritable {
        /// The database.
        path: PathBuf,
        /// The words of the system.
        reason: String,
    },
    /// It is something else.
    #[error("{} is not an SQLite database; name another file, or move this one away", .0.display())]
    NotADatabase(PathBuf),
    /// It is damaged.
    #[error("{} is damaged: {reason}; restore it from a backup", path.display())]
    Corrupted {
        /// The database.
        path: PathBuf,
        /// SQLite's finding.
        reason: String,
    },
    /// A newer binary made it.
    #[error(
        "{} was made by a newer Carillon: its schema is version {found}, this one knows up to {known}; use the newer \
         Carillon, or a backup from before the upgrade",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// The disk is full.
    #[error("{} cannot be opened: the disk is full", .0.display())]
    DiskFull(PathBuf),
    /// Anything else.
    #[error("{} cannot be opened: {reason}", path.display())]
    Other {
        /// The database.
        path: PathBuf,
        /// The words of SQLite.
        reason: String,
    },
}

impl OpenError {
    pub(in crate::sqlite) fn of(path: &std::path::Path, error: &rusqlite::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase(path),
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupted { path, reason },
            Some(ErrorCode::DiskFull) => Self::DiskFull(path),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::NotWritable { path, reason }
            }
            _ => Self::Other { path, reason },
        }
    }
}
