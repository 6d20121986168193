//! A server of the test's own: data that nobody has used, a free port, synced at every commit.
//!
//! A watching shell holds one end of a pipe; when the test process ends, however it ends, the pipe closes, and the
//! shell kills the server and deletes its files.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use super::brand::{Brand, Home};
use super::clock::Clock;
use super::database::Database;
use super::disk::Disk;
use super::network::Place;
use super::pristine;
use crate::processes::has_ended;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one connection may take: a member may take it and say nothing.
const ONE_TRY: Duration = Duration::from_secs(5);

/// The ports for servers.
const FIRST_PORT: u16 = 12_000;
const SERVER_PORTS: u32 = 20_000;

/// The statements of each start: the user of the tests, and root from another address than that of the socket.
const INIT: &str = "CREATE USER IF NOT EXISTS carillon@'%' IDENTIFIED BY 'secret';\n\
                    GRANT ALL ON `carillon\\_%`.* TO carillon@'%';\n\
                    CREATE USER IF NOT EXISTS root@'127.0.0.1';\n\
                    GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";

/// The same of a member of a cluster: its clients come from other addresses than its own, and what it does for itself is none of the others'
/// business.
pub(super) const INIT_OF_MEMBERS: &str = "SET SESSION sql_log_bin = 0;\n\
                    CREATE USER IF NOT EXISTS carillon@'%' IDENTIFIED BY 'secret';\n\
                    GRANT ALL ON `carillon\\_%`.* TO carillon@'%';\n\
                    CREATE USER IF NOT EXISTS root@'%';\n\
                    GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n";

/// The directory of a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Files of its own, each a name and what is in it; options call them `../name`.
    pub files: &'a [(&'a str, &'a str)],
    /// Its data lies on a disk of its own, of so many MiB.
    pub disk_mib: Option<u32>,
    /// Its clock can be moved.
    pub clock: bool,
    /// It lives in a network namespace of its own, and listens at the address there.
    pub place: Option<&'a Place>,
}

/// A running server.
pub struct Server {
    brand: Brand,
    directory: PathBuf,
    data: PathBuf,
    disk: Result<Disk, String>,
    clock: Result<Clock, String>,
    host: String,
    port: u16,
    talk: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    watcher: Child,
    made: AtomicU32,
}

