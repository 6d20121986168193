//! Plugins directories, and the plugins in them.

use std::fs::{Permissions, set_permissions};
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::time::Timestamp;
use carillon_executors::dylib::{Change, DylibExecutor, Folder, Host, Plugin, Refused};
use carillon_executors::execution::Execution;
use carillon_executors::executor::{Executor, Exit, HostState, Isolation, Live, RunFacts};
use carillon_keeper::KeeperHandle;
use serde_json::{Value, json};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::support::{heard, text};

/// A plugin in C that is in order, but for what the test puts into `run`.
pub const WHOLE: &str = r#"
    #include <fcntl.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    #include "carillon_plugin.h"
    static void run(const carillon_run *run, carillon_result *result) { (void)run; (void)result; BODY }
    static const carillon_plugin plugin = {
        CARILLON_ABI_VERSION, sizeof plugin, "fixture", "1.0", NULL, run
    };
    const carillon_plugin *carillon_plugin_init(uint32_t host) { (void)host; return &plugin; }
"#;

/// A plugins directory of its own.
pub struct Directory(tempfile::TempDir);

impl Directory {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        Self(directory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles C into a library.
    pub fn compile(&self, name: &str, source: &str) -> PathBuf {
        let file = self.path().join(name);
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/sdk/include");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O0", "-w", "-x", "c", "-", "-o"]).arg(&file).arg("-I").arg(include);
        let mut compiler = compiler.stdin(Stdio::piped()).spawn().unwrap();
        compiler.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        assert!(compiler.wait().unwrap().success(), "{name} does not compile");
        set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// Compiles [`WHOLE`] with a body for `run`.
    pub fn compile_run(&self, name: &str, body: &str) -> PathBuf {
        self.compile(name, &WHOLE.replace("BODY", body))
    }

    /// The plugin `noop`, which cargo built into the directory of this binary.
    pub fn add_noop(&self, name: &str) -> PathBuf {
        let built = std::env::current_exe().unwrap().with_file_name("libcarillon_noop.so");
        let file = self.path().join(name);
        std::fs::copy(built, &file).unwrap();
        set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// The findings of a first look.
    pub fn discover(&self) -> Vec<Result<Plugin, Refused>> {
        discover(self.path(), &host())
    }

    /// The only plugin, as an executor.
    pub fn executor(&self, keeper: &KeeperHandle, isolation: Isolation) -> Arc<DylibExecutor> {
        let mut found = self.discover();
        assert_eq!(found.len(), 1);
        executor(found.remove(0).unwrap(), keeper, isolation)
    }
}

/// Where code may run.
pub const BOTH_WAYS: [Isolation; 2] = [Isolation::Process, Isolation::InProcess];

/// The findings of a first look in a directory.
pub fn discover(directory: &Path, host: &Host) -> Vec<Result<Plugin, Refused>> {
    let changes = Folder::new(directory, host.clone()).look().into_iter();
    let found = changes.map(|change| match change {
        Change::Found(plugin) => Ok(plugin),
        Change::Refused(refused) => Err(refused),
        Change::Gone(name) => panic!("{name} was not there"),
    });
    found.collect()
}

pub fn executor(plugin: Plugin, keeper: &KeeperHandle, isolation: Isolation) -> Arc<DylibExecutor> {
    match isolation {
        Isolation::Process => Arc::new(DylibExecutor::in_hosts(plugin, keeper.clone())),
        Isolation::InProcess => Arc::new(DylibExecutor::in_process(plugin, keeper.clone()).unwrap()),
    }
}

/// This binary as the host of plugins, named as a server names itself.
pub fn host() -> Host {
    Host { inspect_timeout: Duration::from_secs(30), ..Host::new("/proc/self/exe") }
}

/// An executor for a plugin in C with this body of `run`.
pub fn fixture(keeper: &KeeperHandle, isolation: Isolation, body: &str) -> Arc<DylibExecutor> {
    let directory = Directory::new();
    directory.compile_run("fixture.so", body);
    directory.executor(keeper, isolation)
}

/// The same in a host process.
pub fn hosted(keeper: &KeeperHandle, body: &str) -> Arc<DylibExecutor> {
    fixture(keeper, Isolation::Process, body)
}

/// The executor `noop`. Its file is gone when this returns.
pub fn noop(keeper: &KeeperHandle, isolation: Isolation) -> Arc<DylibExecutor> {
    let directory = Directory::new();
    directory.add_noop("noop.so");
    directory.executor(keeper, isolation)
}

/// The facts of the next run.
pub fn facts(params: Value) -> RunFacts {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    RunFacts {
        run_id: RunId::from_parts(std::process::id().into(), NEXT.fetch_add(1, Ordering::Relaxed)),
        namespace: "default".to_owned(),
        job: "try".to_owned(),
        due_at: Timestamp::from_ms(1_800_000_000_123),
        attempt: 2,
        fencing_token: u64::MAX - 1,
        timeout: None,
        kill_grace: Duration::from_secs(10),
        trace: None,
        params: params.into(),
    }
}

/// Runs to the end without a stop.
pub async fn run_to_end(executor: &Arc<DylibExecutor>, facts: RunFacts) -> Exit {
    follow(executor, facts, Live::unheard(), CancellationToken::new()).await
}

/// Runs to the end as in the server: by itself, until it is to stop.
pub async fn follow(executor: &Arc<DylibExecutor>, facts: RunFacts, live: Live, stop: CancellationToken) -> Exit {
    let (tell, mut told) = oneshot::channel();
    let execution = Execution::start(executor.clone(), facts, live, |exit| drop(tell.send(exit)));
    tokio::select! {
        biased;
        exit = &mut told => return exit.unwrap(),
        () = stop.cancelled() => execution.stop(),
    }
    told.await.unwrap()
}

/// Writes its process id; then does what params ask for, or waits until it is to stop.
pub fn broken(body: &str) -> String {
    format!(
        r#"
        char line[64];
        run->write(run->host, line, (size_t)snprintf(line, sizeof line, "%d\n", getpid()));
        if (strstr(run->params_json, "break")) {{ {body} }}
        while (strstr(run->params_json, "wait") && !run->cancelled(run->host)) usleep(1000);
        result->status = CARILLON_SUCCEEDED;
        "#
    )
}

pub fn asking(what: &str) -> RunFacts {
    facts(json!({ what: true }))
}

/// Waits until a process is gone, as the kernel tells it.
pub async fn until_gone(pid: u32) {
    // SAFETY: pidfd_open takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return;
    }
    // SAFETY: the kernel just made this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) };
    // SAFETY: the descriptor is owned by what is registered, and open as long as that is.
    let ended = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.unwrap();
    let _ready = ended.readable().await.unwrap();
}

/// The process that a run was in.
pub fn pid(exit: &Exit) -> u32 {
    text(exit).lines().next().unwrap().parse().unwrap()
}

/// A run that waits, and its first words, which it says when it is there.
pub async fn waiting(
    executor: &Arc<DylibExecutor>,
    facts: RunFacts,
    stop: CancellationToken,
    there: &watch::Sender<bool>,
) -> Exit {
    let (live, mut output) = heard();
    let heard = async {
        output.recv().await.unwrap();
        there.send_replace(true);
    };
    tokio::join!(follow(executor, facts, live, stop), heard).0
}

pub async fn wait_for(there: &watch::Sender<bool>) {
    there.subscribe().wait_for(|there| *there).await.unwrap();
}

/// How its process is.
pub fn state(executor: &Arc<DylibExecutor>) -> Option<HostState> {
    executor.description().plugin.unwrap().host
}
