//! A Carillon server as a process of its own, on a free port and a directory of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::waiting::wait_until;

/// How long a server may take to come up or to go.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Where a server's log is kept in its directory.
pub const LOG: &str = "server.log";
/// So many of its last lines are shown with a test that fails.
const SHOWN: usize = 30;

/// How a server's log is read.
const READ: u8 = 0;
const CLOSED: u8 = 1;
const STALLED: u8 = 2;

/// The built binary: `CARILLON_BIN`, or the one beside the running test.
pub fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("CARILLON_BIN") {
        return named.into();
    }
    let test = std::env::current_exe().expect("a test has a path");
    let built = test.ancestors().map(|dir| dir.join("carillon")).find(|path| path.is_file());
    built.expect("no carillon binary beside the tests: run `cargo build --workspace` first")
}

/// A running server. Killed when dropped; the end of its log is shown if a test fails.
pub struct Server {
    child: Mutex<Child>,
    pid: i32,
    url: String,
    dir: PathBuf,
    log: Mutex<Receiver<String>>,
    reading: Arc<AtomicU8>,
    agent: ureq::Agent,
}

impl Server {
    /// Starts a server on the database in `dir` and waits until it can schedule.
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        match Self::try_start(dir, arguments) {
            Ok(server) => server,
            Err((status, log)) => panic!("the server did not come up ({status}):\n{log}"),
        }
    }

    /// As [`Server::start`]; how it ended and what it said when it does not come up.
    pub fn try_start(dir: &Path, arguments: &[&str]) -> Result<Self, (ExitStatus, String)> {
        Self::try_start_as(dir, |command| command.args(arguments))
    }

    /// As [`Server::start`], with the command line and environment that `adjust` makes.
    pub fn start_as(dir: &Path, adjust: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        match Self::try_start_as(dir, adjust) {
            Ok(server) => server,
            Err((status, log)) => panic!("the server did not come up ({status}):\n{log}"),
        }
    }

    /// Starts a server with a `carillon.toml` of this text.
    pub fn start_with(dir: &Path, config: &str) -> Self {
        std::fs::write(dir.join("carillon.toml"), config).expect("the configuration can be written");
        Self::start(dir, &[])
    }

    /// As [`Server::start`], of another binary.
    pub fn start_of(program: &Path, dir: &Path) -> Self {
        match Self::try_start_of(program, dir, |command| command) {
            Ok(server) => server,
            Err((status, log)) => panic!("{} did not come up ({status}):\n{log}", program.display()),
        }
    }

    /// Starts a server that serves its API and cannot schedule yet.
    pub fn start_unready(dir: &Path) -> Self {
        match Self::listening(&binary(), dir, |command| command) {
            Ok(server) => server,
            Err((status, log)) => panic!("the server did not come up ({status}):\n{log}"),
        }
    }

    /// Starts a server that serves its API, whether it can schedule or not, with the command line and environment that
    /// `adjust` makes; how it ended and what it said when it does not come up.
    pub fn try_listen(
        dir: &Path,
        adjust: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self, (ExitStatus, String)> {
        Self::listening(&binary(), dir, adjust)
    }

    fn try_start_as(
        dir: &Path,
        adjust: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self, (ExitStatus, String)> {
        Self::try_start_of(&binary(), dir, adjust)
    }

    fn try_start_of(
        program: &Path,
        dir: &Path,
        adjust: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self, (ExitStatus, String)> {
        let server = Self::listening(program, dir, adjust)?;
        server.wait_until("ready", || server.is_ready());
        Ok(server)
    }

    fn listening(
        program: &Path,
        dir: &Path,
        adjust: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self, (ExitStatus, String)> {
        let mut command = Command::new(program);
        // Flags go before it, so a test may listen elsewhere.
        command.arg("serve").env("CARILLON__HTTP__BIND", "127.0.0.1:0").current_dir(dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = adjust(&mut command).spawn().expect("the binary can be started");
        let (lines, log) = channel();
        let stderr = child.stderr.take().expect("stderr is piped");
        let kept = File::options().create(true).append(true).open(dir.join(LOG)).expect("the log can be kept");
        let reading = Arc::new(AtomicU8::new(READ));
        let how = Arc::clone(&reading);
        std::thread::spawn(move || {
            let mut kept = kept;
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                match how.load(Ordering::Relaxed) {
                    READ => {}
                    CLOSED => return,
                    _ => wait_forever(),
                }
                let _ = std::io::Write::write_all(&mut kept, format!("{line}\n").as_bytes());
                let _ = lines.send(line);
            }
        });
        let mut said = String::new();
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = log.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            said.push_str(&line);
            said.push('\n');
            if let Some(url) = url_in(&line) {
                let agent = agent(dir);
                let pid = i32::try_from(child.id()).expect("a pid fits");
                let (child, log) = (Mutex::new(child), Mutex::new(log));
                return Ok(Self { child, pid, url, dir: dir.to_owned(), log, reading, agent });
            }
        }
        let _ = child.kill();
        Err((child.wait().expect("a child can be waited for"), said))
    }

    /// Where its API is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The generated admin token.
    pub fn token(&self) -> String {
        std::fs::read_to_string(self.dir.join("carillon.token")).expect("the token file").trim().to_owned()
    }

    /// A call of its API; the status and the JSON body (or `null`).
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (status, _, text) = self.call_raw(method, path, &[], body);
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// A call of its API with further headers; the status, the headers and the body as text.
    #[track_caller]
    pub fn call_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (u16, ureq::http::HeaderMap, String) {
        let bytes = body.map(|body| serde_json::to_vec(body).expect("JSON can be written")).unwrap_or_default();
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Authorization", format!("Bearer {}", self.token()));
        if body.is_some() || method != "GET" {
            request = request.header("Content-Type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(bytes).expect("a request can be built");
        let mut response = self.agent.run(request).expect("the server answers");
        let body = response.body_mut().with_config().limit(64 << 20).read_to_vec().expect("a body can be read");
        (response.status().as_u16(), response.headers().clone(), String::from_utf8_lossy(&body).into_owned())
    }

    /// A GET of a server that may be frozen, dying or gone: the status and the body as text, if they come in time.
    pub fn try_get(&self, path: &str, within: Duration) -> Option<(u16, String)> {
        let token = std::fs::read_to_string(self.dir.join("carillon.token")).ok()?;
        let request = self.agent.get(format!("{}{path}", self.url)).config().timeout_global(Some(within)).build();
        let answer = request.header("Authorization", format!("Bearer {}", token.trim())).call().ok()?;
        let (parts, mut body) = answer.into_parts();
        Some((parts.status.as_u16(), body.read_to_string().ok()?))
    }

    /// A GET that must succeed.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, None);
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// A POST that must succeed.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.call("POST", path, Some(body));
        assert!((200..300).contains(&status), "POST {path}: {status} {answer}");
        answer
    }

    /// Everything on all pages of a listing.
    #[track_caller]
    pub fn all(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let page = match &cursor {
                None => self.get(&format!("{path}{separator}limit=1000")),
                Some(cursor) => self.get(&format!("{path}{separator}limit=1000&cursor={cursor}")),
            };
            items.extend(page["items"].as_array().expect("a listing has items").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return items,
            }
        }
    }

    /// Whether it says that it schedules.
    pub fn is_ready(&self) -> bool {
        self.get_open("/readyz") == 200
    }

    /// A GET without a token; 0 where nobody answers.
    pub fn get_open(&self, path: &str) -> u16 {
        self.agent.get(format!("{}{path}", self.url)).call().map_or(0, |response| response.status().as_u16())
    }

    /// A client that knows the authority of its certificate, if it has one, and waits for as long as an answer takes.
    pub fn patient_agent(&self) -> ureq::Agent {
        let tls = self.agent.config().tls_config().clone();
        ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into()
    }

    /// Where it keeps its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its log, over all its lives in this directory.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join(LOG)).unwrap_or_default()
    }

    /// Waits for a condition of the outside, looking again and again; panics when it does not come.
    #[track_caller]
    pub fn wait_until(&self, what: &str, condition: impl FnMut() -> bool) {
        wait_until(what, condition);
    }

    /// Waits for a line of the log that contains `text`.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        let log = self.log.lock().expect("nobody panicked while waiting for the log");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = log.recv_timeout(left).unwrap_or_else(|_| panic!("the log never said {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Closes our end of its stderr when it says the next thing.
    pub fn close_its_log(&self) {
        self.reading.store(CLOSED, Ordering::Relaxed);
    }

    /// Reads no more of its stderr, and leaves it open: the pipe fills up.
    pub fn stall_its_log(&self) {
        self.reading.store(STALLED, Ordering::Relaxed);
    }

    /// Sends a signal to the server's process.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).expect("the server is there");
    }

    /// SIGKILL.
    pub fn kill(self) {
        self.child().kill().expect("the server is there");
        self.child().wait().expect("a child can be waited for");
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SIGTERM, and how it ended.
    pub fn drain(self) -> ExitStatus {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(self) -> ExitStatus {
        wait_until("the server ends", || self.has_ended().is_some());
        self.child().wait().expect("a child can be waited for")
    }

    /// How it ended, if it has.
    pub fn has_ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().expect("a child can be waited for")
    }
}

/// Where a server says that it serves; one that listens everywhere is reached here.
fn url_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" serves ")?;
    let url = rest.split_whitespace().next().filter(|url| url.starts_with("http"))?;
    Some(url.replace("://0.0.0.0:", "://127.0.0.1:"))
}

/// A client that trusts the certificates of `authority.pem` in the server's directory.
fn agent(dir: &Path) -> ureq::Agent {
    let mut tls = TlsConfig::builder();
    if let Ok(pem) = std::fs::read(dir.join("authority.pem")) {
        let authority = Certificate::from_pem(&pem).expect("the authority's certificate");
        tls = tls.root_certs(RootCerts::from([authority]));
    }
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
    config.tls_config(tls.build()).build().into()
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.has_ended();
        let _ = self.child().kill();
        let _ = self.child().wait();
        show_log(&self.dir, &ended.map_or("still runs".to_owned(), |how| how.to_string()));
    }
}

/// Shows the end of the log that a server keeps in this directory, if a test has just failed.
pub(crate) fn show_log(dir: &Path, ended: &str) {
    if std::thread::panicking() {
        let log = std::fs::read_to_string(dir.join(LOG)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN)..];
        eprintln!("the server in {} ({ended}) said at last:\n{}", dir.display(), shown.join("\n"));
    }
}

fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}
