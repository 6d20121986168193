//! The single-server lease: an exclusive `flock` on a file beside the database.
//!
//! The lock belongs to the open file, not to the process, and the keeper inherits the descriptor. So the lock is free only when the server
//! *and* its keeper, with its last child, are gone. Nothing here ever unlocks; closing does.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carillon_domain::guard::{Guard, enabled};

use crate::clock::{Clock, SystemClock};
use crate::sqlite::client::names::directory_of;

const POLL: Duration = Duration::from_millis(50);

/// The right to be the one server of a database file; lasts until the last copy of its descriptor is closed.
#[derive(Debug)]
pub struct Lease {
    file: File,
    path: PathBuf,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another server, or the keeper of one, holds it.
    #[error(
        "{} is served by another Carillon ({holder}); it holds the lock on {}. Stop it, or wait until its last run has \
         ended",
        database.display(), path.display()
    )]
    Held {
        /// The database.
        database: PathBuf,
        /// The lock file.
        path: PathBuf,
        /// The holder's note about itself.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("the lock file {} cannot be used: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The words of the system.
        source: std::io::Error,
    },
}

impl Lease {
    /// Takes the lease of `database`, waiting up to `wait` for its holder to go. Blocks the thread.
    ///
    /// # Errors
    /// [`LeaseError::Held`] when the holder stayed.
    pub fn acquire(database: &Path, wait: Duration) -> Result<Self, LeaseError> {
        let path = lock_path(database);
        let io = |source| LeaseError::Io { path: path.clone(), source };
        let wait = if enabled(Guard::FileLease) { wait } else { Duration::ZERO };
        let (mut file, is_locked) = lock_file(&path, wait).map_err(io)?;
        if !is_locked && enabled(Guard::FileLease) {
            let holder = holder(&mut file);
            return Err(LeaseError::Held { database: database.to_owned(), path, holder });
        }
        sign(&mut file).map_err(io)?;
        Ok(Self { file, path })
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Lease {
    /// The file that the keeper inherits. It is closed on exec unless the caller clears that.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a file, or makes it with mode 0600, and takes its lock, waiting up to `wait` for its holder to go. Blocks the thread. `false`
/// where the holder stayed.
///
/// # Errors
/// The file cannot be opened or locked.
pub fn lock_file(path: &Path, wait: Duration) -> io::Result<(File, bool)> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok((file, true)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= wait => return Ok((file, false)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(POLL.min(wait)),
        }
    }
}

/// The note of the server that holds the lease of `database`, if one does. Nothing is written; a server that starts meanwhile waits
/// for the moment that this takes.
///
/// # Errors
/// [`LeaseError::Io`] when the lock file is there and cannot be read.
pub fn lease_holder(database: &Path) -> Result<Option<String>, LeaseError> {
    let path = lock_path(database);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LeaseError::Io { path, source }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&mut file))),
        Err(TryLockError::Error(source)) => Err(LeaseError::Io { path, source }),
    }
}

/// Beside the file itself, whatever name it was reached by: two names of one database have one lock.
fn lock_path(database: &Path) -> PathBuf {
    let itself = std::fs::canonicalize(database).ok().or_else(|| {
        // It is not made yet: its directory is.
        let parent = directory_of(database);
        Some(std::fs::canonicalize(parent).ok()?.join(database.file_name()?))
    });
    let mut path = itself.unwrap_or_else(|| database.to_owned()).into_os_string();
    path.push(".lock");
    path.into()
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "pid {}, since {}", std::process::id(), SystemClock.now().to_rfc3339_short())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(200).read_to_string(&mut text));
    if read.is_err() || text.is_empty() { "it has not said who it is".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another test of this process may be between fork and exec, and its child hold a copy of the descriptor until then.
    const AWHILE: Duration = Duration::from_secs(10);

    #[test]
    fn a_second_lease_names_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("carillon.db");
        let first = Lease::acquire(&database, Duration::ZERO).unwrap();
        let sentence = Lease::acquire(&database, Duration::ZERO).unwrap_err().to_string();
        assert!(sentence.contains(&format!("pid {}", std::process::id())), "{sentence}");
        assert!(sentence.contains("carillon.db.lock"), "{sentence}");
        drop(first);
        Lease::acquire(&database, AWHILE).unwrap();
    }

    #[test]
    fn a_look_at_the_holder_takes_and_makes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("carillon.db");
        assert_eq!(lease_holder(&database).unwrap(), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let held = Lease::acquire(&database, Duration::ZERO).unwrap();
        let told = lease_holder(&database).unwrap().unwrap_or_default();
        assert!(told.contains(&format!("pid {}", std::process::id())), "{told}");
        drop(held);
    }

    #[test]
    fn another_name_of_the_same_file_is_the_same_lease() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("carillon.db");
        std::fs::write(&database, "").unwrap();
        let alias = directory.path().join("alias.db");
        std::os::unix::fs::symlink(&database, &alias).unwrap();
        let _first = Lease::acquire(&alias, Duration::ZERO).unwrap();
        assert!(Lease::acquire(&database, Duration::ZERO).is_err());
    }

    #[test]
    fn a_copy_of_the_descriptor_keeps_the_lease() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("carillon.db");
        let first = Lease::acquire(&database, Duration::ZERO).unwrap();
        let keepers = first.as_fd().try_clone_to_owned().unwrap();
        drop(first);
        assert!(Lease::acquire(&database, Duration::ZERO).is_err());
        drop(keepers);
        Lease::acquire(&database, AWHILE).unwrap();
    }
}
