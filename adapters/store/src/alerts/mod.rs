//! Being told: routes, the watch step, and deliveries, in the database that all nodes share.
//!
//! History and table `alert_fact` are the journals of facts. A step reads both behind one cursor, lets the domain judge
//! ([`carillon_domain::alert::watch`]), and writes incidents, deliveries and the cursor in one commit. So each fact is judged once in the
//! cluster, and a notice exists exactly when its incident does. Any node sends deliveries, at least once.

mod deliveries;
pub(crate) mod document;
mod expectations;
mod facts;
mod held_calls;
mod incidents;
pub mod port;
mod routes;
pub(crate) mod sql;
mod step;
mod told;
mod types;
mod unreadable;

pub(crate) mod calls {
    //! The calls over the rows of any database.

    pub(crate) use super::deliveries::{claim, last_ping, notices, page, purge, resend, settle, test};
    pub(crate) use super::expectations::{next_watch, watch};
    pub(crate) use super::incidents::page as incidents;
    pub(crate) use super::routes::{all, delete, find, put};
    pub(crate) use super::step::{has_work, step};
    pub(crate) use super::told::{Consequences, commits_are_accepted, node_lost, silent, tell};
    pub(crate) use super::unreadable::unreadable;
}

pub use types::{
    AlertError, Claimed, DeliveryClaim, DeliveryCounts, DeliveryQuery, DeliveryView, IncidentQuery, Message, Stepped,
    StoredRoute, Unreadable, Watched,
};

use async_trait::async_trait;
use carillon_domain::alert::{Answer, Fact, Incident, Notice, Route};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use crate::feed::{JournalAsk, Numbered};
use crate::{Author, Page, StoreError};

/// The calls of whoever tells people of troubles.
///
/// As long as there is no route, and no job with expectations or a monitor, a [step](Self::alert_step) reads one row. A firing costs no
/// statement more in any case. A route is never told of facts from before its first version.
#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Creates or replaces a route; answers it as it is stored. `if_version` guards against a lost update. A route that changes nothing
    /// is not written. Incidents that would mean something else under the new route are forgotten without a word.
    ///
    /// This and the deletion of a route are written into the audit log in their own commits, without secrets.
    async fn put_route(
        &self,
        route: &Route,
        if_version: Option<u64>,
        author: &Author,
    ) -> Result<StoredRoute, AlertError>;

    /// Deletes a route, with its incidents and the deliveries that were not sent yet.
    async fn delete_route(&self, name: &str, if_version: Option<u64>, author: &Author) -> Result<(), AlertError>;

    /// One route.
    async fn route(&self, name: &str) -> Result<StoredRoute, AlertError>;

    /// Every route that can be read, by name.
    async fn routes(&self) -> Result<Vec<StoredRoute>, StoreError>;

    /// One watch step over up to `limit` new rows of each journal. Any node calls it every second or two, and again at once where
    /// [`Stepped::more`] says so. Nodes that step at the same time wait for each other.
    async fn alert_step(&self, limit: usize) -> Result<Stepped, StoreError>;

    /// Judges the expectations of up to `limit` jobs that are due for a look. Each verdict becomes a fact once in the cluster.
    async fn watch_expectations(&self, limit: usize) -> Result<Watched, StoreError>;

    /// Writes down a trouble of the cluster, or its end. A trouble that is known and not over is the same fact; `true` if it is news.
    /// Losses of nodes and of commits are written by the calls that find them.
    async fn tell_fact(&self, fact: &Fact) -> Result<bool, StoreError>;

    /// Takes deliveries that are to be sent now, those that have waited longest first. The session must have ended each attempt, and
    /// [settled](Self::settle_delivery) it, within [`carillon_domain::alert::Delivery::LEASE`]; then another node may take it. A delivery
    /// whose route has no such target any more is given up.
    async fn claim_deliveries(&self, request: &DeliveryClaim) -> Result<Vec<Claimed>, StoreError>;

    /// The answer to an attempt. Receivers of a mail who were refused among others get deliveries of their own. `jitter` as [`carillon_domain::alert::Delivery::answered`] takes it. `false` if the session does not
    /// hold the delivery any more.
    async fn settle_delivery(
        &self,
        session: SessionId,
        id: u64,
        answer: &Answer,
        jitter: u32,
    ) -> Result<bool, StoreError>;

    /// Deliveries, newest first. The cursor is the id of the last one of the page before.
    async fn deliveries(&self, query: &DeliveryQuery) -> Result<Page<DeliveryView, u64>, StoreError>;

    /// Sends a delivery again that was sent or given up.
    async fn resend_delivery(&self, id: u64, author: &Author) -> Result<DeliveryView, AlertError>;

    /// Makes a notice that tries every target of a route; answers its deliveries. This and sending again are written into the audit log.
    async fn test_route(&self, name: &str, author: &Author) -> Result<Vec<DeliveryView>, AlertError>;

    /// How many deliveries are in each state, as far as [`DeliveryCounts::MOST`].
    async fn delivery_counts(&self) -> Result<DeliveryCounts, StoreError>;

    /// Incidents that are told or will be, oldest first.
    async fn incidents(&self, query: &IncidentQuery) -> Result<Vec<Incident>, StoreError>;

    /// The newest call of a job's monitor at the end of a run.
    async fn last_ping(&self, job: JobId) -> Result<Option<DeliveryView>, StoreError>;

    /// Notices by their numbers, ascending. The number of a notice is the id of its first delivery.
    async fn notices_numbered(&self, ask: &JournalAsk) -> Result<Numbered<Notice>, StoreError>;

    /// The rows that this binary cannot read, among all routes and the first hundreds of the others. Each is left out wherever it stands.
    async fn unreadable_alerts(&self) -> Result<Vec<Unreadable>, StoreError>;

    /// Deletes up to `limit` deliveries that were sent or given up before `before`; answers how many rows. Older facts go too, if they
    /// are judged and over.
    async fn purge_alerts(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}
