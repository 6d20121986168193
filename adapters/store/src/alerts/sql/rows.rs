//! Rows of alerts, read from left to right.

use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

use super::super::port::{DeliveryRow, FactRow, IncidentRow, RouteRow, WatchRow};
use super::Cell;
use crate::{StoreError, StoreResult};

/// The columns of one row.
pub(crate) struct Cells(std::vec::IntoIter<Cell>);

impl Cells {
    pub fn of(row: Vec<Cell>) -> Self {
        Self(row.into_iter())
    }

    fn maybe_number(&mut self) -> StoreResult<Option<i64>> {
        match self.0.next() {
            Some(Cell::Number(number)) => Ok(Some(number)),
            Some(Cell::Null) => Ok(None),
            other => Err(unreadable(other)),
        }
    }

    fn maybe_text(&mut self) -> StoreResult<Option<String>> {
        match self.0.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            other => Err(unreadable(other)),
        }
    }

    pub fn number(&mut self) -> StoreResult<i64> {
        self.maybe_number()?.ok_or_else(|| unreadable(Some(Cell::Null)))
    }

    pub fn text(&mut self) -> StoreResult<String> {
        self.maybe_text()?.ok_or_else(|| unreadable(Some(Cell::Null)))
    }

    fn time(&mut self) -> StoreResult<Timestamp> {
        self.number().map(Timestamp::from_ms)
    }

    fn maybe_time(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(self.maybe_number()?.map(Timestamp::from_ms))
    }

    fn unsigned(&mut self) -> StoreResult<u64> {
        self.number().map(|number| number as u64)
    }

    fn small(&mut self) -> StoreResult<u32> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| unreadable(Some(Cell::Number(number))))
    }

    fn maybe_job(&mut self) -> StoreResult<Option<JobId>> {
        Ok(self.maybe_number()?.map(|number| JobId(number as u64)))
    }
}

fn unreadable(cell: Option<Cell>) -> StoreError {
    StoreError::Permanent(format!("a stored row of alerts cannot be read: a column is {cell:?}"))
}

/// A text alone.
pub(crate) fn text_of(mut cells: Cells) -> StoreResult<String> {
    cells.text()
}

/// A number alone.
pub(crate) fn count_of(mut cells: Cells) -> StoreResult<u64> {
    cells.unsigned()
}

/// A number with the name that it counts.
pub(crate) fn count_by_text(mut cells: Cells) -> StoreResult<(String, u64)> {
    Ok((cells.text()?, cells.unsigned()?))
}

/// A time alone, if there is one.
pub(crate) fn time_of(mut cells: Cells) -> StoreResult<Option<Timestamp>> {
    cells.maybe_time()
}

pub(super) const ROUTE: &str = "name, version, created_at, updated_at, document";

pub(crate) fn route(mut cells: Cells) -> StoreResult<RouteRow> {
    Ok(RouteRow {
        name: cells.text()?,
        version: cells.unsigned()?,
        created_at: cells.time()?,
        updated_at: cells.time()?,
        document: cells.text()?,
    })
}

pub(super) const FACT: &str = "seq, fact_key, is_open, at, document";

pub(crate) fn fact_row(mut cells: Cells) -> StoreResult<(u64, FactRow)> {
    let number = cells.unsigned()?;
    let (key, open, at) = (cells.maybe_text()?, cells.number()? != 0, cells.time()?);
    Ok((number, FactRow { key, open, at, document: cells.text()? }))
}

pub(super) const INCIDENT: &str = "id, route, job_id, namespace, since, next_look, document";

pub(crate) fn incident(mut cells: Cells) -> StoreResult<IncidentRow> {
    Ok(IncidentRow {
        id: cells.text()?,
        route: cells.text()?,
        job: cells.maybe_job()?,
        namespace: cells.maybe_text()?,
        since: cells.time()?,
        next_look: cells.maybe_time()?,
        document: cells.text()?,
    })
}

pub(super) const DELIVERY: &str = "id, version, message, route, job_id, place, kind, host, made_at, state, claim_at, \
     session, tries, refusals, first_try_at, settled_at, answer, document";

pub(crate) fn delivery(mut cells: Cells) -> StoreResult<DeliveryRow> {
    Ok(DeliveryRow {
        id: cells.unsigned()?,
        version: cells.unsigned()?,
        message: cells.text()?,
        route: cells.maybe_text()?,
        job: cells.maybe_job()?,
        place: cells.small()?,
        kind: cells.text()?,
        host: cells.text()?,
        made_at: cells.time()?,
        state: cells.text()?,
        claim_at: cells.maybe_time()?,
        session: cells.maybe_number()?.map(|bits| SessionId::from_random(bits as u64)),
        tries: cells.small()?,
        refusals: cells.small()?,
        first_try_at: cells.maybe_time()?,
        settled_at: cells.maybe_time()?,
        answer: cells.maybe_text()?,
        document: cells.text()?,
    })
}

pub(crate) fn numbered_delivery(cells: Cells) -> StoreResult<(u64, DeliveryRow)> {
    delivery(cells).map(|row| (row.id, row))
}

pub(super) const WATCH: &str = "job_id, starts, ends, look_at, pings";

pub(crate) fn watch(mut cells: Cells) -> StoreResult<WatchRow> {
    Ok(WatchRow {
        job: JobId(cells.unsigned()?),
        starts: cells.time()?,
        ends: cells.time()?,
        look_at: cells.maybe_time()?,
        pings: cells.number()? != 0,
    })
}
