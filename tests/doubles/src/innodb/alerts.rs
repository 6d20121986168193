//! Routes, facts, incidents and deliveries in the model. What a call of nodes writes along costs no way to the server: the protocol does
//! not hang on it. A row that is matched before it is written is locked, as is the cursor.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;
use carillon_store::StoreResult;
use carillon_store::alerts::DeliveryCounts;
use carillon_store::alerts::port::{
    AlertRows, AlertWrite, Among, DeliveryAsk, DeliveryRow, FactRow, IncidentAsk, IncidentRow, Looks, RouteRow,
    WatchRow,
};
use carillon_store::feed::{JournalAsk, Numbered};

use super::locks::Row;
use super::model_connection::ModelConnection;

impl AlertRows for ModelConnection {
    async fn cursor(&mut self, lock: bool) -> StoreResult<Option<String>> {
        if lock {
            self.lock(&[Row::AlertCursor]).await?;
        }
        self.read(|data| data.alerts.cursor()).await
    }

    async fn route_rows(&mut self) -> StoreResult<Vec<RouteRow>> {
        self.read(|data| data.alerts.route_rows()).await
    }

    async fn has_watched(&mut self) -> StoreResult<bool> {
        self.read(|data| data.alerts.has_watched()).await
    }

    async fn facts_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<FactRow>> {
        self.read(|data| data.alerts.facts_numbered(ask)).await
    }

    async fn incident_rows(&mut self, ask: &IncidentAsk) -> StoreResult<Vec<IncidentRow>> {
        self.read(|data| data.alerts.incident_rows(ask)).await
    }

    async fn among(&mut self, jobs: &[JobId], which: Among) -> StoreResult<Vec<JobId>> {
        self.read(|data| data.alerts.among(jobs, which)).await
    }

    async fn first_look(&mut self, looks: Looks) -> StoreResult<Option<Timestamp>> {
        self.read(|data| data.alerts.first_look(looks)).await
    }

    async fn watched_due(&mut self, until: Timestamp, limit: usize) -> StoreResult<Vec<WatchRow>> {
        self.read(|data| data.alerts.watched_due(until, limit)).await
    }

    async fn delivery_rows(&mut self, ask: &DeliveryAsk) -> StoreResult<Vec<DeliveryRow>> {
        self.read(|data| data.alerts.delivery_rows(ask)).await
    }

    async fn notices_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<DeliveryRow>> {
        self.read(|data| data.alerts.notices_numbered(ask)).await
    }

    async fn delivery_counts(&mut self) -> StoreResult<DeliveryCounts> {
        self.read(|data| data.alerts.delivery_counts()).await
    }

    async fn write_alert(&mut self, write: &AlertWrite) -> StoreResult<u64> {
        match write {
            AlertWrite::Delivery(row) => self.lock(&[Row::Delivery(row.id)]).await?,
            AlertWrite::Watched(before, _) => self.lock(&[Row::Watch(before.job)]).await?,
            _ => {}
        }
        self.write(|server, trx| {
            let matched = server.read(trx, |data| data.alerts.clone().apply(write));
            if let Some(own) = server.own(trx) {
                own.alerts.push(write.clone());
            }
            matched
        })
    }
}
