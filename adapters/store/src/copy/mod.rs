//! A whole store from one database into another: jobs, history, outputs, alerts, audit log and numbers.
//!
//! Rows go in the order of their keys, and each commit takes a whole batch. So the last key in a target tells how far a copy came,
//! and one that was interrupted goes on from there. At the end both are read again and compared.

pub(crate) mod cell;
pub(crate) mod layout;

use std::path::PathBuf;

pub use cell::TableDigest;
use cell::{Row, Summing, sum_of};
use layout::{Table, tables};
use tokio::sync::mpsc::Receiver;

use crate::mysql::copy::MySqlSide;
use crate::sqlite::copy_side::SqliteSide;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file.
    Sqlite(PathBuf),
    /// A database of MySQL or MariaDB, by its whole address.
    MySql(String),
}

/// Why a copy was refused or failed: a sentence with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CopyError(pub String);

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Which table.
    pub table: &'static str,
    /// So many of its rows are in the target.
    pub done: u64,
    /// So many there are.
    pub all: u64,
    /// Whether they are being compared, after all were copied.
    pub checks: bool,
}

/// A table that was copied and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub table: &'static str,
    /// The same at both sides.
    pub digest: TableDigest,
}

pub(crate) type CopyResult<T> = Result<T, CopyError>;

/// Rows on their way; an error ends them.
pub(crate) type Rows = Receiver<CopyResult<Vec<Row>>>;

/// So many rows, or about so many bytes, are one commit.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;

/// Collects rows into batches.
#[derive(Default)]
pub(crate) struct Batch {
    rows: Vec<Row>,
    bytes: usize,
}

impl Batch {
    /// Takes a row; answers the batch once it is full.
    pub fn add(&mut self, row: Row) -> Option<Vec<Row>> {
        self.bytes += row.iter().map(cell::Cell::size).sum::<usize>();
        self.rows.push(row);
        (self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES).then(|| std::mem::take(self).rows)
    }

    /// The rest.
    pub fn rest(self) -> Option<Vec<Row>> {
        (!self.rows.is_empty()).then_some(self.rows)
    }
}

/// A database at one end of a copy.
enum Side {
    Sqlite(SqliteSide),
    MySql(MySqlSide),
}

macro_rules! each {
    ($side:expr, $one:ident => $call:expr) => {
        match $side {
            Side::Sqlite($one) => $call,
            Side::MySql($one) => $call,
        }
    };
}

impl Side {
    /// The source, on which no node may run.
    async fn source(place: &Place) -> CopyResult<Self> {
        match place {
            Place::Sqlite(path) => SqliteSide::source(path).await.map(Self::Sqlite),
            Place::MySql(url) => MySqlSide::source(url).await.map(Self::MySql),
        }
    }

    /// The target, made with so many partitions where it is new.
    async fn target(place: &Place, partitions: u16) -> CopyResult<Self> {
        match place {
            Place::Sqlite(path) => SqliteSide::target(path, partitions).await.map(Self::Sqlite),
            Place::MySql(url) => MySqlSide::target(url, partitions).await.map(Self::MySql),
        }
    }

    fn place(&self) -> &str {
        each!(self, side => side.place())
    }

    fn partitions(&self) -> u16 {
        each!(self, side => side.partitions())
    }

    async fn mark(&self) -> CopyResult<Option<String>> {
        each!(self, side => side.mark().await)
    }

    async fn set_mark(&self, mark: Option<&str>) -> CopyResult<()> {
        each!(self, side => side.set_mark(mark).await)
    }

    async fn count(&self, table: &Table) -> CopyResult<u64> {
        each!(self, side => side.count(table).await)
    }

    /// The key of the last row.
    async fn last_key(&self, table: &Table) -> CopyResult<Option<Row>> {
        each!(self, side => side.last_key(table).await)
    }

    /// Rows in the order of their key, behind one of them.
    fn rows(&self, table: &Table, after: Option<Row>) -> Rows {
        each!(self, side => side.rows(table, after))
    }

    async fn insert(&self, table: &Table, rows: Vec<Row>) -> CopyResult<()> {
        each!(self, side => side.insert(table, rows).await)
    }

    /// The next number that the database would give.
    async fn next_number(&self, table: &Table) -> CopyResult<u64> {
        each!(self, side => side.next_number(table).await)
    }

    async fn set_next_number(&self, table: &Table, next: u64) -> CopyResult<()> {
        each!(self, side => side.set_next_number(table, next).await)
    }