/// A port of 127.0.0.1 that nobody listens on. The system gives ports above 32768 to connections, and one of those may be gone again
/// before a server has it. So this is a lower one, and processes that look at the same time begin at different places.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    static LOOKED_AT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(101);
    let mut ports = (0..SERVER_PORTS).map(|_| {
        let next = begin.wrapping_add(LOOKED_AT.fetch_add(1, Ordering::SeqCst)) % SERVER_PORTS;
        FIRST_PORT + u16::try_from(next).expect("a small number")
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

impl Server {
    /// The server of a brand that all tests of one process share. Where it cannot be had, says loudly that nothing of
    /// this process is tested, and ends it.
    pub fn shared(brand: Brand) -> &'static Self {
        static SHARED: [OnceLock<Server>; 2] = [OnceLock::new(), OnceLock::new()];
        SHARED[brand as usize].get_or_init(|| Self::start(brand, brand.without_instruments()))
    }

    /// Starts one with further options for it.
    pub fn start(brand: Brand, options: &[&str]) -> Self {
        Self::start_with(brand, &[], options)
    }

    /// Starts one with files of its own, each a name and what is in it; options call them `../name`.
    pub fn start_with(brand: Brand, files: &[(&str, &str)], options: &[&str]) -> Self {
        Self::start_in(brand, Surroundings { files, ..Surroundings::default() }, options)
    }

    /// Starts one in surroundings that faults can change.
    pub fn start_in(brand: Brand, surroundings: Surroundings, options: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::SeqCst);
        let home = brand.home();
        let directory =
            home.servers.join(format!("carillon-{}-{}-{number}", brand.name().to_lowercase(), std::process::id()));
        prepare(&home, &directory, surroundings.files);
        let disk =
            surroundings.disk_mib.map_or(Err("it was not asked for".to_owned()), |mib| Disk::mount(&directory, mib));
        let clock = if surroundings.clock {
            Clock::new(&directory, home.root())
        } else {
            Err("it was not asked for".to_owned())
        };
        own(&home, &[disk.as_ref().map(Disk::place).unwrap_or(&directory).to_owned()]);
        let data = disk.as_ref().map(Disk::place).unwrap_or(&directory).join("data");
        let inside = home.inside(&directory);
        let port = free_port();
        let seen_from_inside = |clock: &Clock| clock.environment(|path| home.inside(path));
        let environment = clock.as_ref().map(seen_from_inside).unwrap_or_default();
        let mut words: Vec<String> = surroundings.place.map(Place::entered).unwrap_or_default();
        words.extend(brand.start(&home, &environment));
        let host = surroundings.place.map_or("127.0.0.1", |place| &place.address).to_owned();
        words.extend(settings(&inside, &home.inside(&data), &host, port));
        words.extend(options.iter().map(|option| (*option).to_owned()));
        let install = format!("cp -a {} {}", pristine::data(brand).display(), data.display());
        let (watcher, orders, answers) = watched(include_str!("watcher.sh"), &directory, &install, &words);
        let talk = Mutex::new(Some((orders, answers)));
        let this = Self { brand, directory, data, disk, clock, host, port, talk, watcher, made: AtomicU32::new(0) };
        this.must_answer();
        this
    }

    /// Where it listens: 127.0.0.1, or the address of its place.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port there.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Which it is.
    pub fn brand(&self) -> Brand {
        self.brand
    }

    /// Where its data is.
    pub fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// Where it keeps its files beside the data.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The small disk of its data; why it has none.
    pub fn disk(&self) -> Result<&Disk, String> {
        self.disk.as_ref().map_err(Clone::clone)
    }

    /// The clock that it goes by; why that cannot be moved.
    pub fn clock(&self) -> Result<&Clock, String> {
        self.clock.as_ref().map_err(Clone::clone)
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> i32 {
        self.ask("pid").parse().expect("a process id")
    }

    fn tell(&self, words: &str) {
        assert_eq!(Some(&*self.ask(words)), words.split(' ').next());
    }

    fn ask(&self, word: &str) -> String {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let (orders, answers) = talk.as_mut().expect("the watcher lives as long as this");
        writeln!(orders, "{word}").expect("the watcher listens");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("the watcher answers");
        answer.trim().to_owned()
    }

    /// Ends it in good order.
    pub fn stop(&self) {
        self.tell("stop");
    }

    /// Ends it as a power failure would, for the processes at least.
    pub fn kill(&self) {
        self.tell("kill");
    }

    /// Starts it again on the same files, and waits until it answers.
    pub fn start_again(&self) {
        self.tell("start");
        self.must_answer();
    }

    /// The same with further options for this time; the end of its log where it does not answer in time.
    ///
    /// # Errors
    /// Where it ends, or does not answer within `patience`.
    pub fn try_start(&self, options: &[&str], patience: Duration) -> Result<(), String> {
        self.tell(format!("start {}", options.join(" ")).trim_end());
        self.answers_within(patience)
    }

    /// Runs its program on its files with further options until that ends by itself; what it said.
    pub fn run_alone(&self, options: &[&str]) -> String {
        self.tell(&format!("run {}", options.join(" ")));
        fs::read_to_string(self.directory.join("said")).unwrap_or_default()
    }

    /// Stops it without its clients noticing.
    pub fn freeze(&self) {
        self.tell("freeze");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.tell("thaw");
    }

    fn must_answer(&self) {
        self.answers_within(PATIENCE).unwrap_or_else(|why| panic!("{why}"));
    }

    fn answers_within(&self, patience: Duration) -> Result<(), String> {
        let (begun, pid) = (Instant::now(), self.pid());
        let opts = Opts::from_url(&self.root_url()).expect("a URL");
        let answers = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let connecting = || tokio::time::timeout(ONE_TRY, Conn::new(opts.clone()));
            while !matches!(runtime.block_on(async { connecting().await }), Ok(Ok(_))) {
                let has_ended = has_ended(pid);
                if has_ended || begun.elapsed() > patience {
                    let how = if has_ended { "has ended" } else { "does not answer" };
                    return Err(format!("{} {how} after {:?}: {}", self.brand.name(), begun.elapsed(), self.log_end()));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        };
        // Callers may be inside a runtime already.
        std::thread::scope(|scope| scope.spawn(answers).join().expect("the server is asked"))
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The end of its log, for a sentence.
    pub(super) fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// The address of an account that may do anything.
    pub fn root_url(&self) -> String {
        format!("mysql://root@{}:{}/mysql?prefer_socket=false", self.host, self.port)
    }

    /// A connection that may do anything.
    pub async fn root(&self) -> Conn {
        self.try_root().await.expect("the server answers")
    }

    /// The same of a server that may be unwell.
    pub async fn try_root(&self) -> mysql_async::Result<Conn> {
        Conn::from_url(self.root_url()).await
    }

    /// A new empty database and its address.
    pub async fn database(&self) -> Database {
        let name = format!("carillon_{}", self.made.fetch_add(1, Ordering::SeqCst));
        self.root().await.query_drop(format!("CREATE DATABASE {name}")).await.expect("a database");
        Database { name, host: self.host.clone(), port: self.port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The watcher reads to the end of its pipe, which closes with this process, or here.
        let talk = self.talk.get_mut().unwrap_or_else(PoisonError::into_inner);
        talk.take();
        let _ended = self.watcher.wait();
    }
}

/// Copies the data of a server that has ended to a place where nothing is. The files stay those of the server's account.
///
/// # Errors
/// The words of `cp`.
pub fn copy_data(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-a").args([from, to]).output().map_err(|error| format!("cp: {error}"))?;
    if copied.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&copied.stderr).into_owned()) }
}

/// A shell with a script that makes the data of a server in a directory with the words of `install`, once it has: its orders and its answers.
/// It hears of the end of this process, however that ends.
pub(super) fn watched(
    script: &str,
    directory: &Path,
    install: &str,
    words: &[String],
) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut watcher = Command::new("bash")
        .args(["-c", script, "watcher"])
        .arg(directory)
        .arg(install)
        .args(words)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash starts");
    let orders = watcher.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(watcher.stdout.take().expect("a pipe"));
    let mut made = String::new();
    answers.read_line(&mut made).expect("the watcher answers");
    assert!(made.trim() == "made", "the data directory cannot be made: {made}");
    (watcher, orders, answers)
}

