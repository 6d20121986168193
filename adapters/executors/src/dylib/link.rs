//! The server's side of one host process: what it is told to do, and what becomes of it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use carillon_domain::id::RunId;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::MOST_RUNS;
use super::discovery::Plugin;
use super::facts::Facts;
use super::image::path_of;
use super::prints;
use super::slots::{End, Entry, Slots, Told};
use super::supervisor::{Supervisor, Words};
use super::verdict::{HostEnd, Killed, NotStarted};
use super::wire::{Order, Word};
use crate::executor::{Ended, LANG, PATH};
use carillon_keeper::{KeeperHandle, Spawn};

/// Runs after which a host makes room for a fresh one: what a plugin leaks does not add up for ever.
const RUNS_IN_ALL: u64 = 1_000_000;
/// Written to the pipe at a time, in bytes; a frame may be longer.
const WRITE_BYTES: usize = 64 << 10;

fn failed(sentence: String) -> NotStarted {
    (Ended::Failed, sentence)
}

/// A host process that is ready, or was.
pub(super) struct HostLink {
    keeper: KeeperHandle,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    pub(super) slots: Arc<Slots>,
    /// Whether it takes new runs.
    open: AtomicBool,
    begun: AtomicU64,
    pub(super) kill: watch::Sender<Option<Killed>>,
    end: OnceLock<Arc<HostEnd>>,
}

impl HostLink {
    /// Starts a host and waits until it has loaded the plugin. `on_end` is called when it has
    /// ended, before its runs are told, unless this failed.
    pub(super) async fn start(
        plugin: &Arc<Plugin>,
        keeper: &KeeperHandle,
        on_end: impl FnOnce(&HostEnd) + Send + 'static,
    ) -> Result<Arc<Self>, NotStarted> {
        let cannot = |error: io::Error| failed(format!("a pipe to its process cannot be made: {error}"));
        let (orders_end, orders) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
        let (words, words_end) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
        let (orders_end, words_end) = (File::from(orders_end), File::from(words_end));
        let spawn = spawn(plugin, &path_of(&orders_end), &path_of(&words_end)).map_err(failed)?;
        let mut child = keeper.spawn(spawn, prints::to_log(plugin.description.name.clone()));
        let mut words = Words::new(words).map_err(cannot)?;
        let first = tokio::select! {
            biased;
            first = words.first() => first.map_err(failed)?,
            exit = child.exit() => {
                let how = exit.how;
                let end = HostEnd { killed: None, culprit: None, beyond_bytes: None, plugin: String::new(), exit };
                return Err((how, format!("it {}", end.why())));
            }
            () = tokio::time::sleep(plugin.host.inspect_timeout) => {
                return Err(failed(format!("loading it took longer than {:?}", plugin.host.inspect_timeout)));
            }
        };
        match first {
            Word::Ready => {}
            Word::Refused(reason) => return Err(failed(reason)),
            _ => return Err(failed("its process says nonsense".to_owned())),
        }
        // The host has opened both; from now on each pipe is closed when the other side is gone.
        drop((orders_end, words_end));
        let (queue, queued) = mpsc::unbounded_channel();
        tokio::spawn(write_orders(pipe::Sender::from_owned_fd(orders).map_err(cannot)?, queued));
        let link = Arc::new(Self {
            keeper: keeper.clone(),
            orders: queue,
            slots: Arc::default(),
            open: AtomicBool::new(true),
            begun: AtomicU64::new(0),
            kill: watch::Sender::new(None),
            end: OnceLock::new(),
        });
        let supervisor = Supervisor { link: link.clone(), child, words, plugin: plugin.clone() };
        tokio::spawn(supervisor.supervise(on_end));
        Ok(link)
    }

