//! The calls of whoever tells people of troubles.

use async_trait::async_trait;
use carillon_domain::alert::{Answer, Fact, Incident, Notice, Route};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use crate::alerts::port::AlertRows;
use crate::alerts::{
    AlertError, Claimed, DeliveryClaim, DeliveryCounts, DeliveryQuery, DeliveryView, IncidentQuery, Stepped,
    StoredRoute, Unreadable, Watched, calls,
};
use crate::cluster::ClusterStore;
use crate::cluster::locks::Locks;
use crate::cluster::port::{Database, Pool};
use crate::cluster::transaction::{TRIES, Transaction};
use crate::feed::{JournalAsk, Numbered};
use crate::tables::Tables;
use crate::{AlertStore, Author, Page, StoreError};

macro_rules! write {
    ($store:expr, $name:literal, |$tables:ident| $call:expr) => {
        within!(Transaction::begin(&$store.database, &$store.shared, (Pool::Writers, $name), Locks::Rows), |$tables| {
            $call
        })
    };
}

macro_rules! read {
    ($store:expr, $name:literal, |$tables:ident| $call:expr) => {
        within!(Transaction::read(&$store.database, &$store.shared, $name), |$tables| $call)
    };
}

#[async_trait]
impl<D: Database> AlertStore for ClusterStore<D> {
    async fn put_route(
        &self,
        route: &Route,
        if_version: Option<u64>,
        author: &Author,
    ) -> Result<StoredRoute, AlertError> {
        write!(self, "put_route", |tables| calls::put(tables, route, if_version, author))
    }

    async fn delete_route(&self, name: &str, if_version: Option<u64>, author: &Author) -> Result<(), AlertError> {
        write!(self, "delete_route", |tables| calls::delete(tables, name, if_version, author))
    }

    async fn route(&self, name: &str) -> Result<StoredRoute, AlertError> {
        read!(self, "route", |tables| calls::find(tables, name))
    }

    async fn routes(&self) -> Result<Vec<StoredRoute>, StoreError> {
        glance!(self, |tables| calls::all(tables))
    }

    async fn alert_step(&self, limit: usize) -> Result<Stepped, StoreError> {
        // The step reads again, so what is read here need not agree.
        if let Err(nothing) = glance!(self, |tables| calls::has_work(tables))? {
            return Ok(nothing);
        }
        let within = self.database.commits_within();
        write!(self, "alert_step", |tables| calls::step(tables, limit, within))
    }

    async fn watch_expectations(&self, limit: usize) -> Result<Watched, StoreError> {
        if let Err(nothing) = glance!(self, |tables| calls::next_watch(tables))? {
            return Ok(nothing);
        }
        write!(self, "watch_expectations", |tables| calls::watch(tables, limit))
    }

    async fn tell_fact(&self, fact: &Fact) -> Result<bool, StoreError> {
        write!(self, "tell_fact", |tables| calls::tell(tables, fact))
    }

    async fn claim_deliveries(&self, request: &DeliveryClaim) -> Result<Vec<Claimed>, StoreError> {
        write!(self, "claim_deliveries", |tables| calls::claim(tables, request))
    }

    async fn settle_delivery(
        &self,
        session: SessionId,
        id: u64,
        answer: &Answer,
        jitter: u32,
    ) -> Result<bool, StoreError> {
        write!(self, "settle_delivery", |tables| calls::settle(tables, session, id, answer, jitter))
    }

    async fn deliveries(&self, query: &DeliveryQuery) -> Result<Page<DeliveryView, u64>, StoreError> {
        read!(self, "deliveries", |tables| calls::page(tables, query))
    }

    async fn resend_delivery(&self, id: u64, author: &Author) -> Result<DeliveryView, AlertError> {
        write!(self, "resend_delivery", |tables| calls::resend(tables, id, author))
    }

    async fn test_route(&self, name: &str, author: &Author) -> Result<Vec<DeliveryView>, AlertError> {
        write!(self, "test_route", |tables| calls::test(tables, name, author))
    }

    async fn delivery_counts(&self) -> Result<DeliveryCounts, StoreError> {
        read!(self, "delivery_counts", |tables| tables.alerts().delivery_counts())
    }

    async fn incidents(&self, query: &IncidentQuery) -> Result<Vec<Incident>, StoreError> {
        read!(self, "incidents", |tables| calls::incidents(tables, query))
    }

    async fn last_ping(&self, job: JobId) -> Result<Option<DeliveryView>, StoreError> {
        read!(self, "last_ping", |tables| calls::last_ping(tables, job))
    }

    async fn notices_numbered(&self, ask: &JournalAsk) -> Result<Numbered<Notice>, StoreError> {
        read!(self, "notices_numbered", |tables| calls::notices(tables, ask))
    }

    async fn unreadable_alerts(&self) -> Result<Vec<Unreadable>, StoreError> {
        read!(self, "unreadable_alerts", |tables| calls::unreadable(tables))
    }

    async fn purge_alerts(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        write!(self, "purge_alerts", |tables| calls::purge(tables, before, limit))
    }
}
