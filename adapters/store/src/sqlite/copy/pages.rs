//! All pages of one database into a new file under a temporary name, checked and on the disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::CopyError;
use crate::sqlite::client::names::{beside, directory_of};

/// Pages of 4 KiB between two reports.
const STEP: i32 = 512;
/// The wait for a page that another process locks.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Hears how many bytes are copied, and of how many.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// A file that nobody takes for whole yet. A crash leaves it, and the next copy of that name throws it away.
pub(super) struct Draft {
    pub path: PathBuf,
    /// Its lock tells a copy that is under way from one that a crash left.
    lock: File,
}

impl Draft {
    /// Makes an empty one that only its owner may read: definitions may hold secrets.
    pub fn new(path: PathBuf) -> Result<Self, CopyError> {
        let mut how = OpenOptions::new();
        let made = how.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = made.map_err(CopyError::of_file(&path, "made"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CopyError::UnderWay(path)),
            Err(TryLockError::Error(error)) => return Err(CopyError::of_file(&path, "locked")(error)),
        }
        lock.set_len(0).map_err(CopyError::of_file(&path, "emptied"))?;
        for ending in ["-journal", "-wal", "-shm"] {
            remove(&beside(&path, ending))?;
        }
        Ok(Self { path, lock })
    }

    /// Copies all pages, as they are in one moment. Whoever writes meanwhile is not held up: the copy reads one state of the
    /// write-ahead log, and an open transaction keeps that state.
    pub fn fill(&self, from: &Connection, from_path: &Path, progress: Progress<'_>) -> Result<Connection, CopyError> {
        let (read, written) = (CopyError::of_sqlite(from_path), CopyError::of_sqlite(&self.path));
        let mut to = open(&self.path).map_err(&written)?;
        // It is synced once, at the end, and thrown away after a crash.
        to.pragma_update(None, "synchronous", "OFF").map_err(&written)?;
        to.pragma_update(None, "journal_mode", "OFF").map_err(&written)?;
        from.execute_batch("BEGIN").map_err(&read)?;
        let page: u32 = from.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(&read)?;
        // The first read begins the transaction.
        from.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(&read)?;
        let copying = Backup::new(from, &mut to).map_err(&written)?;
        loop {
            let step = copying.step(STEP).map_err(&read)?;
            let told = copying.progress();
            let bytes = |pages: i32| u64::try_from(pages).unwrap_or_default() * u64::from(page);
            progress(bytes(told.pagecount - told.remaining), bytes(told.pagecount));
            match step {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(BETWEEN_TRIES),
                _ => {}
            }
        }
        drop(copying);
        from.execute_batch("COMMIT").map_err(&read)?;
        check(&to, &self.path)?;
        Ok(to)
    }

    /// Onto the disk, once nobody has the database in it open any more.
    pub fn sync(&self) -> Result<u64, CopyError> {
        self.lock.sync_all().map_err(CopyError::of_file(&self.path, "synced"))?;
        Ok(self.lock.metadata().map_err(CopyError::of_file(&self.path, "read"))?.len())
    }
}

/// Opens a file that is there.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    Ok(conn)
}

/// Whether all pages and indexes hold together.
fn check(conn: &Connection, path: &Path) -> Result<(), CopyError> {
    let finding: String =
        conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(CopyError::of_sqlite(path))?;
    if finding == "ok" { Ok(()) } else { Err(CopyError::Damaged { path: path.to_owned(), finding }) }
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), CopyError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CopyError::of_file(path, "removed")(error)),
        _ => Ok(()),
    }
}

/// Makes names that were given or taken survive a crash of the machine.
pub(super) fn sync_directory(of: &Path) -> Result<(), CopyError> {
    let directory = directory_of(of);
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(CopyError::of_file(directory, "synced"))
}
