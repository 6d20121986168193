//! A server of the test's own: an empty data directory, a free port, synced at every commit.
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
use super::database::Database;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the server runs at each start: the user of the tests, and root from another address than that of the socket.
const INIT: &str = "CREATE USER IF NOT EXISTS carillon@'%' IDENTIFIED BY 'secret';\n\
                    GRANT ALL ON `carillon\\_%`.* TO carillon@'%';\n\
                    CREATE USER IF NOT EXISTS root@'127.0.0.1';\n\
                    GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";

/// A running server.
pub struct Server {
    brand: Brand,
    directory: PathBuf,
    port: u16,
    talk: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    watcher: Child,
    made: AtomicU32,
}

impl Server {
    /// The server of a brand that all tests of one process share. Where it cannot be had, says loudly that nothing of
    /// this process is tested, and ends it.
    pub fn shared(brand: Brand) -> &'static Self {
        static SHARED: [OnceLock<Server>; 2] = [OnceLock::new(), OnceLock::new()];
        SHARED[brand as usize].get_or_init(|| Self::start(brand, &[]))
    }

    /// Starts one with further options for it.
    pub fn start(brand: Brand, options: &[&str]) -> Self {
        Self::start_with(brand, &[], options)
    }

    /// Starts one with files of its own, each a name and what is in it; options call them `../name`.
    pub fn start_with(brand: Brand, files: &[(&str, &str)], options: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::SeqCst);
        let home = brand.home();
        let directory =
            home.servers.join(format!("carillon-{}-{}-{number}", brand.name().to_lowercase(), std::process::id()));
        prepare(&home, &directory, files);
        let inside = home.inside(&directory);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let mut words = brand.start(&home);
        words.extend(settings(&inside, port));
        words.extend(options.iter().map(|option| (*option).to_owned()));
        let mut watcher = Command::new("bash")
            .args(["-c", include_str!("watcher.sh"), "watcher"])
            .arg(&directory)
            .arg(brand.installation(&home, &inside))
            .args(&words)
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
        let talk = Mutex::new(Some((orders, answers)));
        let this = Self { brand, directory, port, talk, watcher, made: AtomicU32::new(0) };
        this.wait_until_it_answers();
        this
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its data is.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
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
                while let Err(error) = runtime.block_on(Conn::new(opts.clone())) {
                    assert!(begun.elapsed() < PATIENCE, "{}: {error}\n{}", self.brand.name(), self.log());
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        });
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
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

impl Drop for Server {
    fn drop(&mut self) {
        // The watcher reads to the end of its pipe, which closes with this process, or here.
        let talk = self.talk.get_mut().unwrap_or_else(PoisonError::into_inner);
        talk.take();
        let _ended = self.watcher.wait();
    }
}

/// Durable and small.
fn settings(inside: &Path, port: u16) -> Vec<String> {
    let path = |name: &str| inside.join(name).display().to_string();
    vec![
        format!("--datadir={}", path("data")),
        format!("--tmpdir={}", path("tmp")),
        format!("--socket={}", path("socket")),
        format!("--pid-file={}", path("pid")),
        format!("--init-file={}", path("init.sql")),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".into(),
        "--skip-name-resolve".into(),
        "--innodb-flush-log-at-trx-commit=1".into(),
        "--innodb-buffer-pool-size=128M".into(),
        "--max-connections=600".into(),
    ]
}

/// Makes the directory of a server, and all in it but the data.
fn prepare(home: &Home, directory: &Path, files: &[(&str, &str)]) {
    let _left_over = fs::remove_dir_all(directory);
    // A server that starts deletes what it takes for its own leftovers: each has a place for temporary files to itself.
    fs::create_dir_all(directory.join("tmp")).expect("a directory");
    let mut own = vec![directory.to_owned(), directory.join("tmp")];
    for (name, text) in [("init.sql", INIT)].iter().chain(files) {
        fs::write(directory.join(name), text).expect("a file");
        own.push(directory.join(name));
    }
    for path in own {
        if let Some((user, group)) = home.account {
            nix::unistd::chown(&path, Some(user), Some(group)).expect("root may give files away");
        }
    }
}
