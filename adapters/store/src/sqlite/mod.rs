//! SQLite: the database of a single server, in one file.
//!
//! One thread writes (`writer`), a few connections read (`readers`). The server of the file holds its [`Lease`] first, so the sessions
//! of former servers can be ended and swept at once.

mod alerts;
mod audit;
mod change;
mod client;
mod copy;
mod history;
mod live_output;
mod losses;
mod page;
mod reports;
mod rows;
mod select;
mod sign_in;
mod tables;
mod transaction;

pub(crate) use client::copy_side;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carillon_domain::time::Timestamp;

use crate::cache::definition_cache::Cache;
use crate::clock::Clock;
use crate::local::LocalStore;
use crate::local::port::LocalDatabase;
pub use crate::sqlite::client::error::OpenError;
pub use crate::sqlite::client::inspect::{Inspection, inspect};
pub use crate::sqlite::client::lease::{Lease, LeaseError, lease_holder, lock_file};
pub use crate::sqlite::client::names::directory_of;
pub use crate::sqlite::client::open::{OpenOptions, path_of_url};
use crate::sqlite::client::readers::{Reader, Readers};
use crate::sqlite::client::writer::{Writer, WriterConnection};
pub use crate::sqlite::copy::{Backup, CopyError, Restored, backup, restore};
pub use crate::sqlite::tables::Transaction;
use crate::{Store, StoreError, StoreResult};

/// Jobs, runs and sessions in one file.
pub type SqliteStore = LocalStore<SqliteDatabase>;

/// One file. Dropping it waits until everything that was accepted is written; then all of it is in the one file, which may be copied.
pub struct SqliteDatabase {
    clock: Arc<dyn Clock>,
    partitions: u16,
    /// Dropped before the writer: the last connection to close folds the write-ahead log into the file, and only the one
    /// that writes may.
    readers: Readers,
    writer: Writer,
}

impl SqliteStore {
    /// Opens the database, or makes it: with mode 0600, durable at every commit, at the newest schema. Blocks the thread.
    ///
    /// # Errors
    /// [`OpenError`], each a sentence for the person who started the server.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, options: OpenOptions) -> Result<Self, OpenError> {
        let path = absolute(path)?;
        let (conn, partitions) = crate::sqlite::client::open::writer(&path, &options)?;
        let other = |reason: std::io::Error| OpenError::Other { path: path.clone(), reason: reason.to_string() };
        let writer = Writer::spawn(conn, Cache::of(options.held)).map_err(other)?;
        Ok(Self::on(SqliteDatabase { clock, partitions, readers: Readers::new(path, options.readers), writer }))
    }

    /// The store for everything that asks no more than [`Store`]. Its code is compiled with this crate, beside the crates above.
    pub fn shared(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl LocalDatabase for SqliteDatabase {
    type Transaction<'a> = Transaction<'a>;

    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }

    async fn write<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        _call: &'static str,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (clock, partitions) = (self.clock.clone(), self.partitions);
        let run = move |WriterConnection { conn, cache }: &mut WriterConnection| {
            run(&mut Transaction { conn, cache, now_us: clock.now_us(), partitions })
        };
        self.writer.call(run).await
    }

    async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        _call: &'static str,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (clock, partitions) = (self.clock.clone(), self.partitions);
        let run = move |Reader { conn, cache }: &mut Reader| {
            run(&mut Transaction { conn, cache, now_us: clock.now_us(), partitions })
        };
        self.readers.call(run).await
    }
}

/// Readers are opened later, perhaps from another directory.
fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|error| OpenError::Other { path: path.to_owned(), reason: error.to_string() })
}
