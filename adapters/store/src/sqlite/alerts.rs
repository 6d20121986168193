//! The statements of alerts.

use std::future::{Future, ready};

use carillon_domain::id::{JobId, RunId};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

use crate::StoreResult;
use crate::alerts::DeliveryCounts;
use crate::alerts::port::{
    AlertRows, AlertWrite, Among, DeliveryAsk, DeliveryRow, FactRow, IncidentAsk, IncidentRow, Looks, RouteRow,
    RunHead, WatchRow,
};
use crate::alerts::sql::{self, Cell, Cells, Dialect, Statement};
use crate::codec::{named, run_bytes, run_from};
use crate::feed::{JournalAsk, Numbered};
use crate::sqlite::change::execute;
use crate::sqlite::client::error::{statement, unreadable};
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, column, first};
use crate::sqlite::tables::Transaction;

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => number.into(),
        Cell::Text(text) => text.into(),
    }
}

fn cells(row: &Row<'_>) -> StoreResult<Cells> {
    let count = row.as_ref().column_count();
    let cell = |column| match row.get_ref(column).map_err(statement)? {
        ValueRef::Null => Ok(Cell::Null),
        ValueRef::Integer(number) => Ok(Cell::Number(number)),
        ValueRef::Text(text) => {
            std::str::from_utf8(text).map(Cell::from).map_err(|error| unreadable(error.to_string()))
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => {
            Err(unreadable("a column of alerts is neither text nor number".to_owned()))
        }
    };
    Ok(Cells::of((0..count).map(cell).collect::<StoreResult<_>>()?))
}

fn ask<T>(conn: &Connection, asked: Statement, read: fn(Cells) -> StoreResult<T>) -> StoreResult<Vec<T>> {
    let Statement { sql, params } = asked;
    all(conn, &sql, params_from_iter(params.into_iter().map(value)), |row| read(cells(row)?))
}

fn ask_all<T>(conn: &Connection, asked: Vec<Statement>, read: fn(Cells) -> StoreResult<T>) -> StoreResult<Vec<T>> {
    let mut found = Vec::new();
    for asked in asked {
        found.extend(ask(conn, asked, read)?);
    }
    Ok(found)
}

fn ask_number(conn: &Connection, sql: &str) -> StoreResult<u64> {
    Ok(ask(conn, Statement::new(sql, vec![]), sql::count_of)?.pop().unwrap_or(0))
}

fn cursor(conn: &Connection, lock: bool) -> StoreResult<Option<String>> {
    if lock && execute(conn, sql::LOCK_CURSOR, [])? == 0 {
        execute(conn, "INSERT INTO alert_cursor (id, epoch, document) VALUES (1, 0, '{\"idle\":true}')", [])?;
    }
    Ok(ask(conn, Statement::new(sql::CURSOR, vec![]), sql::text_of)?.pop())
}

fn facts(conn: &Connection, asked: &JournalAsk) -> StoreResult<Numbered<FactRow>> {
    let newest = ask_number(conn, sql::NEWEST_FACT)?;
    Ok(Numbered { newest, rows: ask_all(conn, sql::facts(asked), sql::fact_row)? })
}

fn notices(conn: &Connection, asked: &JournalAsk) -> StoreResult<Numbered<DeliveryRow>> {
    let newest = ask_number(conn, sql::NEWEST_NOTICE)?;
    Ok(Numbered { newest, rows: ask_all(conn, sql::notices(asked), sql::numbered_delivery)? })
}

fn write(conn: &Connection, write: &AlertWrite) -> StoreResult<u64> {
    let mut matched = 0;
    for Statement { sql, params } in sql::statements(write, Dialect::Sqlite) {
        matched += execute(conn, &sql, params_from_iter(params.into_iter().map(value)))? as u64;
    }
    Ok(matched)
}

/// History by its numbers, as far as a step needs it at first.
pub(in crate::sqlite) fn run_heads(conn: &Connection, asked: &JournalAsk) -> StoreResult<Numbered<RunHead>> {
    let newest = ask_number(conn, "SELECT coalesce(max(seq), 0) FROM run")?;
    let read = |condition: &str, params: &[i64]| {
        let sql = format!("SELECT seq, id, job_id, status FROM run WHERE {condition} ORDER BY seq LIMIT ?");
        all(conn, &sql, params_from_iter(params), head)
    };
    let mut rows = Vec::new();
    for span in &asked.gaps {
        rows.extend(read("seq BETWEEN ? AND ?", &[signed(span.first), signed(span.last), i64::MAX])?);
    }
    if asked.limit > 0 {
        let limit = i64::try_from(asked.limit).unwrap_or(i64::MAX);
        rows.extend(read("seq > ?", &[signed(asked.after), limit])?);
    }
    Ok(Numbered { newest, rows })
}

fn head(row: &Row<'_>) -> StoreResult<(u64, RunHead)> {
    let columns = || -> rusqlite::Result<(i64, [u8; 16], i64, String)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let (number, run, job, status) = columns().map_err(statement)?;
    let status = named(&Status::ALL, Status::as_str, &status).map_err(unreadable)?;
    Ok((number as u64, RunHead { run: run_from(run), job: JobId(job as u64), status }))
}

/// Those of these runs that have output.
pub(in crate::sqlite) fn with_output(conn: &Connection, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
    among(conn, runs, "SELECT 1 FROM run r JOIN output o ON o.run_seq = r.seq WHERE r.id = ?1")
}

/// Those of the runs that a statement finds.
pub(in crate::sqlite) fn among(conn: &Connection, runs: &[RunId], sql: &str) -> StoreResult<Vec<RunId>> {
    let mut found = Vec::new();
    for run in runs {
        if first(conn, sql, [run_bytes(*run)], column::<i64>)?.is_some() {
            found.push(*run);
        }
    }
    Ok(found)
}

impl AlertRows for Transaction<'_> {
    fn cursor(&mut self, lock: bool) -> impl Future<Output = StoreResult<Option<String>>> + Send {
        ready(cursor(self.conn, lock))
    }

    fn route_rows(&mut self) -> impl Future<Output = StoreResult<Vec<RouteRow>>> + Send {
        ready(ask(self.conn, Statement::new(sql::ROUTES, vec![]), sql::route))
    }

    fn has_watched(&mut self) -> impl Future<Output = StoreResult<bool>> + Send {
        ready(ask_number(self.conn, sql::HAS_WATCHED).map(|count| count > 0))
    }

    fn facts_numbered(&mut self, asked: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<FactRow>>> + Send {
        ready(facts(self.conn, asked))
    }

    fn incident_rows(&mut self, asked: &IncidentAsk) -> impl Future<Output = StoreResult<Vec<IncidentRow>>> + Send {
        ready(ask_all(self.conn, sql::incidents(asked), sql::incident))
    }

    fn among(&mut self, jobs: &[JobId], which: Among) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        let found = ask(self.conn, sql::among(jobs, which), sql::count_of);
        ready(found.map(|found| found.into_iter().map(JobId).collect()))
    }

    fn first_look(&mut self, looks: Looks) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send {
        let found = ask(self.conn, Statement::new(sql::first_look(looks), vec![]), sql::time_of);
        ready(found.map(|mut found| found.pop().flatten()))
    }

    fn watched_due(
        &mut self,
        until: Timestamp,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<WatchRow>>> + Send {
        ready(ask(self.conn, sql::watched_due(until, limit), sql::watch))
    }

    fn delivery_rows(&mut self, asked: &DeliveryAsk) -> impl Future<Output = StoreResult<Vec<DeliveryRow>>> + Send {
        ready(ask(self.conn, sql::deliveries(asked), sql::delivery))
    }

    fn notices_numbered(
        &mut self,
        asked: &JournalAsk,
    ) -> impl Future<Output = StoreResult<Numbered<DeliveryRow>>> + Send {
        ready(notices(self.conn, asked))
    }

    fn delivery_counts(&mut self) -> impl Future<Output = StoreResult<DeliveryCounts>> + Send {
        let counted = ask(self.conn, sql::counts(), sql::count_by_text);
        ready(counted.map(DeliveryCounts::of))
    }

    fn write_alert(&mut self, change: &AlertWrite) -> impl Future<Output = StoreResult<u64>> + Send {
        ready(write(self.conn, change))
    }
}
