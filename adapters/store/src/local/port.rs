//! The seam between the calls and a database inside the process.

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{Peek, RunRef};
use carillon_domain::time::Timestamp;

use crate::calls::sign_in::{LinkDigest, SigningKey};
use crate::live_output::LiveRow;
use crate::purge_cursor::{Counted, Purge, PurgePosition, PurgePositions};
use crate::reports::port::Reports;
use crate::tables::Tables;
use crate::{LivePart, PeekRequest, StoreError, StoreResult};

/// A database inside the process. Its transactions never wait for another one.
pub trait LocalDatabase: Send + Sync + 'static {
    /// One transaction.
    type Transaction<'a>: LocalTransaction;

    /// The time.
    fn now(&self) -> impl Future<Output = StoreResult<Timestamp>> + Send;

    /// Runs a transaction that writes, and commits it if it succeeds. `call` names the call of the store.
    fn write<T, E>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut Self::Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static;

    /// Runs a transaction that reads one state of the database.
    fn read<T, E>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut Self::Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static;
}

/// A transaction of such a database.
pub trait LocalTransaction: Tables + Reports {
    /// Runs a part of the transaction; nothing of it stays if it fails.
    ///
    /// # Errors
    /// Those of the part, and of the database.
    fn part<T>(&mut self, run: impl FnOnce(&mut Self) -> StoreResult<T>) -> StoreResult<T>;

    /// See [`crate::NodeStore::peek`].
    ///
    /// # Errors
    /// Those of the database.
    fn peek(&mut self, request: &PeekRequest) -> StoreResult<Peek>;

    /// Every row that a session holds.
    ///
    /// # Errors
    /// Those of the database.
    fn rows_held_by(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>>;

    /// The published part of an output and when it was asked for.
    ///
    /// # Errors
    /// Those of the database.
    fn live_output(&mut self, run: RunId) -> StoreResult<Option<LiveRow>>;

    /// Notes that somebody reads an output.
    ///
    /// # Errors
    /// Those of the database.
    fn ask_live_output(&mut self, run: RunId) -> StoreResult<()>;

    /// Publishes parts of outputs, only where somebody asked and never back to an older state.
    ///
    /// # Errors
    /// Those of the database.
    fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()>;

    /// Stores the key that signs sessions of the page unless there is one; answers the one that is there.
    ///
    /// # Errors
    /// Those of the database.
    fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey>;

    /// Stores a link that signs somebody in, and removes those that have expired.
    ///
    /// # Errors
    /// Those of the database.
    fn insert_link(&mut self, link: LinkDigest, expires_at: Timestamp) -> StoreResult<()>;

    /// Whether there is a link that has not expired.
    ///
    /// # Errors
    /// Those of the database.
    fn has_link(&mut self, link: LinkDigest) -> StoreResult<bool>;

    /// Deletes a link that has not expired; whether there was one.
    ///
    /// # Errors
    /// Those of the database.
    fn delete_link(&mut self, link: LinkDigest) -> StoreResult<bool>;

    /// Jobs with more records than they may have, as far as a part of the history tells.
    ///
    /// # Errors
    /// Those of the database.
    fn crowded_jobs(&mut self, purge: &Purge, from: PurgePosition) -> StoreResult<Counted>;

    /// Deletes up to `limit` entries of the audit log that are older than `before`; answers how many.
    ///
    /// # Errors
    /// Those of the database.
    fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize>;

    /// Deletes up to `purge.limit` records, and remains. Answers how many records, and where the next call goes on.
    ///
    /// # Errors
    /// Those of the database.
    fn purge(&mut self, purge: &Purge, counted: &Counted, from: PurgePositions)
    -> StoreResult<(usize, PurgePositions)>;
}