/// Durable and small.
fn settings(inside: &Path, data: &Path, host: &str, port: u16) -> Vec<String> {
    let path = |name: &str| inside.join(name).display().to_string();
    vec![
        format!("--datadir={}", data.display()),
        format!("--tmpdir={}", path("tmp")),
        format!("--socket={}", path("socket")),
        format!("--pid-file={}", path("pid")),
        format!("--init-file={}", path("init.sql")),
        format!("--port={port}"),
        format!("--bind-address={host}"),
        "--skip-name-resolve".into(),
        "--innodb-flush-log-at-trx-commit=1".into(),
        "--innodb-buffer-pool-size=128M".into(),
        "--max-connections=600".into(),
    ]
}

/// Makes the directory of a server, and all in it but the data.
pub(super) fn prepare(home: &Home, directory: &Path, files: &[(&str, &str)]) {
    let _left_over = fs::remove_dir_all(directory);
    // A server that starts deletes what it takes for its own leftovers: each has a place for temporary files to itself.
    fs::create_dir_all(directory.join("tmp")).expect("a directory");
    let mut made = vec![directory.to_owned(), directory.join("tmp")];
    for (name, text) in [("init.sql", INIT)].iter().chain(files) {
        fs::write(directory.join(name), text).expect("a file");
        made.push(directory.join(name));
    }
    own(home, &made);
}

/// Gives what root made to the account of the server.
fn own(home: &Home, made: &[PathBuf]) {
    if let Some((user, group)) = home.account {
        for path in made {
            nix::unistd::chown(path, Some(user), Some(group)).expect("root may give files away");
        }
    }
}
