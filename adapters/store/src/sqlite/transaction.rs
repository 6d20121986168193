//! A transaction beyond the rows of jobs and sessions: parts, peeks, live output, purges.

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{Peek, RunRef};
use carillon_domain::time::Timestamp;

use rusqlite::Connection;

use crate::cache::definition_cache::Cache;
use crate::calls::sign_in::{LinkDigest, SigningKey};
use crate::live_output::LiveRow;
use crate::local::port::LocalTransaction;
use crate::purge_cursor::{Counted, Purge, PurgePosition, PurgePositions};
use crate::sqlite::client::error::statement;
use crate::sqlite::client::writer::{Cached, savepoint};
use crate::sqlite::history::purge;
use crate::sqlite::tables::Transaction;
use crate::sqlite::{audit, history, live_output, losses, sign_in};
use crate::tables::Tables;
use crate::{LivePart, PeekRequest, StoreResult};

impl Cached for Transaction<'_> {
    fn conn(&self) -> &Connection {
        self.conn
    }

    fn cache(&mut self) -> &mut Cache {
        self.cache
    }
}

impl LocalTransaction for Transaction<'_> {
    fn part<T>(&mut self, run: impl FnOnce(&mut Self) -> StoreResult<T>) -> StoreResult<T> {
        savepoint(self, run).map_err(statement).flatten()
    }

    fn peek(&mut self, request: &PeekRequest) -> StoreResult<Peek> {
        history::peek(self.conn, request, self.partitions, self.now())
    }

    fn rows_held_by(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        history::held(self.conn, session)
    }

    fn live_output(&mut self, run: RunId) -> StoreResult<Option<LiveRow>> {
        live_output::select(self.conn, run)
    }

    fn ask_live_output(&mut self, run: RunId) -> StoreResult<()> {
        live_output::ask(self.conn, run, self.now())
    }

    fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        live_output::write(self.conn, outputs)
    }

    fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey> {
        sign_in::key(self.conn, offered)
    }

    fn insert_link(&mut self, link: LinkDigest, expires_at: Timestamp) -> StoreResult<()> {
        sign_in::insert_link(self.conn, link, self.now(), expires_at)
    }

    fn has_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        sign_in::has_link(self.conn, link, self.now())
    }

    fn delete_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        sign_in::delete_link(self.conn, link, self.now())
    }

    fn crowded_jobs(&mut self, purge: &Purge, from: PurgePosition) -> StoreResult<Counted> {
        purge::crowded_jobs(self.conn, purge, from)
    }

    fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        audit::purge(self.conn, before, limit)
    }

    fn purge(
        &mut self,
        purge: &Purge,
        counted: &Counted,
        from: PurgePositions,
    ) -> StoreResult<(usize, PurgePositions)> {
        let purged = purge::purge(self.conn, purge, counted)?;
        losses::purge(self.conn, self.now())?;
        live_output::purge(self.conn, self.now())?;
        Ok((purged, PurgePositions { crowded_after: counted.next_after, ..from }))
    }
}
