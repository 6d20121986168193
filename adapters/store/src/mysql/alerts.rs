//! The statements of alerts.

use carillon_domain::id::{JobId, RunId};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use mysql_async::{Row, Value};

use crate::StoreResult;
use crate::alerts::DeliveryCounts;
use crate::alerts::port::{
    AlertRows, AlertWrite, Among, DeliveryAsk, DeliveryRow, FactRow, IncidentAsk, IncidentRow, Looks, RouteRow,
    RunHead, WatchRow,
};
use crate::alerts::sql::{self, Cell, Cells, Dialect, Statement};
use crate::codec::{named, run_bytes};
use crate::feed::{JournalAsk, Numbered};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::select::{conditions, limit_of};

/// So many runs are asked for in one statement.
const RUNS: usize = 1_000;

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::NULL,
        Cell::Number(number) => number.into(),
        Cell::Text(text) => text.into(),
    }
}

/// Without parameters a server answers numbers as texts.
fn cells(row: Row) -> StoreResult<Cells> {
    let numeric: Vec<bool> = row.columns_ref().iter().map(|column| column.column_type().is_numeric_type()).collect();
    let cell = |(value, numeric): (Value, bool)| match value {
        Value::NULL => Ok(Cell::Null),
        Value::Int(number) => Ok(Cell::Number(number)),
        Value::UInt(number) => Ok(Cell::Number(number as i64)),
        Value::Bytes(bytes) => {
            let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
            match numeric {
                true => text.parse().map(Cell::Number).map_err(|_| unreadable(format!("{text} is no number"))),
                false => Ok(Cell::Text(text)),
            }
        }
        other => Err(unreadable(format!("{other:?}"))),
    };
    Ok(Cells::of(row.unwrap().into_iter().zip(numeric).map(cell).collect::<StoreResult<_>>()?))
}

impl MySqlConnection {
    async fn ask<T>(&mut self, statement: Statement, read: fn(Cells) -> StoreResult<T>) -> StoreResult<Vec<T>> {
        let Statement { sql, params } = statement;
        let rows = match params.is_empty() {
            true => self.query(&sql).await?,
            false => self.select(&sql, params.into_iter().map(value).collect::<Vec<_>>()).await?,
        };
        rows.into_iter().map(|row| read(cells(row)?)).collect()
    }

    async fn ask_all<T>(
        &mut self,
        statements: Vec<Statement>,
        read: fn(Cells) -> StoreResult<T>,
    ) -> StoreResult<Vec<T>> {
        let mut found = Vec::new();
        for statement in statements {
            found.extend(self.ask(statement, read).await?);
        }
        Ok(found)
    }

    async fn ask_number(&mut self, sql: &str) -> StoreResult<u64> {
        Ok(self.ask(Statement::new(sql, vec![]), sql::count_of).await?.pop().unwrap_or(0))
    }

    async fn tell(&mut self, statement: Statement) -> StoreResult<u64> {
        let Statement { sql, params } = statement;
        let done = match params.is_empty() {
            true => self.run(&sql).await?,
            false => self.exec(&sql, params.into_iter().map(value).collect::<Vec<_>>()).await?,
        };
        Ok(done.matched)
    }

