//! One end of a copy that is a database of MySQL or MariaDB.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Value};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Sender, channel};

use crate::copy::cell::{Cell, Row};
use crate::copy::layout::{Column, Kind, MARK, OUTPUT, Reading, Table};
use crate::copy::{Batch, CopyError, CopyResult, Rows};
use crate::mysql::client::address::Address;
use crate::mysql::client::agreement::{OTHERS, other_of};
use crate::mysql::client::open::Options;
use crate::mysql::client::server::Server;
use crate::mysql::schema;
use crate::mysql::write::update::NOT_STARTED;

/// All reads of a source see one state of it. A copy may wait for the other side for longer than an idle connection may live.
const SOURCE: [&str; 3] = [
    "SET SESSION wait_timeout = 28800, time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
];
const TARGET: [&str; 3] = [
    "SET SESSION wait_timeout = 28800, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
];

/// The database.
pub(crate) struct MySqlSide {
    conn: Arc<Mutex<Conn>>,
    address: Address,
    partitions: u16,
}

impl MySqlSide {
    /// A database that was made, at the newest schema.
    pub async fn source(url: &str) -> CopyResult<Self> {
        let (address, mut conn) = connect(url).await?;
        let made = schema::look(&mut conn).await.map_err(|error| failed(&address, &error))?;
        if made.found == 0 {
            return Err(CopyError(format!("there is no store at {}", address.place)));
        }
        Self::prepared(address, conn, 1, &SOURCE).await
    }

    /// A database that may have to be made.
    pub async fn target(url: &str, partitions: u16) -> CopyResult<Self> {
        let (address, conn) = connect(url).await?;
        Self::prepared(address, conn, partitions, &TARGET).await
    }

    async fn prepared(address: Address, mut conn: Conn, partitions: u16, settings: &[&str]) -> CopyResult<Self> {
        let options = Options { partitions, for_copy: true, ..Options::default() };
        let prepared = schema::prepare(&mut conn, &address, &options).await;
        let partitions = prepared.map_err(|error| CopyError(error.to_string()))?;
        for setting in settings {
            conn.query_drop(*setting).await.map_err(|error| failed(&address, &error))?;
        }
        Ok(Self { conn: Arc::new(Mutex::new(conn)), address, partitions })
    }

    pub fn place(&self) -> &str {
        &self.address.place
    }

    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    fn failed(&self, error: &Error) -> CopyError {
        failed(&self.address, error)
    }

    async fn run(&self, sql: &str, params: impl Into<Params> + Send) -> CopyResult<()> {
        self.conn.lock().await.exec_drop(sql, params).await.map_err(|error| self.failed(&error))
    }

    async fn first<T: mysql_async::prelude::FromRow + Send + 'static>(
        &self,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> CopyResult<Option<T>> {
        self.conn.lock().await.exec_first(sql, params).await.map_err(|error| self.failed(&error))
    }

    pub async fn mark(&self) -> CopyResult<Option<String>> {
        self.first("SELECT value FROM meta WHERE name = ?", (MARK,)).await
    }

    pub async fn set_mark(&self, mark: Option<&str>) -> CopyResult<()> {
        match mark {
            Some(mark) => self.run("REPLACE INTO meta (name, value) VALUES (?, ?)", (MARK, mark)).await,
            None => self.run("DELETE FROM meta WHERE name = ?", (MARK,)).await,
        }
    }

    pub async fn count(&self, table: &Table) -> CopyResult<u64> {
        Ok(self.first(&reading(table).count(), ()).await?.unwrap_or(0))
    }

    pub async fn last_key(&self, table: &Table) -> CopyResult<Option<Row>> {
        let row: Option<mysql_async::Row> = self.first(&reading(table).last_key(), ()).await?;
        row.map(|row| row_of(row, table.key_columns())).transpose()
    }

