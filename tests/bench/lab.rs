//! Shared by all scenarios: the database server and the plugin that does nothing.

use std::collections::BTreeMap;

use carillon_tests::databases::{Brand, Database, Server};
use carillon_tests::plugins::Place;
use mysql_async::prelude::Queryable;
use tokio::runtime::Runtime;

use crate::size::Size;

/// The settings of a production server on a machine of this size, and durable. The later of two options counts.
const MARIADB: [&str; 5] = [
    "--log-bin",
    "--binlog-format=ROW",
    "--sync-binlog=1",
    "--innodb-buffer-pool-size=1G",
    "--innodb-log-file-size=512M",
];
/// The same; this one writes a binary log by itself, and is told to sync it where it is started.
const MYSQL: [&str; 2] = ["--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=512M"];

/// The variables that tell how durable and how large the server is.
const VARIABLES: [&str; 9] = [
    "version",
    "log_bin",
    "binlog_format",
    "sync_binlog",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
];

/// The place of all measurements.
pub struct Lab {
    /// How much of everything.
    pub size: Size,
    /// The database server.
    pub server: Server,
    /// The plugin `noop`.
    pub plugins: Place,
    runtime: Runtime,
}

impl Lab {
    /// Starts the server.
    ///
    /// # Panics
    /// Where it is not durable.
    pub fn new(brand: Brand, size: Size) -> Self {
        let options: &[&str] = if brand == Brand::MySql { &MYSQL } else { &MARIADB };
        let server = Server::start(brand, options);
        let plugins = Place::new();
        plugins.drop_built("noop", "noop.so", 0o755);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let lab = Self { size, server, plugins, runtime };
        let settings = lab.variables();
        for (name, value) in [("log_bin", "ON"), ("sync_binlog", "1"), ("innodb_flush_log_at_trx_commit", "1")] {
            assert_eq!(settings.get(name).map(String::as_str), Some(value), "{name} of a durable server");
        }
        lab
    }

    /// Runs a future to its end.
    pub fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The server's own version.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let names = VARIABLES.map(|name| format!("'{name}'")).join(", ");
        let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
        let rows: Vec<(String, String)> =
            self.block(async { self.server.root().await.query(sql).await.expect("the server answers") });
        rows.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect()
    }

    /// An empty database, gone when it is dropped.
    pub fn database(&self) -> Scratch<'_> {
        Scratch { lab: self, database: self.block(self.server.database()) }
    }
}

/// A database of one scenario.
pub struct Scratch<'a> {
    lab: &'a Lab,
    database: Database,
}

impl Scratch<'_> {
    /// Where nodes and stores find it. Nothing on the way is encrypted: database and nodes are on one machine.
    pub fn url(&self) -> String {
        self.database.url_through(self.database.port())
    }

    /// Runs statements one after another as root, kept out of the binary log, on one connection.
    ///
    /// # Panics
    /// With the statement that failed.
    pub fn fill(&self, statements: &[String]) {
        self.lab.block(async {
            let mut root = self.root().await;
            root.query_drop("SET SESSION sql_log_bin = 0, unique_checks = 0").await.expect("root may set it");
            for statement in statements {
                if let Err(error) = root.query_drop(statement).await {
                    panic!("{}: {error}", statement.chars().take(300).collect::<String>());
                }
            }
        });
    }

    /// The rows of a query.
    pub fn rows<R: mysql_async::prelude::FromRow + Send + 'static>(&self, sql: &str) -> Vec<R> {
        self.lab.block(async { self.root().await.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")) })
    }

    /// A connection of root to it.
    pub async fn root(&self) -> mysql_async::Conn {
        let mut root = self.database.root().await;
        root.query_drop(format!("USE {}", self.database.name)).await.expect("the database is there");
        root
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {}", self.database.name);
        // A scenario that failed may have left a server in bad order.
        let _gone = self.lab.block(async { self.lab.server.try_root().await?.query_drop(sql).await });
    }
}
