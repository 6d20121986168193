//! Rows that this binary cannot read: damaged, or written by a newer one.
//!
//! A reader of many rows leaves such a row out, so that one of them holds up nobody. People are told here which ones.

use super::deliveries;
use super::document::{StoredFact, held_calls_from, incident_from, message_from, problem_of};
use super::held_calls;
use super::port::{AlertRows, DeliveryAsk, IncidentAsk};
use super::routes;
use super::types::{DeliveryQuery, IncidentQuery, Unreadable};
use crate::feed::JournalAsk;
use crate::tables::Tables;
use crate::{StoreError, StoreResult};

/// How many incidents are looked at, oldest first, and how many deliveries and facts, newest first.
const ROWS: usize = 500;

/// See [`super::AlertStore::unreadable_alerts`].
pub(crate) async fn unreadable<T: Tables>(tables: &mut T) -> StoreResult<Vec<Unreadable>> {
    let mut found = Found::default();
    for row in tables.alerts().route_rows().await? {
        found.note("route", row.name.clone(), routes::read(row));
    }
    let asked = IncidentAsk::Page(IncidentQuery { limit: ROWS, ..IncidentQuery::default() });
    for row in tables.alerts().incident_rows(&asked).await? {
        let read = match held_calls::is_one(&row) {
            true => held_calls_from(&row.document).map(drop),
            false => incident_from(&row.document).map(drop),
        };
        found.note("incident", row.id, read);
    }
    let asked = DeliveryAsk::Page(DeliveryQuery { limit: ROWS, ..DeliveryQuery::default() });
    for row in tables.alerts().delivery_rows(&asked).await? {
        let read = deliveries::standing(&row).and_then(|_| message_from(&row.document));
        found.note("delivery", row.id.to_string(), read);
    }
    let newest = tables.alerts().facts_numbered(&JournalAsk::newest()).await?.newest;
    let asked = JournalAsk { after: newest.saturating_sub(ROWS as u64), limit: ROWS, gaps: Vec::new() };
    for (number, row) in tables.alerts().facts_numbered(&asked).await?.rows {
        found.note("fact", number.to_string(), StoredFact::read(&row.document));
    }
    Ok(found.0)
}

#[derive(Default)]
struct Found(Vec<Unreadable>);

impl Found {
    fn note<T>(&mut self, noun: &'static str, id: String, read: Result<T, StoreError>) {
        if let Err(error) = read {
            self.0.push(Unreadable { noun, id, problem: problem_of(error) });
        }
    }
}