    pub fn rows(&self, table: &Table, after: Option<Row>) -> Rows {
        let (sender, receiver) = channel(2);
        let (conn, place) = (self.conn.clone(), self.address.place.clone());
        let sql = reading(table).rows(after.is_some());
        let after: Vec<(Kind, Cell)> =
            table.columns.iter().map(|column| column.kind).zip(after.unwrap_or_default()).collect();
        let values: Vec<Value> =
            table.behind_values(&after).into_iter().map(|(kind, cell)| value(kind, cell)).collect();
        let columns = table.columns.clone();
        tokio::spawn(async move {
            let mut conn = conn.lock_owned().await;
            if let Err(error) = send(&mut conn, &sql, values, &columns, &sender).await {
                // Nobody waits for it if the copy has ended.
                _ = sender.send(Err(CopyError(format!("{place}: {}", error.0)))).await;
            }
        });
        receiver
    }

    pub async fn insert(&self, table: &Table, rows: Vec<Row>) -> CopyResult<()> {
        let left_out = if table.name == OUTPUT { Some(0) } else { None };
        let columns = table.columns.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
        let mut names: Vec<&str> = columns.map(|(_, column)| column.mysql).collect();
        names.extend(derived_name(table));
        let one = format!("({})", vec!["?"; names.len()].join(", "));
        let all = vec![one; rows.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES {all}", table.name, names.join(", "));
        let mut values = Vec::with_capacity(rows.len() * names.len());
        for row in rows {
            let derived = derived(table, &row);
            let cells = row.into_iter().zip(&table.columns).enumerate().filter(|(at, _)| Some(*at) != left_out);
            values.extend(cells.map(|(_, (cell, column))| value(column.kind, cell)));
            values.extend(derived);
        }
        // One statement is one commit.
        let mut conn = self.conn.lock().await;
        // Statements of many sizes are prepared, each once.
        let statement = conn.prep(sql).await.map_err(|error| self.failed(&error))?;
        conn.exec_drop(&statement, values).await.map_err(|error| self.failed(&error))?;
        conn.close(statement).await.map_err(|error| self.failed(&error))
    }

    pub async fn next_number(&self, table: &Table) -> CopyResult<u64> {
        // MySQL keeps that number for a day unless it is told not to; MariaDB has no such setting.
        let fresh = self.conn.lock().await.query_drop("SET SESSION information_schema_stats_expiry = 0").await;
        const UNKNOWN_VARIABLE: u16 = 1193;
        match fresh {
            Err(Error::Server(error)) if error.code == UNKNOWN_VARIABLE => {}
            other => other.map_err(|error| self.failed(&error))?,
        }
        let sql =
            "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
        let next: Option<Option<u64>> = self.first(sql, (table.name,)).await?;
        Ok(next.flatten().unwrap_or(1))
    }

    /// A number that was given already is not taken back.
    pub async fn set_next_number(&self, table: &Table, next: u64) -> CopyResult<()> {
        let sql = format!("ALTER TABLE {} AUTO_INCREMENT = {next}", table.name);
        self.conn.lock().await.query_drop(sql).await.map_err(|error| self.failed(&error))
    }

    /// By another connection: a source sees the time at which its copy began.
    pub async fn in_use(&self) -> CopyResult<Option<String>> {
        let server = server(&self.address);
        let (driver, _) = server.connect_and_ask(&[]).await.map_err(|error| self.failed(&error))?;
        let mut conn = driver.conn;
        let rows: Vec<mysql_async::Row> = conn.query(OTHERS).await.map_err(|error| self.failed(&error))?;
        conn.disconnect().await.map_err(|error| self.failed(&error))?;
        let mut nodes = Vec::new();
        for row in rows {
            let (_, other) = other_of(row).map_err(|error| CopyError(error.to_string()))?;
            nodes.push(format!("node {} lives", other.node));
        }
        Ok((!nodes.is_empty()).then(|| nodes.join(", ")))
    }
}

fn server(address: &Address) -> Server {
    let options = Options::default();
    Server::at(address, options.topology, options.statement_timeout)
}

async fn connect(url: &str) -> CopyResult<(Address, Conn)> {
    let address = Address::of(url).map_err(|error| CopyError(error.to_string()))?;
    let unfit = |error: crate::mysql::OpenError| CopyError(error.to_string());
    let dialed = server(&address).connect_and_ask(&[]).await.map_err(|error| unfit(address.unreachable(&error)))?;
    let (driver, answers) = dialed;
    answers.check(&address).map_err(unfit)?;
    Ok((address, driver.conn))
}

fn failed(address: &Address, error: &Error) -> CopyError {
    CopyError(format!("{}: {error}", address.place))
}

fn reading(table: &Table) -> Reading<'_> {
    // Outputs know the id of their run only.
    Reading { table, name, outputs: "FROM run r STRAIGHT_JOIN output o ON o.run = r.id" }
}

