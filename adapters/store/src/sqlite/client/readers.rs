//! A few connections that only read, used from blocking threads: a view never waits for the writing thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::StoreError;
use crate::cache::definition_cache::Cache;
use crate::sqlite::{client::error, client::open};

/// A connection with what it has read before.
pub(in crate::sqlite) struct Reader {
    pub conn: Connection,
    pub cache: Cache,
}

/// The connections that are not in use.
#[derive(Clone)]
pub(in crate::sqlite) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Reader>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub fn new(path: PathBuf, count: usize) -> Self {
        Self { path: Arc::new(path), idle: Arc::default(), permits: Arc::new(Semaphore::new(count.max(1))) }
    }

    /// Runs `look` on one state of the database.
    pub async fn call<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        look: impl FnOnce(&mut Reader) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let lost = |what: String| E::from(StoreError::Retryable(what));
        let permit = self.permits.clone().acquire_owned().await.map_err(|error| lost(error.to_string()))?;
        let this = self.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut reader = this.take()?;
            let answer = within_transaction(&mut reader, look);
            this.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            answer
        });
        looked.await.map_err(|error| lost(error.to_string()))?
    }

    fn take(&self) -> Result<Reader, StoreError> {
        if let Some(idle) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(idle);
        }
        let conn = open::reader(&self.path).map_err(error::statement)?;
        Ok(Reader { conn, cache: Cache::of(0) })
    }
}

fn within_transaction<T, E: From<StoreError>>(
    reader: &mut Reader,
    look: impl FnOnce(&mut Reader) -> Result<T, E>,
) -> Result<T, E> {
    reader.conn.execute_batch("BEGIN").map_err(error::statement)?;
    let answer = look(reader);
    let ended = reader.conn.execute_batch("ROLLBACK").map_err(error::statement);
    let answer = answer?;
    ended?;
    Ok(answer)
}
