//! A server and its asynchronous replica, which may lag behind when it takes over.

use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::brand::Brand;
use super::database::Database;
use super::server::Server;
use super::servers::blocking;

/// How long the replica may take to apply everything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The two servers. Nobody else promotes the replica: that is what an operator or a tool of theirs does.
pub struct Replicated {
    source: Server,
    replica: Server,
}

/// The statements that differ between the brands.
struct Words {
    /// From the first event of the source's binary log; its port comes last.
    follow: &'static str,
    start: &'static str,
    position: &'static str,
    wait: &'static str,
    stop_applying: &'static str,
    promote: [&'static str; 3],
}

const MARIADB: Words = Words {
    follow: "CHANGE MASTER TO MASTER_LOG_FILE = 'log.000001', MASTER_LOG_POS = 4, MASTER_HOST = '127.0.0.1', \
             MASTER_USER = 'root', MASTER_PORT",
    start: "START SLAVE",
    position: "SHOW MASTER STATUS",
    wait: "SELECT MASTER_POS_WAIT",
    stop_applying: "STOP SLAVE SQL_THREAD",
    promote: ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"],
};

const MYSQL: Words = Words {
    follow: "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE = 'log.000001', SOURCE_LOG_POS = 4, SOURCE_HOST = '127.0.0.1', \
             SOURCE_USER = 'root', GET_SOURCE_PUBLIC_KEY = 1, SOURCE_PORT",
    start: "START REPLICA",
    position: "SHOW BINARY LOG STATUS",
    wait: "SELECT SOURCE_POS_WAIT",
    stop_applying: "STOP REPLICA SQL_THREAD",
    promote: ["STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = 0"],
};

impl Replicated {
    /// Starts both. The replica follows, and takes writes of nobody else.
    pub fn start(brand: Brand) -> Self {
        let source = Server::start(brand, &["--log-bin=log", "--server-id=1"]);
        let replica = Server::start(brand, &["--server-id=2", "--read-only=1"]);
        let this = Self { source, replica };
        let words = this.words();
        let follow = format!("{} = {}", words.follow, this.source.port());
        this.on_replica(&[&follow, words.start]);
        this
    }

    /// The server that takes writes at first.
    pub fn source(&self) -> &Server {
        &self.source
    }

    /// The address of a database of the source at both.
    pub fn url(&self, database: &Database) -> String {
        database.url_of([&self.source, &self.replica])
    }

    /// The replica applies what the source has now, or a little more, and nothing after it. It goes on receiving.
    ///
    /// # Panics
    /// If it does not apply it in time.
    pub fn let_it_fall_behind(&self) {
        let words = self.words();
        blocking(async {
            let position: Option<Row> = self.source.root().await.query_first(words.position).await.expect("a position");
            let position = position.expect("the source writes a binary log");
            let (file, at): (String, u64) = (position.get(0).expect("a file"), position.get(1).expect("a place in it"));
            let wait = format!("{}('{file}', {at}, {})", words.wait, PATIENCE.as_secs());
            let applied: Option<Option<i64>> = self.replica.root().await.query_first(wait).await.expect("an answer");
            assert!(applied.flatten().is_some_and(|events| events >= 0), "the replica lags: {applied:?}");
        });
        self.on_replica(&[words.stop_applying]);
    }

    /// The source dies, and the replica takes writes with what it has applied.
    pub fn fail_over(&self) {
        self.source.kill();
        self.on_replica(&self.words().promote);
    }

    /// The former source runs again as people should start it: closed for writing.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn bring_back_the_source(&self) -> Result<(), String> {
        self.source.try_start(&["--read-only=1"], PATIENCE)
    }

    fn words(&self) -> &'static Words {
        match self.source.brand() {
            Brand::MariaDb => &MARIADB,
            Brand::MySql => &MYSQL,
        }
    }

    fn on_replica(&self, statements: &[&str]) {
        blocking(async {
            let mut root = self.replica.root().await;
            for sql in statements {
                root.query_drop(*sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        });
    }
}
