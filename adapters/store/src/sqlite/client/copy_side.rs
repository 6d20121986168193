//! One end of a copy that is a file. The lease on it keeps servers away for as long as the copy takes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use tokio::sync::mpsc::{Sender, channel};

use crate::copy::cell::{Cell, Row};
use crate::copy::layout::{Column, Kind, MARK, OUTPUT, Reading, Table};
use crate::copy::{Batch, CopyError, CopyResult, Rows};
use crate::sqlite::client::lease::Lease;
use crate::sqlite::client::open::{OpenOptions, writer};

/// How long a server that is ending may take.
const LEASE_WAIT: Duration = Duration::from_secs(1);

/// The file, held.
pub(crate) struct SqliteSide {
    conn: Arc<Mutex<Connection>>,
    place: String,
    partitions: u16,
    _lease: Lease,
}

impl SqliteSide {
    /// A file that is there.
    pub async fn source(path: &Path) -> CopyResult<Self> {
        if !path.is_file() {
            return Err(CopyError(format!("there is no database {}", path.display())));
        }
        Self::open(path, OpenOptions::default()).await
    }

    /// A file that may have to be made.
    pub async fn target(path: &Path, partitions: u16) -> CopyResult<Self> {
        Self::open(path, OpenOptions { partitions, ..OpenOptions::default() }).await
    }

    async fn open(path: &Path, options: OpenOptions) -> CopyResult<Self> {
        let path = std::path::absolute(path).map_err(|error| CopyError(format!("{}: {error}", path.display())))?;
        let options = OpenOptions { for_copy: true, ..options };
        let place = format!("sqlite://{}", path.display());
        let opening = move |path: PathBuf| {
            let lease = Lease::acquire(&path, LEASE_WAIT).map_err(|error| CopyError(error.to_string()))?;
            let (conn, partitions) = writer(&path, &options).map_err(|error| CopyError(error.to_string()))?;
            Ok((lease, conn, partitions))
        };
        let (lease, conn, partitions) = blocking(move || opening(path)).await?;
        Ok(Self { conn: Arc::new(Mutex::new(conn)), place, partitions, _lease: lease })
    }

    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn with<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> CopyResult<T> {
        let (conn, place) = (self.conn.clone(), self.place.clone());
        blocking(move || {
            let mut conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
            call(&mut conn).map_err(|error| CopyError(format!("{place}: {error}")))
        })
        .await
    }

    pub async fn mark(&self) -> CopyResult<Option<String>> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        self.with(move |conn| conn.query_row(sql, [MARK], |row| row.get(0)).optional()).await
    }

    pub async fn set_mark(&self, mark: Option<&str>) -> CopyResult<()> {
        let mark = mark.map(str::to_owned);
        self.with(move |conn| match mark {
            Some(mark) => conn.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![MARK, mark]).map(drop),
            None => conn.execute("DELETE FROM meta WHERE name = ?1", [MARK]).map(drop),
        })
        .await
    }

    pub async fn count(&self, table: &Table) -> CopyResult<u64> {
        let sql = reading(table).count();
        let count: i64 = self.with(move |conn| conn.query_row(&sql, [], |row| row.get(0))).await?;
        Ok(count.cast_unsigned())
    }

    pub async fn last_key(&self, table: &Table) -> CopyResult<Option<Row>> {
        let (sql, columns) = (reading(table).last_key(), table.key_columns().to_vec());
        self.with(move |conn| conn.query_row(&sql, [], |row| row_of(row, &columns)).optional()).await
    }

    pub fn rows(&self, table: &Table, after: Option<Row>) -> Rows {
        let (sender, receiver) = channel(2);
        let (conn, place) = (self.conn.clone(), self.place.clone());
        let sql = reading(table).rows(after.is_some());
        let values: Vec<Value> = after.iter().flat_map(|key| table.behind_values(key)).map(value).collect();
        let columns = table.columns.clone();
        tokio::task::spawn_blocking(move || {
            let conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = send(&conn, &sql, values, &columns, &sender) {
                // Nobody waits for it if the copy has ended.
                _ = sender.blocking_send(Err(CopyError(format!("{place}: {error}"))));
            }
        });
        receiver
    }

    pub async fn insert(&self, table: &Table, rows: Vec<Row>) -> CopyResult<()> {
        let left_out = if table.name == OUTPUT { Some(1) } else { None };
        let columns = table.columns.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
        let names: Vec<&str> = columns.map(|(_, column)| column.sqlite).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, names.join(", "));
        self.with(move |conn| {
            let transaction = conn.transaction()?;
            {
                let mut statement = transaction.prepare(&sql)?;
                for row in rows {
                    let cells = row.into_iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
                    statement.execute(params_from_iter(cells.map(|(_, cell)| value(cell))))?;
                }
            }
            transaction.commit()
        })
        .await
    }

    pub async fn next_number(&self, table: &Table) -> CopyResult<u64> {
        let (sql, name) = ("SELECT seq FROM sqlite_sequence WHERE name = ?1", table.name);
        let last: Option<i64> = self.with(move |conn| conn.query_row(sql, [name], |row| row.get(0)).optional()).await?;
        Ok(last.unwrap_or(0).cast_unsigned() + 1)
    }

    pub async fn set_next_number(&self, table: &Table, next: u64) -> CopyResult<()> {
        let (name, last) = (table.name, next.saturating_sub(1).cast_signed());
        self.with(move |conn| {
            let raised =
                conn.execute("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", params![name, last])?;
            if raised == 0 {
                conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![name, last])?;
            }
            Ok(())
        })
        .await
    }

    /// Nobody else: this side holds the lease.
    pub async fn in_use(&self) -> CopyResult<Option<String>> {
        Ok(None)
    }
}