    pub(in crate::mysql) async fn select_run_heads(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<RunHead>> {
        let newest = self.ask_number("SELECT COALESCE(MAX(seq), 0) FROM run").await?;
        let mut rows = Vec::new();
        for (condition, limit) in conditions("r.seq", ask) {
            let sql = format!(
                "SELECT r.seq, r.id, r.job_id, r.status FROM run r FORCE INDEX (PRIMARY) WHERE {condition} \
                 ORDER BY r.seq LIMIT {}",
                limit_of(limit)
            );
            for row in self.query(&sql).await? {
                let mut from = Columns::of(row);
                let (number, run, job) = (from.next()?, from.run()?, JobId(from.next()?));
                let status = named(&Status::ALL, Status::as_str, &from.next::<String>()?).map_err(unreadable)?;
                rows.push((number, RunHead { run, job, status }));
            }
        }
        Ok(Numbered { newest, rows })
    }

    pub(in crate::mysql) async fn select_with_output(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        self.select_among(runs, "SELECT run FROM output WHERE run").await
    }

    /// Those of the runs that a statement finds; it ends with the column that must be one of them.
    pub(in crate::mysql) async fn select_among(&mut self, runs: &[RunId], select: &str) -> StoreResult<Vec<RunId>> {
        let mut found = Vec::new();
        for runs in runs.chunks(RUNS) {
            let ids: Vec<String> =
                runs.iter().map(|run| format!("x'{:032x}'", u128::from_be_bytes(run_bytes(*run)))).collect();
            let sql = format!("{select} IN ({})", ids.join(","));
            for row in self.query(&sql).await? {
                found.push(Columns::of(row).run()?);
            }
        }
        Ok(found)
    }
}

impl AlertRows for MySqlConnection {
    async fn cursor(&mut self, lock: bool) -> StoreResult<Option<String>> {
        if lock && self.run(sql::LOCK_CURSOR).await?.matched == 0 {
            self.run("INSERT IGNORE INTO alert_cursor (id, epoch, document) VALUES (1, 0, '{\"idle\":true}')").await?;
            self.run(sql::LOCK_CURSOR).await?;
        }
        Ok(self.ask(Statement::new(sql::CURSOR, vec![]), sql::text_of).await?.pop())
    }

    async fn route_rows(&mut self) -> StoreResult<Vec<RouteRow>> {
        self.ask(Statement::new(sql::ROUTES, vec![]), sql::route).await
    }

    async fn has_watched(&mut self) -> StoreResult<bool> {
        Ok(self.ask_number(sql::HAS_WATCHED).await? > 0)
    }

    async fn facts_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<FactRow>> {
        let newest = self.ask_number(sql::NEWEST_FACT).await?;
        Ok(Numbered { newest, rows: self.ask_all(sql::facts(ask), sql::fact_row).await? })
    }

    async fn incident_rows(&mut self, ask: &IncidentAsk) -> StoreResult<Vec<IncidentRow>> {
        self.ask_all(sql::incidents(ask), sql::incident).await
    }

    async fn among(&mut self, jobs: &[JobId], which: Among) -> StoreResult<Vec<JobId>> {
        let found = self.ask(sql::among(jobs, which), sql::count_of).await?;
        Ok(found.into_iter().map(JobId).collect())
    }

    async fn first_look(&mut self, looks: Looks) -> StoreResult<Option<Timestamp>> {
        Ok(self.ask(Statement::new(sql::first_look(looks), vec![]), sql::time_of).await?.pop().flatten())
    }

    async fn watched_due(&mut self, until: Timestamp, limit: usize) -> StoreResult<Vec<WatchRow>> {
        self.ask(sql::watched_due(until, limit), sql::watch).await
    }

    async fn delivery_rows(&mut self, ask: &DeliveryAsk) -> StoreResult<Vec<DeliveryRow>> {
        self.ask(sql::deliveries(ask), sql::delivery).await
    }

    async fn notices_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<DeliveryRow>> {
        let newest = self.ask_number(sql::NEWEST_NOTICE).await?;
        Ok(Numbered { newest, rows: self.ask_all(sql::notices(ask), sql::numbered_delivery).await? })
    }

    async fn delivery_counts(&mut self) -> StoreResult<DeliveryCounts> {
        let counted = self.ask(sql::counts(), sql::count_by_text).await?;
        Ok(DeliveryCounts::of(counted))
    }

    async fn write_alert(&mut self, write: &AlertWrite) -> StoreResult<u64> {
        let mut matched = 0;
        for statement in sql::statements(write, Dialect::MySql) {
            matched += self.tell(statement).await?;
        }
        Ok(matched)
    }
}
