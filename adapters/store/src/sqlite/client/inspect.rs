//! A look at a database file that changes nothing, also while a server writes to it.
//!
//! A reader of a write-ahead log makes the index file beside it, and writes to it. So the index is opened for reading only; where
//! there is no log, the file is read as one that nobody changes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use rusqlite::{Connection, OpenFlags};

use crate::sqlite::client::error::OpenError;
use crate::sqlite::client::lease::lease_holder;
use crate::sqlite::client::names::beside;
use crate::sqlite::client::open::{known_version, stored_version};

/// Bytes that mean something in an address of SQLite.
const MEANINGFUL: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#').add(b' ');

/// A database file as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of its schema; 0 where none is made yet.
    pub found: i64,
    /// The newest version that this binary knows.
    pub known: i64,
    /// The note of the server that holds it.
    pub held_by: Option<String>,
}

/// Looks at a database; `None` if there is none yet. Blocks the thread.
///
/// # Errors
/// [`OpenError`], as for a server that opens it.
pub fn inspect(path: &Path) -> Result<Option<Inspection>, OpenError> {
    match std::fs::File::open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::Other { path: path.to_owned(), reason: error.to_string() }),
    }
    let held_by = lease_holder(path).map_err(|error| OpenError::Other {
        path: path.to_owned(),
        reason: format!("its lock cannot be read: {error}"),
    })?;
    let found = version(path).map_err(|error| OpenError::of(path, &error))?;
    Ok(Some(Inspection { found, known: known_version(), held_by }))
}

fn version(path: &Path) -> rusqlite::Result<i64> {
    stored_version(&read_only(path)?)
}

/// A connection that changes nothing and makes no file.
pub(in crate::sqlite) fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let has = |ending: &str| beside(path, ending).exists();
    let how = if has("-wal") && has("-shm") { "readonly_shm=1" } else { "immutable=1" };
    let encoded = percent_encode(path.as_os_str().as_bytes(), MEANINGFUL);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{encoded}?mode=ro&{how}"), flags)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::clock::SystemClock;
    use crate::sqlite::{OpenOptions, SqliteStore};

    /// All files, each with its content and the time of its last change.
    fn files(directory: &Path) -> BTreeMap<OsString, (Vec<u8>, SystemTime)> {
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let file = |path: PathBuf| (std::fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
        entries.map(|entry| (entry.file_name(), file(entry.path()))).collect()
    }

    #[test]
    fn a_look_changes_nothing_and_finds_the_version() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a%b c.db");
        assert_eq!(inspect(&path).unwrap(), None);
        assert_eq!(files(directory.path()), BTreeMap::new());
        let store = SqliteStore::open(&path, Arc::new(SystemClock), OpenOptions::default()).unwrap();
        drop(store);
        let before = files(directory.path());
        let found = inspect(&path).unwrap().unwrap();
        assert_eq!((found.found, found.held_by), (found.known, None));
        assert!(found.known > 0 && files(directory.path()) == before, "{:?}", before.keys());
        std::fs::write(&path, "something else, and long enough to have a header of a database in it").unwrap();
        assert!(matches!(inspect(&path), Err(OpenError::NotADatabase(_))));
    }
}
