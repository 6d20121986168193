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
        if is_by_itself(write) {
            self.statement().await?;
        }
        let rows = locked(write);
        if !rows.is_empty() {
            self.lock(&rows).await?;
        }
        self.write(|server, trx| {
            // A number is drawn by the statement, before anybody knows whether the transaction commits.
            let drawn = server.data.alerts.draw(write);
            let matched = server.read(trx, |data| data.alerts.would_match(write, drawn.clone()));
            // The row is locked, so one that does not match now does not match at the commit.
            let is_guarded = matches!(write, AlertWrite::Delivery(_) | AlertWrite::Watched(..));
            if let Some(own) = server.own(trx).filter(|_| matched > 0 || !is_guarded) {
                own.alerts.push((write.clone(), drawn));
            }
            matched
        })
    }
}

/// Whether only calls of those who watch and send make this write, each by a statement of its own.
const fn is_by_itself(write: &AlertWrite) -> bool {
    matches!(
        write,
        AlertWrite::Delivery(_) | AlertWrite::Deliveries(_) | AlertWrite::Incidents(_) | AlertWrite::Watched(..)
    )
}

/// The rows that a write locks. All others hang on the cursor, which is locked before them.
fn locked(write: &AlertWrite) -> Vec<Row> {
    match write {
        AlertWrite::Delivery(row) => vec![Row::Delivery(row.id)],
        AlertWrite::Watched(before, _) => vec![Row::Watch(before.job)],
        AlertWrite::Watch(rows) => rows.iter().map(|row| Row::Watch(row.job)).collect(),
        AlertWrite::WatchGone(jobs) => jobs.iter().copied().map(Row::Watch).collect(),
        AlertWrite::Facts(rows) => rows.iter().filter_map(|row| row.key.clone()).map(Row::FactKey).collect(),
        AlertWrite::FreeKey(key) => vec![Row::FactKey(key.clone())],
        _ => Vec::new(),
    }
}