    /// Why this database is in use, in words; `None` if no node works with it.
    async fn in_use(&self) -> CopyResult<Option<String>> {
        each!(self, side => side.in_use().await)
    }
}

/// Copies everything from one store into another, empty one, or goes on with a copy that was interrupted. `tell` hears how far it is.
///
/// # Errors
/// [`CopyError`]: one of them is in use, the target holds something else, they differ at the end, or a database failed.
pub async fn copy(from: &Place, to: &Place, tell: &mut (dyn FnMut(Progress) + Send)) -> CopyResult<Vec<Copied>> {
    let source = Side::source(from).await?;
    refuse_in_use(&source, "source").await?;
    if source.mark().await?.is_some() {
        return Err(CopyError(format!("{} is itself the target of a copy that is not finished", source.place())));
    }
    let target = Side::target(to, source.partitions()).await?;
    refuse_in_use(&target, "target").await?;
    begin(&source, &target).await?;
    for table in &tables() {
        fill(&source, &target, table, tell).await?;
    }
    let mut copied = Vec::new();
    for table in &tables() {
        copied.push(compare(&source, &target, table, tell).await?);
    }
    // Sessions are compared as they were when the copy began; who came since is seen here.
    refuse_in_use(&source, "source").await?;
    refuse_in_use(&target, "target").await?;
    target.set_mark(None).await?;
    Ok(copied)
}

async fn refuse_in_use(side: &Side, role: &str) -> CopyResult<()> {
    match side.in_use().await? {
        None => Ok(()),
        Some(who) => Err(CopyError(format!(
            "the {role} {} is in use: {who}. Stop its nodes, and copy again; a node that died is forgotten within two minutes",
            side.place()
        ))),
    }
}

/// An empty target gets the mark of this source. One that holds something must have that mark.
async fn begin(source: &Side, target: &Side) -> CopyResult<()> {
    let (from, to) = (source.place(), target.place());
    if from == to {
        return Err(CopyError(format!("{from} cannot be copied into itself")));
    }
    if source.partitions() != target.partitions() {
        return Err(CopyError(format!(
            "{to} was made with {} partitions, and {from} has {}: name a database that is not made yet",
            target.partitions(),
            source.partitions()
        )));
    }
    let mark = sum_of(from);
    match target.mark().await? {
        Some(found) if found == mark => Ok(()),
        Some(_) => Err(CopyError(format!(
            "{to} holds a part of another source: go on with that one, or name an empty database"
        ))),
        None => {
            let tables = tables();
            // Jobs are told before anything else, and settings of the database last.
            for table in tables.iter().skip(1).chain(tables.first()) {
                if target.count(table).await? > 0 {
                    let name = table.name;
                    return Err(CopyError(format!(
                        "{to} is not empty (table {name} has rows): name an empty database"
                    )));
                }
            }
            target.set_mark(Some(&mark)).await
        }
    }
}

async fn fill(source: &Side, target: &Side, table: &Table, tell: &mut (dyn FnMut(Progress) + Send)) -> CopyResult<()> {
    let (all, mut done) = (source.count(table).await?, target.count(table).await?);
    let told = |done| Progress { table: table.name, done, all, checks: false };
    tell(told(done));
    let mut rows = source.rows(table, target.last_key(table).await?);
    while let Some(batch) = rows.recv().await {
        let batch = batch?;
        done += batch.len() as u64;
        target.insert(table, batch).await?;
        tell(told(done));
    }
    if table.is_numbered {
        target.set_next_number(table, source.next_number(table).await?).await?;
    }
    Ok(())
}

async fn compare(
    source: &Side,
    target: &Side,
    table: &Table,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> CopyResult<Copied> {
    let (here, there) = (digest(source, table).await?, digest(target, table).await?);
    if here != there {
        let (name, from, to) = (table.name, source.place(), target.place());
        return Err(CopyError(format!(
            "table {name} differs: {here:?} in {from}, {there:?} in {to}. The source was written to since this copy began: drop the \
             target, and copy again while no node runs"
        )));
    }
    tell(Progress { table: table.name, done: here.rows, all: here.rows, checks: true });
    Ok(Copied { table: table.name, digest: here })
}

async fn digest(side: &Side, table: &Table) -> CopyResult<TableDigest> {
    let (mut summing, mut rows) = (Summing::default(), side.rows(table, None));
    while let Some(batch) = rows.recv().await {
        batch?.iter().for_each(|row| summing.add(row));
    }
    Ok(summing.done())
}
