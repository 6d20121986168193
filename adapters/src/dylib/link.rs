//! The server's side of one host process: what it is told to do, and what becomes of it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use carillon_domain::id::RunId;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};

use super::MOST_RUNS;
use super::discovery::Plugin;
use super::image::path_of;
use super::prints;
use super::slots::{End, Slots};
use super::stage::Sink;
use super::verdict::{HostEnd, Killed};
use super::wire::{Facts, Order, Word, next_frame};
use crate::executor::{Ended, Exit, LANG, PATH, Stop};
use crate::keeper::{KeeperHandle, RunningChild, Spawn};

/// Runs after which a host makes room for a fresh one: what a plugin leaks does not add up for ever.
const RUNS_IN_ALL: u64 = 100_000;
/// Read from the pipe at a time.
const READ_BYTES: usize = 64 << 10;

/// Why there is no host: a sentence, and whether it is for the plugin's own fault ([`Ended::Failed`]) or for the lease or
/// the keeper ([`Ended::Lost`]).
pub(super) type NotStarted = (Ended, String);

fn failed(sentence: String) -> NotStarted {
    (Ended::Failed, sentence)
}

/// A host process that is ready, or was.
pub(super) struct HostLink {
    keeper: KeeperHandle,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    slots: Arc<Slots>,
    /// Whether it takes new runs.
    open: AtomicBool,
    begun: AtomicU64,
    kill: watch::Sender<Option<Killed>>,
    end: OnceLock<Arc<HostEnd>>,
}

impl HostLink {
    /// Starts a host and waits until it has loaded the plugin. `on_end` is called when it has
    /// ended, before its runs are told, unless this failed.
    pub(super) async fn start(
        plugin: &Plugin,
        keeper: &KeeperHandle,
        on_end: impl FnOnce(&HostEnd) + Send + 'static,
    ) -> Result<Arc<Self>, NotStarted> {
        let cannot = |error: io::Error| failed(format!("a pipe to its process cannot be made: {error}"));
        let (orders_end, orders) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
        let (words, words_end) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
        let (orders_end, words_end) = (File::from(orders_end), File::from(words_end));
        let (print, printed) = mpsc::channel(prints::CHUNKS_WAITING);
        let spawn = spawn(plugin, &path_of(&orders_end), &path_of(&words_end)).map_err(failed)?;
        let mut child = keeper.spawn(spawn, print);
        tokio::spawn(prints::log(plugin.description.name.clone(), printed));
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
        let (name, limit) = (plugin.description.name.clone(), plugin.host.memory_bytes);
        tokio::spawn(Supervisor { link: link.clone(), child, words, name, limit }.supervise(on_end));
        Ok(link)
    }

    /// Begins a run. `None` if the host takes no more: the run is to go elsewhere.
    pub(super) fn begin(
        &self,
        facts: &Facts,
        live: mpsc::Sender<Vec<u8>>,
        kill_grace: Duration,
    ) -> Option<Result<(u64, oneshot::Receiver<End>), String>> {
        if !self.open.load(Ordering::SeqCst) || self.slots.len() >= MOST_RUNS {
            return None;
        }
        let key = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if key >= RUNS_IN_ALL {
            self.open.store(false, Ordering::SeqCst);
        }
        let order = Order::Run { key, lease_ms: self.keeper.deadline_ms(), facts: facts.clone() };
        let frame = match order.encode() {
            Ok(frame) => frame,
            Err(sentence) => return Some(Err(sentence)),
        };
        let told = self.slots.enter(key, live, kill_grace);
        // If the host has ended meanwhile, nobody is there any more who would tell this run of it.
        match self.end.get() {
            Some(end) => self.slots.end_all(end),
            None => drop(self.orders.send(frame)),
        }
        Some(Ok((key, told)))
    }

    /// Tells a run that it is to stop. May be said again.
    pub(super) fn cancel(&self, key: u64) {
        if let Ok(frame) = Order::Cancel(key).encode() {
            let _ = self.orders.send(frame);
        }
    }

