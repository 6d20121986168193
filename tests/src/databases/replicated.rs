//! A server and its asynchronous replica, which may lag behind when it takes over.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mysql_async::Row;
use mysql_async::prelude::{FromRow, Queryable};

use super::brand::Brand;
use super::database::Database;
use super::server::{Server, Surroundings, copy_data};
use super::servers::blocking;
use crate::processes::has_ended;

/// How long the replica may take to apply everything, and a server to answer that was started.
const PATIENCE: Duration = Duration::from_secs(60);
/// The binary log and its numbered files.
const LOG: &str = "log";
/// The file of the log that a server begins with when its logs are reset.
const FIRST_FILE: u64 = 1;

/// The options of a start, which stand whatever the one before said.
const READS_AND_WRITES: &str = "--read-only=0";
const READS_ONLY: &str = "--read-only=1";

/// With one, a replica of MariaDB under load falls behind by minutes, as the source commits many transactions with one write to the disk.
/// MySQL has several and does not know the option.
const SEVERAL_APPLIERS: &str = "--loose-slave-parallel-threads=4";

/// The two servers. Nobody else promotes the replica: that is what an operator or a tool of theirs does.
pub struct Replicated {
    servers: [Server; 2],
    /// Which of them takes writes.
    source: AtomicUsize,
}

/// The statements that differ between the brands.
struct Words {
    /// From the beginning of a file of the binary log of the server at a port.
    follow: fn(u64, u16) -> String,
    start: &'static str,
    position: &'static str,
    wait: &'static str,
    stop_applying: &'static str,
    apply: &'static str,
    status: &'static str,
    /// The columns of the status that say Yes where the replica receives and applies.
    runs: [&'static str; 2],
    promote: [&'static str; 4],
}

const MARIADB: Words = Words {
    follow: |file, port| {
        format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root', \
             MASTER_CONNECT_RETRY = 1, MASTER_LOG_FILE = '{LOG}.{file:06}', MASTER_LOG_POS = 4"
        )
    },
    start: "START SLAVE",
    position: "SHOW MASTER STATUS",
    wait: "SELECT MASTER_POS_WAIT",
    stop_applying: "STOP SLAVE SQL_THREAD",
    apply: "START SLAVE SQL_THREAD",
    status: "SHOW SLAVE STATUS",
    runs: ["Slave_IO_Running", "Slave_SQL_Running"],
    promote: ["STOP SLAVE", "RESET SLAVE ALL", "RESET MASTER", "SET GLOBAL read_only = 0"],
};

const MYSQL: Words = Words {
    follow: |file, port| {
        format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
             SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_LOG_FILE = '{LOG}.{file:06}', SOURCE_LOG_POS = 4"
        )
    },
    start: "START REPLICA",
    position: "SHOW BINARY LOG STATUS",
    wait: "SELECT SOURCE_POS_WAIT",
    stop_applying: "STOP REPLICA SQL_THREAD",
    apply: "START REPLICA SQL_THREAD",
    status: "SHOW REPLICA STATUS",
    runs: ["Replica_IO_Running", "Replica_SQL_Running"],
    promote: ["STOP REPLICA", "RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS", "SET GLOBAL read_only = 0"],
};

/// The variable with which the faults of such a pair are asked for.
pub const ASKED_BY: &str = "CARILLON_REPLICA";

impl Replicated {
    /// Why its faults are not tested here, as the end of a sentence; `None` where they were asked for.
    pub fn missing() -> Option<String> {
        std::env::var_os(ASKED_BY).is_none().then(|| format!("they take minutes; {ASKED_BY}=1 asks for them"))
    }

