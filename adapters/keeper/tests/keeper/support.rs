//! Shared by the tests: keepers, commands to spawn, and witnesses of who lives.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carillon_domain::id::RunId;
use carillon_executors::executor::Exit;
use carillon_executors::executor::Live;
use carillon_keeper::{KeeperHandle, KeeperOptions, RunningChild, Spawn};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc;

/// Longer than anything here takes; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// With cgroups, and without.
pub const BOTH: [bool; 2] = [true, false];

/// Runs a test's async part. The keeper's tasks have a thread of their own, so the test may block.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test took too long") })
}

/// How this very binary is started as a keeper.
pub fn options(cgroups: bool) -> KeeperOptions {
    let program = std::env::current_exe().unwrap();
    KeeperOptions { program, arguments: vec!["keeper".into()], lock: None, cgroups, kill_node_after: None }
}

/// A keeper with a lease for ever.
pub fn keeper(cgroups: bool) -> KeeperHandle {
    let keeper = KeeperHandle::start(options(cgroups)).unwrap();
    keeper.extend_deadline(u64::MAX);
    keeper
}

/// A run of `argv` with a small environment.
pub fn argv<const N: usize>(argv: [&str; N]) -> Spawn {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let run = RunId::from_parts(std::process::id().into(), NEXT.fetch_add(1, Ordering::Relaxed));
    let string = |text: String| CString::new(text).unwrap();
    Spawn {
        run,
        argv: argv.iter().map(|argument| string((*argument).to_owned())).collect(),
        env: vec![c"PATH=/usr/bin:/bin:/usr/sbin:/sbin".into(), string(format!("CARILLON_RUN_ID={run}"))],
        dir: c"/".into(),
        dir_or_root: false,
        stdin: None,
        user: None,
        timeout: None,
        kill_grace: Duration::from_secs(10),
    }
}

/// A run of a bash script.
pub fn script(text: &str) -> Spawn {
    argv(["bash", "-c", text])
}

/// Starts a run without a receiver of its live output.
pub fn start(keeper: &KeeperHandle, spawn: Spawn) -> RunningChild {
    keeper.spawn(spawn, Live::unheard())
}

/// Starts a run and waits for its end.
pub async fn finish(keeper: &KeeperHandle, spawn: Spawn) -> Exit {
    start(keeper, spawn).exit().await
}

/// An exit's output as text.
pub fn text(exit: &Exit) -> &str {
    std::str::from_utf8(&exit.output).unwrap()
}

/// A FIFO that processes hold open: it tells when they are there, and when the last of them is dead.
pub struct Witness {
    directory: tempfile::TempDir,
    fifo: File,
    read: String,
}

impl Witness {
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let fifo = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        Self { directory, fifo, read: String::new() }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("fifo")
    }

    fn poll(&self, patience: Duration) -> bool {
        let mut fds = [PollFd::new(self.fifo.as_fd(), PollFlags::POLLIN)];
        loop {
            // The runtime catches SIGCHLD, on whichever thread it arrives.
            match poll(&mut fds, PollTimeout::try_from(patience).unwrap()) {
                Err(nix::errno::Errno::EINTR) => {}
                ready => return ready.unwrap() > 0,
            }
        }
    }

    /// The next line that a process wrote.
    pub fn line(&mut self) -> String {
        loop {
            if let Some((line, rest)) = self.read.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.read = rest;
                return line;
            }
            assert!(self.poll(PATIENCE), "no process has come to the FIFO");
            let mut bytes = [0; 4096];
            let length = self.fifo.read(&mut bytes).unwrap();
            assert!(length > 0, "all are dead and no line was written");
            self.read += std::str::from_utf8(&bytes[..length]).unwrap();
        }
    }

    /// Waits until no process holds the FIFO.
    pub fn wait_until_dead(&mut self) {
        let began = Instant::now();
        while !self.ended(PATIENCE) {
            assert!(began.elapsed() < PATIENCE, "somebody is still alive");
        }
    }

    /// Whether no process holds the FIFO.
    pub fn is_dead(&mut self) -> bool {
        while self.poll(Duration::ZERO) {
            if self.ended(Duration::ZERO) {
                return true;
            }
        }
        false
    }

    fn ended(&mut self, patience: Duration) -> bool {
        self.poll(patience) && matches!(self.fifo.read(&mut [0; 65536]), Ok(0))
    }
}

/// A script that ignores SIGTERM and leaves a grandchild behind that does so too, in a session of its own and with init's
/// stand-in as its parent. Both hold the witness; the grandchild writes `up`.
pub fn escaping(witness: &Witness) -> String {
    let fifo = witness.path().display().to_string();
    let inner = format!("trap \"\" TERM HUP INT; exec 9>{fifo}; echo up >&9; while :; do sleep 1000; done");
    format!("trap '' TERM; exec 8>{fifo}; (setsid bash -c '{inner}' &); while :; do sleep 1000; done")
}

/// Sends a signal.
pub fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// Waits until `what` is so, in a loop, because /proc does not report changes.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A number in one of the files of /proc/PID, e.g. ("status", "VmRSS:").
pub fn proc_number(pid: u32, file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// Says loudly that a test could not be made here.
pub fn skip(why: &str) {
    // Not through the macros, which tests capture.
    let _unheard = std::io::stderr().write_all(format!("\n\nSKIPPED, NOT TESTED HERE: {why}\n\n").as_bytes());
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Where a run prints to, and what it has printed.
pub fn heard() -> (Live, mpsc::UnboundedReceiver<Vec<u8>>) {
    let (send, printed) = mpsc::unbounded_channel();
    (Live::to(move |bytes| send.send(bytes.to_vec()).unwrap_or_default()), printed)
}
