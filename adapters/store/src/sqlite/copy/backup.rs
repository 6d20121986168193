//! A copy of a database beside the server that writes to it.
//!
//! The pages are copied as they are by SQLite's own call for that. `VACUUM INTO` would make a smaller file, but builds each table and
//! index anew. That takes the processor from the jobs of the machine, and it cannot tell how far it is.

use std::path::Path;

use super::CopyError;
use super::pages::{Draft, Progress, open, remove, sync_directory};
use crate::sqlite::client::names::beside;
use crate::sqlite::client::open::stored_version;

/// A copy that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Its size.
    pub bytes: u64,
    /// The version of its schema.
    pub version: i64,
}

/// Copies `database` into `file`, which gets its name once it is whole and on the disk. Blocks the thread.
///
/// # Errors
/// [`CopyError`]; `file` is as it was then.
pub fn backup(database: &Path, file: &Path, replace: bool, progress: Progress<'_>) -> Result<Backup, CopyError> {
    if !database.exists() {
        return Err(CopyError::NoDatabase(database.to_owned()));
    }
    if is_same(database, file) {
        return Err(CopyError::Itself(file.to_owned()));
    }
    if !replace && file.symlink_metadata().is_ok() {
        return Err(CopyError::Exists(file.to_owned()));
    }
    let from = open(database).map_err(CopyError::of_sqlite(database))?;
    let version = stored_version(&from).map_err(CopyError::of_sqlite(database))?;
    if version == 0 {
        return Err(CopyError::Foreign(database.to_owned()));
    }
    let draft = Draft::new(beside(file, ".partial"))?;
    let done = fill(&draft, &from, database, progress).and_then(|bytes| {
        name(&draft, file, replace)?;
        Ok(Backup { bytes, version })
    });
    if done.is_err() {
        // The fault itself is told; what is left over is small or goes with the next backup.
        let _ = remove(&draft.path);
    }
    done
}

fn fill(draft: &Draft, from: &rusqlite::Connection, database: &Path, progress: Progress<'_>) -> Result<u64, CopyError> {
    let written = CopyError::of_sqlite(&draft.path);
    let copy = draft.fill(from, database, progress)?;
    // One file without a log, which may also be read where nothing can be written.
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(&written)?;
    copy.close().map_err(|(_, error)| written(error))?;
    draft.sync()
}

fn name(draft: &Draft, file: &Path, replace: bool) -> Result<(), CopyError> {
    if replace {
        std::fs::rename(&draft.path, file).map_err(CopyError::of_file(file, "replaced"))?;
    } else {
        // A rename would replace a file that came meanwhile; a link does not.
        std::fs::hard_link(&draft.path, file).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => CopyError::Exists(file.to_owned()),
            _ => CopyError::of_file(file, "named")(error),
        })?;
        remove(&draft.path)?;
    }
    sync_directory(file)
}

/// Whether two names lead to one file.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