    /// Starts both. The replica follows, and takes writes of nobody else.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start(brand: Brand) -> Self {
        Self::start_in(brand, None, false)
    }

    /// The same on disks of so many MiB, and with clocks that can be moved.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start_in(brand: Brand, disk_mib: Option<u32>, clock: bool) -> Self {
        let server = |id: &str, read_only: &str| {
            let surroundings = Surroundings { disk_mib, clock, ..Surroundings::default() };
            let log = format!("--log-bin={LOG}");
            let options = [&*log, "--binlog-format=ROW", "--sync-binlog=1", SEVERAL_APPLIERS, id, read_only];
            Server::start_in(brand, surroundings, &options)
        };
        let servers = [server("--server-id=1", READS_AND_WRITES), server("--server-id=2", READS_ONLY)];
        let this = Self { servers, source: AtomicUsize::new(0) };
        this.follow(FIRST_FILE).unwrap_or_else(|why| panic!("{why}"));
        this
    }

    /// Both, in an order that never changes.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The number of the server that takes writes now.
    pub fn source_number(&self) -> usize {
        self.source.load(Ordering::SeqCst)
    }

    /// The server that takes writes now.
    pub fn source(&self) -> &Server {
        &self.servers[self.source_number()]
    }

    /// The other one.
    pub fn replica(&self) -> &Server {
        &self.servers[1 - self.source_number()]
    }

    /// The address of a database of the source at both.
    pub fn url(&self, database: &Database) -> String {
        database.url_of(&self.servers)
    }

    /// The replica applies what the source has now, or a little more, and nothing after it. It goes on receiving.
    ///
    /// # Errors
    /// If it does not apply it in time.
    pub fn let_it_fall_behind(&self) -> Result<(), String> {
        self.catch_up()?;
        order(self.replica(), &[self.words().stop_applying])
    }

    /// The replica applies again what it receives.
    ///
    /// # Errors
    /// If it refuses.
    pub fn apply_again(&self) -> Result<(), String> {
        order(self.replica(), &[self.words().apply])
    }

    /// The source dies, and the replica takes writes with what it has applied.
    ///
    /// # Errors
    /// If the replica refuses an order.
    pub fn fail_over(&self) -> Result<(), String> {
        self.source().kill();
        self.promote()
    }

    /// As planned: the source takes no more writes, the replica applies all of them and takes its place, and the former source follows it.
    ///
    /// # Errors
    /// Says what did not come; then the source takes writes again, or the replica does in its place.
    pub fn switch_over(&self) -> Result<(), String> {
        order(self.source(), &["SET GLOBAL read_only = 1"])?;
        if let Err(why) = self.catch_up() {
            return order(self.source(), &["SET GLOBAL read_only = 0"]).and(Err(why));
        }
        self.promote()?;
        self.follow(FIRST_FILE)
    }

    /// A failover is undone: the source of before, whose process has ended, takes writes again, and the other one is dead.
    ///
    /// # Errors
    /// If the source of before does not answer.
    pub fn take_back(&self, before: usize) -> Result<(), String> {
        self.servers[1 - before].kill();
        self.source.store(before, Ordering::SeqCst);
        self.start_again(before)
    }

    /// The process of a server that has ended is started in the part that it has now.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn start_again(&self, number: usize) -> Result<(), String> {
        let part = if number == self.source_number() { READS_AND_WRITES } else { READS_ONLY };
        self.servers[number].try_start(&[part], PATIENCE)
    }

    /// Both run, and the replica follows; it is made anew where it cannot.
    ///
    /// # Errors
    /// Says what did not come.
    pub fn mend(&self) -> Result<(), String> {
        for number in [self.source_number(), 1 - self.source_number()] {
            if has_ended(self.servers[number].pid()) {
                self.start_again(number)?;
            }
        }
        self.follows().or_else(|_| self.rebuild())
    }

    /// The replica becomes a copy of the source, which is stopped for it, and follows.
    ///
    /// # Errors
    /// Says what did not come.
    pub fn rebuild(&self) -> Result<(), String> {
        let (source, replica) = (self.source(), self.replica());
        replica.kill();
        source.stop();
        let copied = copy(&source.data(), &replica.data());
        let files = log_files(&source.data());
        self.start_again(self.source_number())?;
        copied?;
        self.start_again(1 - self.source_number())?;
        // A server begins a new file whenever it starts.
        self.follow(files? + 1)
    }

    /// The replica takes writes with what it has applied.
    fn promote(&self) -> Result<(), String> {
        order(self.replica(), &self.words().promote)?;
        self.source.store(1 - self.source_number(), Ordering::SeqCst);
        Ok(())
    }

    /// The replica follows the source from the beginning of a file of its log.
    fn follow(&self, file: u64) -> Result<(), String> {
        let words = self.words();
        let follow = (words.follow)(file, self.source().port());
        order(self.replica(), &[&follow, words.start])?;
        self.follows()
    }

    /// Waits until the replica receives and applies.
    fn follows(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let status: Option<Row> = ask(self.replica(), self.words().status)?;
            let column = |name: &str| -> Option<String> { status.as_ref()?.get(name) };
            let runs = self.words().runs.map(|name| column(name).unwrap_or_default());
            if runs.iter().all(|runs| runs == "Yes") {
                return Ok(());
            }
            let errors = ["Last_IO_Error", "Last_SQL_Error"].map(|name| column(name).unwrap_or_default());
            if !errors[1].is_empty() || begun.elapsed() > PATIENCE {
                return Err(format!("the replica does not follow: {runs:?} {errors:?}"));
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Waits until the replica has applied what the source has now.
    fn catch_up(&self) -> Result<(), String> {
        let words = self.words();
        let position: Option<Row> = ask(self.source(), words.position)?;
        let of = |position: &Row| Some((position.get::<String, _>(0)?, position.get::<u64, _>(1)?));
        let (file, at) = position.as_ref().and_then(of).ok_or("the source writes no binary log")?;
        let wait = format!("{}('{file}', {at}, {})", words.wait, PATIENCE.as_secs());
        let applied: Option<Option<i64>> = ask(self.replica(), &wait)?;
        match applied.flatten() {
            Some(0..) => Ok(()),
            other => Err(format!("the replica lags behind {file} {at}: {other:?}")),
        }
    }

    fn words(&self) -> &'static Words {
        match self.servers[0].brand() {
            Brand::MariaDb => &MARIADB,
            Brand::MySql => &MYSQL,
        }
    }
}

fn order(server: &Server, statements: &[&str]) -> Result<(), String> {
    blocking(async {
        let mut root = server.try_root().await.map_err(|error| format!("no connection as root: {error}"))?;
        for sql in statements {
            root.query_drop(*sql).await.map_err(|error| format!("{sql}: {error}"))?;
        }
        Ok(())
    })
}

fn ask<T: FromRow + Send + 'static>(server: &Server, sql: &str) -> Result<Option<T>, String> {
    let answer: mysql_async::Result<Option<T>> = blocking(async { server.try_root().await?.query_first(sql).await });
    answer.map_err(|error| format!("{sql}: {error}"))
}

/// The files of a server that has ended become those of another one, which keeps its name for itself.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::remove_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    copy_data(from, to)?;
    let _none_in_mariadb = fs::remove_file(to.join("auto.cnf"));
    Ok(())
}

/// The number of the last file of the binary log.
fn log_files(data: &Path) -> Result<u64, String> {
    let files = fs::read_dir(data).map_err(|error| format!("{}: {error}", data.display()))?;
    let number = |file: fs::DirEntry| file.file_name().to_str()?.strip_prefix(LOG)?.strip_prefix('.')?.parse().ok();
    files.flatten().filter_map(number).max().ok_or_else(|| format!("{} holds no binary log", data.display()))
}
