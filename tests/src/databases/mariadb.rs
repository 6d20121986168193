//! A MariaDB server of the test's own: an empty data directory, a free port, synced at every commit.
//!
//! A watching shell holds one end of a pipe; when the test process ends, however it ends, the pipe closes, and the
//! shell kills the server and deletes its files.

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

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct MariaDb {
    port: u16,
    talk: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    watcher: Child,
    made: AtomicU32,
}

/// The server that all tests of one process share. Where MariaDB is not installed, says loudly that nothing of this
/// process is tested and ends it; with `CI=true` that is a failure.
pub fn shared() -> &'static MariaDb {
    static SHARED: OnceLock<MariaDb> = OnceLock::new();
    SHARED.get_or_init(|| MariaDb::start(&[]))
}

fn require_installed() {
    let found = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|answer| answer.status.success());
    if found("mariadbd") && found("mariadb-install-db") {
        return;
    }
    let program = std::env::args().next().unwrap_or_default();
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let words = format!(
        "\n\n*** MariaDB is not installed: EVERYTHING in {program} is skipped. ***\n\
         *** Install it with: apt-get install mariadb-server ***\n\n"
    );
    // Not through the macros, which tests capture.
    let _unheard = std::io::stderr().write_all(words.as_bytes());
    std::process::exit(i32::from(ci));
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

impl MariaDb {
    /// Starts one with further options for `mariadbd`.
    pub fn start(options: &[&str]) -> Self {
        require_installed();
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::SeqCst);
        let directory = std::env::temp_dir().join(format!("carillon-mariadb-{}-{number}", std::process::id()));
        let install = prepare(&directory);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let path = |name: &str| directory.join(name).display().to_string();
        let mut server: Vec<String> = vec!["mariadbd".into(), "--no-defaults".into()];
        server.extend(is_root().then(|| "--user=mysql".to_owned()));
        server.extend([
            format!("--datadir={}", path("data")),
            format!("--tmpdir={}", path("tmp")),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
            format!("--init-file={}", path("init.sql")),
            format!("--port={port}"),
        ]);
        let fixed = [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=128M",
            "--max-connections=600",
        ];
        server.extend(fixed.iter().chain(options).map(|option| (*option).to_owned()));
        let mut watcher = Command::new("bash")
            .args(["-c", include_str!("watcher.sh"), "watcher"])
            .arg(&directory)
            .arg(&install)
            .args(&server)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash starts");
        let talk = (watcher.stdin.take().expect("a pipe"), BufReader::new(watcher.stdout.take().expect("a pipe")));
        let mut talk = talk;
        let mut made = String::new();
        talk.1.read_line(&mut made).expect("the watcher answers");
        assert!(made.trim() == "made", "the data directory cannot be made: {made}");
        let this = Self { port, talk: Mutex::new(Some(talk)), watcher, made: AtomicU32::new(0) };
        this.wait_until_it_answers();
        this
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn tell(&self, word: &str) {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let (orders, answers) = talk.as_mut().expect("the watcher lives as long as this");
        writeln!(orders, "{word}").expect("the watcher listens");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("the watcher answers");
        assert_eq!(answer.trim(), word);
    }

    /// Ends it as a power failure would, for the processes at least.
    pub fn kill(&self) {
        self.tell("kill");
    }

    /// Starts it again on the same files, and waits until it answers.
    pub fn start_again(&self) {
        self.tell("start");
        self.wait_until_it_answers();
    }

    /// Stops it without its clients noticing.
    pub fn freeze(&self) {
        self.tell("freeze");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.tell("thaw");
    }

    fn wait_until_it_answers(&self) {
        let begun = Instant::now();
        let opts = Opts::from_url(&self.root_url()).expect("a URL");
        // Callers may be inside a runtime already.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                while runtime.block_on(Conn::new(opts.clone())).is_err() {
                    assert!(begun.elapsed() < PATIENCE, "MariaDB does not answer on port {}", self.port);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        });
    }

    fn root_url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/mysql?prefer_socket=false", self.port)
    }

    /// A connection that may do anything.
    pub async fn root(&self) -> Conn {
        Conn::from_url(self.root_url()).await.expect("the server answers")
    }

    /// A new empty database and its address.
    pub async fn database(&self) -> Database {
        let name = format!("carillon_{}", self.made.fetch_add(1, Ordering::SeqCst));
        self.root().await.query_drop(format!("CREATE DATABASE {name}")).await.expect("a database");
        Database { name, port: self.port }
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // The watcher reads to the end of its pipe, which closes with this process, or here.
        let talk = self.talk.get_mut().unwrap_or_else(PoisonError::into_inner);
        talk.take();
        let _ended = self.watcher.wait();
    }
}

/// A database of a server.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its name.
    pub name: String,
    port: u16,
}

impl Database {
    /// The address of the database, for a user who may do nothing outside of it.
    pub fn url(&self) -> String {
        self.url_through(self.port)
    }

    /// The same through another port.
    pub fn url_through(&self, port: u16) -> String {
        format!("mysql://carillon:secret@127.0.0.1:{port}/{}", self.name)
    }

    /// A connection to it.
    pub async fn connect(&self) -> Conn {
        Conn::from_url(self.url()).await.expect("the server answers")
    }

    /// Runs statements on a connection of their own.
    pub async fn run(&self, statements: &[&str]) {
        let mut conn = self.connect().await;
        for statement in statements {
            conn.query_drop(*statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}

/// Makes the directory and the user of the tests; answers the words that make the data directory.
fn prepare(directory: &Path) -> String {
    let _left_over = std::fs::remove_dir_all(directory);
    // A server that starts deletes what it takes for its own leftovers: each has a place for temporary files to itself.
    std::fs::create_dir_all(directory.join("tmp")).expect("a directory");
    let init = "CREATE USER IF NOT EXISTS carillon@'%' IDENTIFIED BY 'secret';\n\
                GRANT ALL ON `carillon\\_%`.* TO carillon@'%';\n";
    std::fs::write(directory.join("init.sql"), init).expect("a file");
    let user = if is_root() { "--user=mysql" } else { "" };
    if is_root() {
        own(directory);
    }
    format!(
        "mariadb-install-db --no-defaults --skip-test-db --auth-root-authentication-method=normal {user} --datadir={} \
         --tmpdir={}",
        directory.join("data").display(),
        directory.join("tmp").display()
    )
}

fn own(directory: &Path) {
    let account = nix::unistd::User::from_name("mysql").ok().flatten().expect("the account mysql");
    let paths: [PathBuf; 3] = [directory.to_owned(), directory.join("init.sql"), directory.join("tmp")];
    for path in paths {
        nix::unistd::chown(&path, Some(account.uid), Some(account.gid)).expect("root may give files away");
    }
}