async fn blocking<T: Send + 'static>(call: impl FnOnce() -> CopyResult<T> + Send + 'static) -> CopyResult<T> {
    tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(CopyError(error.to_string())))
}

fn reading(table: &Table) -> Reading<'_> {
    // Outputs know the number of their run only.
    let outputs =
        "FROM (SELECT o.run_seq, r.id AS run, o.truncated, o.bytes FROM output o JOIN run r ON r.seq = o.run_seq)";
    Reading { table, name: |_, column| column.sqlite, outputs }
}

/// Sends all rows; an end of the receiver ends it too.
fn send(
    conn: &Connection,
    sql: &str,
    values: Vec<Value>,
    columns: &[Column],
    sender: &Sender<CopyResult<Vec<Row>>>,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut batch = Batch::default();
    while let Some(row) = rows.next()? {
        if let Some(full) = batch.add(row_of(row, columns)?)
            && sender.blocking_send(Ok(full)).is_err()
        {
            return Ok(());
        }
    }
    if let Some(rest) = batch.rest() {
        _ = sender.blocking_send(Ok(rest));
    }
    Ok(())
}

fn row_of(row: &rusqlite::Row<'_>, columns: &[Column]) -> rusqlite::Result<Row> {
    let cell = |(at, column): (usize, &Column)| {
        Ok(match (row.get_ref(at)?, column.kind) {
            (ValueRef::Null, _) => Cell::Null,
            (ValueRef::Integer(number), _) => Cell::Number(number),
            (ValueRef::Real(number), _) => Cell::Text(number.to_string()),
            // `meta` keeps numbers as texts, and a text may stand in a column of bytes.
            (ValueRef::Text(bytes) | ValueRef::Blob(bytes), Kind::Bytes) => Cell::Bytes(bytes.to_vec()),
            (ValueRef::Text(bytes) | ValueRef::Blob(bytes), _) => {
                Cell::Text(String::from_utf8_lossy(bytes).into_owned())
            }
        })
    };
    columns.iter().enumerate().map(cell).collect()
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Integer(number),
        Cell::Text(text) => Value::Text(text),
        Cell::Bytes(bytes) => Value::Blob(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::copy::layout::tables;

    /// Tables that a copy leaves out: what only a running server needs, and what the database keeps for itself.
    const LEFT_OUT: [&str; 3] = ["live_output", "refinery_schema_history", "sqlite_sequence"];

    #[tokio::test]
    async fn every_table_and_column_of_the_schema_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let side = SqliteSide::target(&dir.path().join("c.db"), 4).await.unwrap();
        let known: BTreeSet<(String, String)> = tables()
            .iter()
            .flat_map(|table| table.columns.iter().map(|column| (table.name.to_owned(), column.sqlite.to_owned())))
            .filter(|(table, column)| table != OUTPUT || column != "run")
            .collect();
        let sql = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'";
        let found: BTreeSet<(String, String)> = side
            .with(|conn| {
                let mut statement = conn.prepare(sql)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            })
            .await
            .unwrap();
        let found: BTreeSet<_> = found.into_iter().filter(|(table, _)| !LEFT_OUT.contains(&table.as_str())).collect();
        assert_eq!(known, found);
    }
}
