//! The reads of a peek and of live output, and the purge.

use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{Peek, RunRef};
use carillon_domain::store;
use carillon_domain::time::Timestamp;

use crate::calls::sign_in::{LinkDigest, SigningKey, expires_at};
use crate::cluster::port::{Database, LiveOutputs, Peeking, Purging, SignIn};
use crate::cluster::transaction::Transaction;
use crate::purge_cursor::{Counted, Purge, PurgePositions};
use crate::reports::port::Reports;
use crate::{LivePart, PeekRequest, RolledUp, StoreResult};

impl<D: Database> Transaction<D> {
    /// Each part holds by itself, so they need not come from one state of the database.
    pub async fn peek(&mut self, request: &PeekRequest) -> StoreResult<Peek> {
        let found = self.connection.unclaimed(request, self.shared.partitions).await?;
        let (claimants, cancels) = self.connection.news(request.session).await?;
        let now = self.now();
        let wanted_outputs = self.connection.wanted_outputs(request.session, now).await?;
        Ok(Peek { claimants, cancels, wanted_outputs, ..store::peek(&request.partitions, found) })
    }

    pub async fn held(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        self.connection.rows_held_by(session).await
    }

    pub async fn ask_live_output(&mut self, run: RunId) -> StoreResult<()> {
        self.wrote = true;
        let now = self.now();
        self.connection.ask_live_output(run, now).await
    }

    pub async fn publish(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        self.wrote = true;
        self.connection.publish_live_output(outputs).await
    }

    pub async fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.wrote = true;
        self.connection.purge_audit(before, limit).await
    }

    pub async fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey> {
        self.wrote = true;
        self.connection.signing_key(offered).await
    }

    pub async fn add_link(&mut self, link: LinkDigest, lives_for: Duration) -> StoreResult<()> {
        self.wrote = true;
        let now = self.now();
        self.connection.insert_link(link, now, expires_at(now, lives_for)).await
    }

    pub async fn has_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        let now = self.now();
        self.connection.has_link(link, now).await
    }

    pub async fn use_link(&mut self, link: LinkDigest) -> StoreResult<bool> {
        self.wrote = true;
        let now = self.now();
        self.connection.delete_link(link, now).await
    }

    pub async fn has_to_roll_up(&mut self) -> StoreResult<bool> {
        let now = self.now();
        self.connection.has_to_roll_up(now).await
    }

    pub async fn roll_up(&mut self, limit: usize) -> StoreResult<RolledUp> {
        self.wrote = true;
        let now = self.now();
        self.connection.roll_up(limit, now, &self.shared.namespaces).await
    }

    pub async fn purge(
        &mut self,
        purge: &Purge,
        counted: &Counted,
        from: PurgePositions,
    ) -> StoreResult<(usize, PurgePositions)> {
        self.wrote = true;
        let now = self.now();
        self.connection.purge(purge, counted, from, now).await
    }
}