fn name(table: &Table, column: &Column) -> &'static str {
    match (table.name, column.mysql) {
        (OUTPUT, "run_seq") => "r.seq",
        (_, name) => name,
    }
}

async fn send(
    conn: &mut Conn,
    sql: &str,
    values: Vec<Value>,
    columns: &[Column],
    sender: &Sender<CopyResult<Vec<Row>>>,
) -> CopyResult<()> {
    let failed = |error: Error| CopyError(error.to_string());
    let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
    let mut rows = conn.exec_iter(sql, params).await.map_err(failed)?;
    let mut batch = Batch::default();
    while let Some(row) = rows.next().await.map_err(failed)? {
        if let Some(full) = batch.add(row_of(row, columns)?)
            && sender.send(Ok(full)).await.is_err()
        {
            break;
        }
    }
    rows.drop_result().await.map_err(failed)?;
    if let Some(rest) = batch.rest() {
        _ = sender.send(Ok(rest)).await;
    }
    Ok(())
}

fn row_of(row: mysql_async::Row, columns: &[Column]) -> CopyResult<Row> {
    let cell = |(value, column): (Value, &Column)| {
        Ok(match value {
            Value::NULL => Cell::Null,
            Value::Int(NOT_STARTED) | Value::UInt(0) if column.kind == Kind::Start => Cell::Null,
            Value::Int(number) => Cell::Number(number),
            Value::UInt(number) => Cell::Number(number.cast_signed()),
            Value::Bytes(bytes) if column.kind == Kind::Bytes => Cell::Bytes(bytes),
            Value::Bytes(bytes) => Cell::Text(String::from_utf8_lossy(&bytes).into_owned()),
            other => return Err(CopyError(format!("column {} holds {other:?}, which is not known", column.mysql))),
        })
    };
    row.unwrap().into_iter().zip(columns).map(cell).collect()
}

fn value(kind: Kind, cell: Cell) -> Value {
    match cell {
        Cell::Null if kind == Kind::Start => Value::Int(NOT_STARTED),
        Cell::Null => Value::NULL,
        Cell::Number(number) if kind == Kind::Unsigned => Value::UInt(number.cast_unsigned()),
        Cell::Number(number) => Value::Int(number),
        Cell::Text(text) => Value::Bytes(text.into_bytes()),
        Cell::Bytes(bytes) => Value::Bytes(bytes),
    }
}

/// A column that only this kind of database has, and that follows from the others.
fn derived_name(table: &Table) -> Option<&'static str> {
    match table.name {
        "job" => Some("living"),
        "job_state" => Some("room"),
        _ => None,
    }
}

fn derived(table: &Table, row: &Row) -> Option<Value> {
    let has = |name: &str| {
        let cells = row.iter().zip(&table.columns);
        cells.filter(|(_, column)| column.mysql == name).any(|(cell, _)| *cell != Cell::Null)
    };
    match table.name {
        "job" => Some(if has("deleted_at") { Value::NULL } else { Value::UInt(1) }),
        // Padding, so that a row has the same length in every phase.
        "job_state" => {
            let taken = [("claim_at", 8), ("held_run", 16), ("held_session", 8)];
            let taken: usize = taken.into_iter().filter(|(name, _)| has(name)).map(|(_, bytes)| bytes).sum();
            Some(Value::Bytes(vec![b'.'; 24_usize.saturating_sub(taken)]))
        }
        _ => None,
    }
}
