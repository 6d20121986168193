//! Databases that go back in time: what a store holds is kept, and put back under it while it goes on.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use carillon_doubles::innodb::InnoDb;
use carillon_doubles::{Backup, MemoryStore};
use mysql_async::prelude::Queryable;

/// The one backup of a store under test.
pub enum Backups {
    /// In memory.
    Memory(MemoryStore, Mutex<Option<Backup>>),
    /// In memory, as InnoDB does it.
    InnoDb(InnoDb, Mutex<Option<Backup>>),
    /// Beside the database file.
    Sqlite(PathBuf),
    /// In the database at this URL, in tables beside the others.
    MySql(String),
}

impl Backups {
    /// Of a store in memory.
    pub fn memory(store: &MemoryStore) -> Self {
        Self::Memory(store.clone(), Mutex::new(None))
    }

    /// Of the store in memory that behaves as InnoDB does.
    pub fn innodb(database: &InnoDb) -> Self {
        Self::InnoDb(database.clone(), Mutex::new(None))
    }

    /// Keeps what is stored now.
    pub async fn take(&self) {
        match self {
            Self::Memory(store, kept) => *kept.lock().unwrap() = Some(store.back_up()),
            Self::InnoDb(database, kept) => *kept.lock().unwrap() = Some(database.back_up()),
            Self::Sqlite(path) => take_sqlite(path),
            Self::MySql(url) => take_mysql(url).await,
        }
    }

    /// Puts back what was kept, under the running store.
    pub async fn restore(&self) {
        match self {
            Self::Memory(store, kept) => store.restore(kept.lock().unwrap().as_ref().expect("a backup was taken")),
            Self::InnoDb(database, kept) => {
                database.restore(kept.lock().unwrap().as_ref().expect("a backup was taken"));
            }
            Self::Sqlite(path) => restore_sqlite(path),
            Self::MySql(url) => restore_mysql(url).await,
        }
    }
}

fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("backup")
}

fn take_sqlite(path: &Path) {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.execute("VACUUM INTO ?1", [copy_of(path).to_str().unwrap()]).unwrap();
}

fn restore_sqlite(path: &Path) {
    let mut conn = rusqlite::Connection::open(path).unwrap();
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    conn.execute("ATTACH ?1 AS backup", [copy_of(path).to_str().unwrap()]).unwrap();
    let sql = "SELECT name FROM backup.sqlite_schema WHERE type = 'table' AND name <> 'refinery_schema_history'";
    let mut names = conn.prepare(sql).unwrap();
    let tables: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(names);
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    for table in tables {
        transaction.execute(&format!("DELETE FROM main.{table}"), []).unwrap();
        transaction.execute(&format!("INSERT INTO main.{table} SELECT * FROM backup.{table}"), []).unwrap();
    }
    transaction.commit().unwrap();
}

async fn connect(url: &str) -> mysql_async::Conn {
    mysql_async::Conn::from_url(url).await.unwrap()
}

async fn tables(conn: &mut mysql_async::Conn) -> Vec<String> {
    let all: Vec<String> = conn.query("SHOW TABLES").await.unwrap();
    all.into_iter().filter(|name| name != "refinery_schema_history" && !name.starts_with("backup_")).collect()
}

async fn take_mysql(url: &str) {
    let mut conn = connect(url).await;
    for table in tables(&mut conn).await {
        conn.query_drop(format!("CREATE TABLE backup_{table} AS SELECT * FROM {table}")).await.unwrap();
    }
    conn.disconnect().await.unwrap();
}

async fn restore_mysql(url: &str) {
    let mut conn = connect(url).await;
    let tables = tables(&mut conn).await;
    conn.query_drop("START TRANSACTION").await.unwrap();
    for table in tables {
        conn.query_drop(format!("DELETE FROM {table}")).await.unwrap();
        conn.query_drop(format!("INSERT INTO {table} SELECT * FROM backup_{table}")).await.unwrap();
    }
    conn.query_drop("COMMIT").await.unwrap();
    conn.disconnect().await.unwrap();
}