    /// A run did not stop: nothing new comes here, and the process is killed when the others are done, at the latest when
    /// as much time has passed as the most patient of them has to stop.
    pub(super) fn give_up(self: &Arc<Self>, key: u64) {
        self.open.store(false, Ordering::SeqCst);
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
        self.open.store(false, Ordering::SeqCst);
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

    fn end_if_done(&self) {
        if !self.is_open() && self.slots.all_given_up() {
            let why = if self.slots.len() == 0 { Killed::Retired } else { Killed::NotStopped };
            self.kill(why);
        }
    }

    /// The first reason stays.
    fn kill(&self, why: Killed) {
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

/// Writes what is queued, as much at a time as there is. A host that is gone is the supervisor's business.
async fn write_orders(mut pipe: pipe::Sender, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut bytes = Vec::new();
    while let Some(frame) = queue.recv().await {
        bytes.clear();
        bytes.extend_from_slice(&frame);
        while let Some(frame) = queue.try_recv().ok().filter(|_| bytes.len() < READ_BYTES) {
            bytes.extend_from_slice(&frame);
        }
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Follows a host to its end.
struct Supervisor {
    link: Arc<HostLink>,
    child: RunningChild,
    words: Words,
    name: String,
    limit: u64,
}

impl Supervisor {
    async fn supervise(mut self, on_end: impl FnOnce(&HostEnd) + Send) {
        let mut kill = self.link.kill.subscribe();
        let mut last = LastWords::default();
        let exit = loop {
            tokio::select! {
                // What has been said comes first: an end may be only the end of the process, not of its runs.
                biased;
                read = self.words.read(), if !self.words.closed => {
                    let heard = read.and_then(|()| self.take_in(&mut last));
                    if heard.is_err() {
                        self.words.closed = true;
                        // It has closed its end and lives: nobody can work with it.
                        tokio::select! {
                            exit = self.child.exit() => break exit,
                            () = tokio::time::sleep(Duration::from_millis(100)) => self.link.kill(Killed::Unheard),
                        }
                    }
                }
                exit = self.child.exit() => break exit,
                _ = kill.changed() => self.child.stop(Stop::Now),
            }
        };
        self.what_is_there(&mut last).await;
        self.link.open.store(false, Ordering::SeqCst);
        let end = Arc::new(self.end(exit, &last));
        on_end(&end);
        let _ = self.link.end.set(end.clone());
        self.link.slots.end_all(&end);
    }

    /// Takes in the words that have come. An error if they make no sense.
    fn take_in(&mut self, last: &mut LastWords) -> Result<(), ()> {
        while let Some(word) = self.words.next()? {
            match word {
                Word::Begun(key) => self.link.slots.begun(key),
                Word::Output(key, bytes) => drop(self.link.slots.output(key, &bytes)),
                Word::Ended(key, report) => {
                    self.link.slots.ended(key, report);
                    self.link.end_if_done();
                }
                Word::Dying(key) => last.culprit = Some(key).filter(|key| *key != 0),
                Word::TooMuchMemory => last.too_much_memory = true,
                Word::ThreadsLeft(count) => {
                    let name = &self.name;
                    tracing::warn!("plugin {name} left {count} threads behind when its runs were over; its process is replaced");
                    self.link.retire();
                }
                Word::Ready | Word::Refused(_) => return Err(()),
            }
        }
        Ok(())
    }

    /// What the dead host had said. Whatever it forked is dead too, so the pipe has an end.
    async fn what_is_there(&mut self, last: &mut LastWords) {
        while !self.words.closed {
            let read = tokio::time::timeout(Duration::from_secs(1), self.words.read()).await;
            if !matches!(read, Ok(Ok(()))) || self.take_in(last).is_err() {
                self.words.closed = true;
            }
        }
    }

    fn end(&self, exit: Exit, last: &LastWords) -> HostEnd {
        HostEnd {
            plugin: self.name.clone(),
            exit,
            culprit: last.culprit,
            beyond_bytes: last.too_much_memory.then_some(self.limit),
            killed: *self.link.kill.borrow(),
        }
    }
}

/// What a host said before it ended.
#[derive(Default)]
struct LastWords {
    culprit: Option<u64>,
    too_much_memory: bool,
}

/// The pipe from a host, and what of it is not a whole frame yet.
struct Words {
    pipe: pipe::Receiver,
    bytes: Vec<u8>,
    closed: bool,
}

impl Words {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        // More room than usual, so that a burst of output waits for nobody. A refusal leaves the usual.
        // SAFETY: takes numbers.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, 256 << 10) };
        Ok(Self { pipe: pipe::Receiver::from_owned_fd(pipe)?, bytes: Vec::with_capacity(READ_BYTES), closed: false })
    }

    /// Reads once; an error when nothing will come any more. Cancel safe.
    async fn read(&mut self) -> Result<(), ()> {
        self.bytes.reserve(READ_BYTES);
        match self.pipe.read_buf(&mut self.bytes).await {
            Ok(0) | Err(_) => Err(()),
            Ok(_) => Ok(()),
        }
    }

    /// The next whole word.
    fn next(&mut self) -> Result<Option<Word>, ()> {
        let Some((body, used)) = next_frame(&self.bytes).map_err(|_| ())? else { return Ok(None) };
        let word = Word::decode(body).map_err(|_| ())?;
        self.bytes.drain(..used);
        Ok(Some(word))
    }

    /// The first word; an error if none comes.
    async fn first(&mut self) -> Result<Word, String> {
        loop {
            match self.next().map_err(|()| "its process says nonsense".to_owned())? {
                // The exit, which comes next, says more.
                Some(Word::Dying(_)) => continue,
                Some(word) => return Ok(word),
                None => {}
            }
            if self.read().await.is_err() {
                // The exit, which comes next, says more.
                std::future::pending::<()>().await;
            }
        }
    }
}
