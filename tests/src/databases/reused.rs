//! Databases that tests use one after the other. To make all tables takes a server half a second of CPU, to empty them a hundredth of it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::OnceCell;

use super::brand::Brand;
use super::database::Database;
use super::server::Server;

/// How long connections of the test before may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Databases of a server whose tables are made once.
pub struct Reused {
    server: fn() -> &'static Server,
    /// One that nobody uses, with the rows that every new one has.
    untouched: OnceCell<Database>,
    free: Mutex<Vec<Database>>,
}

/// A database until this is dropped; then another test may have it.
pub struct Lent {
    database: Database,
    owner: &'static Reused,
}

impl Reused {
    /// None yet.
    pub const fn of(server: fn() -> &'static Server) -> Self {
        Self { server, untouched: OnceCell::const_new(), free: Mutex::new(Vec::new()) }
    }

    /// A database as `make` leaves an empty one. The numbers that tables give to their rows go on where the test before left them.
    ///
    /// # Panics
    /// If connections of the test before do not end.
    pub async fn database(&'static self, make: impl AsyncFn(&Database)) -> Lent {
        let made = async || {
            let database = (self.server)().database().await;
            make(&database).await;
            database
        };
        let untouched = self.untouched.get_or_init(made).await;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let database = match free {
            Some(used) => {
                let mut root = used.root().await;
                end_connections(&mut root, (self.server)().brand(), &used.name)
                    .await
                    .expect("connections can be ended");
                empty(&mut root, &used.name, &untouched.name).await.expect("it can be emptied");
                used
            }
            None => made().await,
        };
        Lent { database, owner: self }
    }
}

impl Lent {
    /// The database itself.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.owner.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.database.clone());
    }
}

/// Ends the connections of the test before: the server may still carry out its statements.
async fn end_connections(root: &mut Conn, brand: Brand, name: &str) -> mysql_async::Result<()> {
    // MySQL's process list fails while any statement is carried out that holds bytes which are no text.
    let there = match brand {
        Brand::MySql => "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_DB = ?",
        Brand::MariaDb => "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?",
    };
    let begun = Instant::now();
    loop {
        let connections: Vec<u64> = root.exec(there, (name,)).await?;
        if connections.is_empty() {
            return Ok(());
        }
        assert!(begun.elapsed() < PATIENCE, "connections to {name} do not end: {connections:?}");
        for connection in connections {
            // It may have ended meanwhile.
            let _ended = root.query_drop(format!("KILL {connection}")).await;
        }
    }
}

/// Gives a database the rows of another one.
async fn empty(root: &mut Conn, name: &str, untouched: &str) -> mysql_async::Result<()> {
    let tables = "SELECT mine.TABLE_NAME, theirs.TABLE_NAME IS NOT NULL FROM information_schema.TABLES mine \
                  LEFT JOIN information_schema.TABLES theirs \
                  ON theirs.TABLE_SCHEMA = ? AND theirs.TABLE_NAME = mine.TABLE_NAME WHERE mine.TABLE_SCHEMA = ?";
    let tables: Vec<(String, bool)> = root.exec(tables, (untouched, name)).await?;
    let (ours, others): (Vec<_>, Vec<_>) = tables.into_iter().partition(|(_, is_ours)| *is_ours);
    let questions = [name, untouched].into_iter().flat_map(|database| {
        ours.iter().map(move |(table, _)| format!("(SELECT '{table}' FROM {database}.{table} LIMIT 1)"))
    });
    let with_rows: Vec<String> = root.query(questions.collect::<Vec<_>>().join(" UNION ")).await?;
    root.query_drop("START TRANSACTION").await?;
    for table in with_rows {
        root.query_drop(format!("DELETE FROM {name}.{table}")).await?;
        root.query_drop(format!("INSERT INTO {name}.{table} SELECT * FROM {untouched}.{table}")).await?;
    }
    root.query_drop("COMMIT").await?;
    for (table, _) in others {
        root.query_drop(format!("DROP TABLE {name}.{table}")).await?;
    }
    Ok(())
}
