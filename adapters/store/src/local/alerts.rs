//! The calls of whoever tells people of troubles.

use std::time::Duration;

use async_trait::async_trait;
use carillon_domain::alert::{Answer, Fact, Incident, Notice, Route};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use crate::alerts::port::AlertRows;
use crate::alerts::{
    AlertError, Claimed, DeliveryClaim, DeliveryCounts, DeliveryQuery, DeliveryView, IncidentQuery, Stepped,
    StoredRoute, Unreadable, Watched, calls,
};
use crate::feed::{JournalAsk, Numbered};
use crate::local::LocalStore;
use crate::local::port::LocalDatabase;
use crate::tables::{Tables, at_once};
use crate::{AlertStore, Author, Page, StoreError};

#[async_trait]
impl<D: LocalDatabase> AlertStore for LocalStore<D> {
    async fn put_route(
        &self,
        route: &Route,
        if_version: Option<u64>,
        author: &Author,
    ) -> Result<StoredRoute, AlertError> {
        let (route, author) = (route.clone(), author.clone());
        self.database.write("put_route", move |tables| at_once(calls::put(tables, &route, if_version, &author))).await
    }

    async fn delete_route(&self, name: &str, if_version: Option<u64>, author: &Author) -> Result<(), AlertError> {
        let (name, author) = (name.to_owned(), author.clone());
        let delete = move |tables: &mut D::Transaction<'_>| at_once(calls::delete(tables, &name, if_version, &author));
        self.database.write("delete_route", delete).await
    }

    async fn route(&self, name: &str) -> Result<StoredRoute, AlertError> {
        let name = name.to_owned();
        self.database.read("route", move |tables| at_once(calls::find(tables, &name))).await
    }

    async fn routes(&self) -> Result<Vec<StoredRoute>, StoreError> {
        self.database.read("routes", |tables| at_once(calls::all(tables))).await
    }

    async fn alert_step(&self, limit: usize) -> Result<Stepped, StoreError> {
        if let Err(nothing) = self.database.read("alert_step", |tables| at_once(calls::has_work(tables))).await? {
            return Ok(nothing);
        }
        let step = move |tables: &mut D::Transaction<'_>| at_once(calls::step(tables, limit, Duration::ZERO));
        self.database.write("alert_step", step).await
    }

    async fn watch_expectations(&self, limit: usize) -> Result<Watched, StoreError> {
        let next = self.database.read("watch_expectations", |tables| at_once(calls::next_watch(tables))).await?;
        if let Err(nothing) = next {
            return Ok(nothing);
        }
        self.database.write("watch_expectations", move |tables| at_once(calls::watch(tables, limit))).await
    }

    async fn tell_fact(&self, fact: &Fact) -> Result<bool, StoreError> {
        let fact = fact.clone();
        self.database.write("tell_fact", move |tables| at_once(calls::tell(tables, &fact))).await
    }

    async fn claim_deliveries(&self, request: &DeliveryClaim) -> Result<Vec<Claimed>, StoreError> {
        let request = request.clone();
        self.database.write("claim_deliveries", move |tables| at_once(calls::claim(tables, &request))).await
    }

    async fn settle_delivery(
        &self,
        session: SessionId,
        id: u64,
        answer: &Answer,
        jitter: u32,
    ) -> Result<bool, StoreError> {
        let answer = answer.clone();
        let settle =
            move |tables: &mut D::Transaction<'_>| at_once(calls::settle(tables, session, id, &answer, jitter));
        self.database.write("settle_delivery", settle).await
    }

    async fn deliveries(&self, query: &DeliveryQuery) -> Result<Page<DeliveryView, u64>, StoreError> {
        let query = query.clone();
        self.database.read("deliveries", move |tables| at_once(calls::page(tables, &query))).await
    }

    async fn resend_delivery(&self, id: u64, author: &Author) -> Result<DeliveryView, AlertError> {
        let author = author.clone();
        self.database.write("resend_delivery", move |tables| at_once(calls::resend(tables, id, &author))).await
    }

    async fn test_route(&self, name: &str, author: &Author) -> Result<Vec<DeliveryView>, AlertError> {
        let (name, author) = (name.to_owned(), author.clone());
        self.database.write("test_route", move |tables| at_once(calls::test(tables, &name, &author))).await
    }

    async fn delivery_counts(&self) -> Result<DeliveryCounts, StoreError> {
        self.database.read("delivery_counts", |tables| at_once(tables.alerts().delivery_counts())).await
    }

    async fn incidents(&self, query: &IncidentQuery) -> Result<Vec<Incident>, StoreError> {
        let query = query.clone();
        self.database.read("incidents", move |tables| at_once(calls::incidents(tables, &query))).await
    }

    async fn last_ping(&self, job: JobId) -> Result<Option<DeliveryView>, StoreError> {
        self.database.read("last_ping", move |tables| at_once(calls::last_ping(tables, job))).await
    }

    async fn notices_numbered(&self, ask: &JournalAsk) -> Result<Numbered<Notice>, StoreError> {
        let ask = ask.clone();
        self.database.read("notices_numbered", move |tables| at_once(calls::notices(tables, &ask))).await
    }

    async fn unreadable_alerts(&self) -> Result<Vec<Unreadable>, StoreError> {
        self.database.read("unreadable_alerts", |tables| at_once(calls::unreadable(tables))).await
    }

    async fn purge_alerts(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.database.write("purge_alerts", move |tables| at_once(calls::purge(tables, before, limit))).await
    }
}