    /// Begins a run and answers its key. Gives it back if the host takes no more: it is to go elsewhere.
    pub(super) fn begin<T: Into<Told>>(&self, facts: &Facts, entry: Entry<T>) -> Result<u64, Entry<T>> {
        if !self.open.load(Ordering::SeqCst) || self.slots.len() >= MOST_RUNS {
            return Err(entry);
        }
        let key = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if key >= RUNS_IN_ALL {
            self.close();
        }
        let frame = match Order::run_frame(key, self.keeper.deadline_ms(), facts) {
            Ok(frame) => frame,
            Err(sentence) => {
                entry.told.into().tell(End::NotStarted(failed(sentence)));
                return Ok(key);
            }
        };
        self.slots.enter(key, entry);
        // If the host has ended meanwhile, nobody is there any more who would tell this run of it.
        match self.end.get() {
            Some(end) => self.slots.end_all(end),
            None => drop(self.orders.send(frame)),
        }
        Ok(key)
    }

    /// The process is gone: nothing new comes here, and every run is told.
    pub(super) fn ended(&self, end: HostEnd) {
        let end = Arc::new(end);
        let _ = self.end.set(end.clone());
        self.slots.end_all(&end);
    }

    /// Nothing new comes here.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Tells a run that it is to stop. May be said again.
    pub(super) fn cancel(&self, key: u64) {
        let _ = self.orders.send(Order::cancel_frame(key));
    }

    /// A run did not stop: nothing new comes here, and the process is killed when the others are done, at the latest when
    /// as much time has passed as the most patient of them has to stop.
    pub(super) fn give_up(self: &Arc<Self>, key: u64) {
        self.close();
        match self.slots.give_up(key) {
            None => self.kill(Killed::NotStopped),
            Some(patience) => {
                let link = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(patience).await;
                    link.kill(Killed::NotStopped);
                });
            }
        }
    }

    /// Nothing new comes here; the process is ended when its runs are done.
    pub(super) fn retire(&self) {
        self.close();
        self.end_if_done();
    }

    /// Whether it takes new runs.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Whether its process is gone.
    pub(super) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Ends a host that takes no more runs and has none left that will end by itself.
    pub(super) fn end_if_done(&self) {
        if !self.is_open() && self.slots.all_given_up() {
            let why = if self.slots.len() == 0 { Killed::Retired } else { Killed::NotStopped };
            self.kill(why);
        }
    }

    /// Kills the process. The first reason stays.
    pub(super) fn kill(&self, why: Killed) {
        self.kill.send_if_modified(|killed| killed.replace(why).map(|first| *killed = Some(first)).is_none());
    }
}

/// The process of a plugin, as a child of the keeper. It is no run; no session has its id.
fn spawn(plugin: &Plugin, orders: &std::path::Path, words: &std::path::Path) -> Result<Spawn, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| "its path holds a NUL character".to_owned());
    let path = |path: PathBuf| string(path.into_os_string().into_encoded_bytes());
    Ok(Spawn {
        run: RunId::from_parts(u64::MAX, NEXT.fetch_add(1, Ordering::Relaxed)),
        argv: vec![
            path(plugin.host.program.clone())?,
            string(super::SUBCOMMAND.into())?,
            c"serve".to_owned(),
            path(plugin.image.path())?,
            path(orders.to_owned())?,
            path(words.to_owned())?,
            string(plugin.host.memory_bytes.to_string().into_bytes())?,
        ],
        env: vec![string(format!("PATH={PATH}").into_bytes())?, string(format!("LANG={LANG}").into_bytes())?],
        dir: c"/".to_owned(),
        dir_or_root: false,
        stdin: None,
        user: None,
        timeout: None,
        kill_grace: Duration::ZERO,
    })
}

/// Writes what is queued, as much at a time as there is. Whoever is about to begin a run as well goes first: many that begin
/// together are one write, and wake the host once. A host that is gone is the supervisor's business.
async fn write_orders(mut pipe: pipe::Sender, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut bytes = Vec::new();
    while let Some(frame) = queue.recv().await {
        tokio::task::yield_now().await;
        bytes.clear();
        bytes.extend_from_slice(&frame);
        while bytes.len() < WRITE_BYTES
            && let Ok(frame) = queue.try_recv()
        {
            bytes.extend_from_slice(&frame);
        }
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
