//! Starts one host process, reads its messages, and follows it to its end.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carillon_domain::id::RunId;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::exit_reason::{HostEnd, Killed, NotStarted};
use super::link::HostLink;
use super::printed;
use crate::dylib::catalog::Plugin;
use crate::dylib::catalog::image::path_of;
use crate::dylib::frames::{HostMessage, MAX_FRAME_BYTES, Report, UNHEARD};
use crate::dylib::run_threads::RunEvents;
use crate::executor::{Exit, LANG, Outcome, PATH, Stop};
use carillon_keeper::protocol::fields::next_frame;
use carillon_keeper::{KeeperHandle, RunningChild, Spawn};

/// Read from the pipe at a time, in bytes.
const READ_BYTES: usize = 64 << 10;
/// The capacity of the pipe, in bytes; a host that says more has to wait.
const PIPE_BYTES: libc::c_int = 256 << 10;
/// How long after its last word a process may still be there; then it is not ending.
const ENDING: Duration = Duration::from_millis(100);

/// Written to the pipe at a time, in bytes; a frame may be longer.
const WRITE_BYTES: usize = 64 << 10;

fn failed(sentence: String) -> NotStarted {
    (Outcome::Failed, sentence)
}

/// Starts a host and waits until it has loaded the plugin. `on_end` is called when it has
/// ended, before its runs are told, unless this failed.
pub(crate) async fn start(
    plugin: &Arc<Plugin>,
    keeper: &KeeperHandle,
    on_end: impl FnOnce(&HostEnd) + Send + 'static,
) -> Result<Arc<HostLink>, NotStarted> {
    let cannot = |error: io::Error| failed(format!("a pipe to its process cannot be made: {error}"));
    let (orders_end, orders) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
    let (words, words_end) = pipe2(OFlag::O_CLOEXEC).map_err(|error| cannot(error.into()))?;
    let (orders_end, words_end) = (File::from(orders_end), File::from(words_end));
    let spawn = spawn(plugin, &path_of(&orders_end), &path_of(&words_end)).map_err(failed)?;
    let mut child = keeper.spawn(spawn, printed::to_log(plugin.description.name.clone()));
    let mut words = MessageReader::new(words).map_err(cannot)?;
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
        HostMessage::Ready => {}
        HostMessage::Refused(reason) => return Err(failed(reason)),
        _ => return Err(failed("its process sent an invalid message".to_owned())),
    }
    // The host has opened both; from now on each pipe is closed when the other side is gone.
    drop((orders_end, words_end));
    let (queue, queued) = mpsc::unbounded_channel();
    tokio::spawn(write_orders(pipe::Sender::from_owned_fd(orders).map_err(cannot)?, queued));
    let link = HostLink::new(keeper, queue);
    let supervisor = Supervisor { link: link.clone(), child, words, plugin: plugin.clone() };
    tokio::spawn(supervisor.supervise(on_end));
    Ok(link)
}

/// Follows a host to its end.
pub(crate) struct Supervisor {
    pub(crate) link: Arc<HostLink>,
    pub(crate) child: RunningChild,
    pub(crate) words: MessageReader,
    pub(crate) plugin: Arc<Plugin>,
}

impl Supervisor {
    /// Returns when the process is gone; `on_end` is told before its runs are.
    pub(crate) async fn supervise(mut self, on_end: impl FnOnce(&HostEnd) + Send) {
        let mut kill = self.link.kill.subscribe();
        let mut last = LastMessages::default();
        let exit = loop {
            tokio::select! {
                // Words come first: an end may be only the end of the process, not of its runs.
                biased;
                read = self.words.read(), if !self.words.closed => {
                    let heard = read.and_then(|()| self.take_in(&mut last));
                    if heard.is_err() {
                        self.words.closed = true;
                        // It closed its end of the pipe and lives, so it is of no more use.
                        tokio::select! {
                            exit = self.child.exit() => break exit,
                            () = tokio::time::sleep(ENDING) => self.link.kill(Killed::Unheard),
                        }
                    }
                }
                exit = self.child.exit() => break exit,
                _ = kill.changed() => self.child.stop(Stop::Now),
            }
        };
        self.what_is_there(&mut last).await;
        self.link.close();
        let end = self.end(exit, &last);
        on_end(&end);
        if let Some((key, report)) = last.report {
            self.link.runs.ended(key, report);
        }
        self.link.ended(end);
    }

    /// Takes in the words that have come. An error if they make no sense.
    fn take_in(&mut self, last: &mut LastMessages) -> Result<(), ()> {
        while let Some(word) = self.words.next()? {
            match word {
                HostMessage::Begun(key) => self.link.runs.begun(key),
                HostMessage::Output(key, bytes) => drop(self.link.runs.output(key, &bytes)),
                HostMessage::Ended(key, report) if report.threads_left() > 0 => {
                    self.replace_for_threads(report.threads_left());
                    if self.link.runs.len() > 1 {
                        self.link.runs.ended(key, report);
                    } else {
                        // Its code goes on: it is over when the process is.
                        last.report = Some((key, report));
                        self.link.kill(Killed::Retired);
                    }
                }
                HostMessage::Ended(key, report) => {
                    self.link.runs.ended(key, report);
                    self.link.end_if_done();
                }
                HostMessage::Dying(key) => (last.dying, last.culprit) = (true, Some(key).filter(|key| *key != 0)),
                HostMessage::TooMuchMemory => last.too_much_memory = true,
                HostMessage::ThreadsLeft(count) => {
                    self.replace_for_threads(count);
                    self.link.end_if_done();
                }
                HostMessage::Ready | HostMessage::Refused(_) => return Err(()),
            }
        }
        Ok(())
    }

    /// Nothing new goes to a process in which the plugin has threads of its own.
    fn replace_for_threads(&self, count: u32) {
        self.link.close();
        // Once is enough: a plugin that keeps threads does so every time.
        if !self.plugin.left_threads.swap(true, Ordering::Relaxed) {
            let name = &self.plugin.description.name;
            tracing::warn!(
                "plugin {name} has threads that belong to no run, {count} now; its process is replaced each time"
            );
        }
    }

    /// The last words of the dead host. Everything that it forked is dead too, so the pipe has an end.
    async fn what_is_there(&mut self, last: &mut LastMessages) {
        while !self.words.closed {
            let read = tokio::time::timeout(Duration::from_secs(1), self.words.read()).await;
            if !matches!(read, Ok(Ok(()))) || self.take_in(last).is_err() {
                self.words.closed = true;
            }
        }
    }

    fn end(&self, mut exit: Exit, last: &LastMessages) -> HostEnd {
        // Where the plugin calls exit, that was said.
        let unheard = exit.exit_code == Some(UNHEARD.into()) && !last.dying;
        if unheard {
            self.link.kill(Killed::Unheard);
        }
        if unheard || last.too_much_memory {
            // The code is the host's own, and tells nothing of the plugin.
            exit.exit_code = None;
        }
        HostEnd {
            plugin: self.plugin.description.name.clone(),
            exit,
            culprit: last.culprit,
            beyond_bytes: last.too_much_memory.then_some(self.plugin.host.memory_bytes),
            killed: *self.link.kill.borrow(),
        }
    }
}

/// The last words of a host.
#[derive(Default)]
struct LastMessages {
    dying: bool,
    culprit: Option<u64>,
    too_much_memory: bool,
    /// Of a run that left threads behind, which end with the host.
    report: Option<(u64, Report)>,
}

/// The pipe from a host, and what of it is not a whole frame yet.
pub(crate) struct MessageReader {
    pipe: pipe::Receiver,
    bytes: Vec<u8>,
    /// How many of the bytes are taken.
    taken: usize,
    closed: bool,
}

impl MessageReader {
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        // A larger pipe, so that a burst of output need not wait. If the system refuses, the default size stays.
        // SAFETY: takes numbers.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Self { pipe, bytes: Vec::with_capacity(READ_BYTES), taken: 0, closed: false })
    }

    /// Reads once; an error when nothing will come any more. Cancel safe.
    async fn read(&mut self) -> Result<(), ()> {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.reserve(READ_BYTES);
        match self.pipe.read_buf(&mut self.bytes).await {
            Ok(0) | Err(_) => Err(()),
            Ok(_) => Ok(()),
        }
    }

    /// The next whole word.
    fn next(&mut self) -> Result<Option<HostMessage>, ()> {
        let bytes = &self.bytes[self.taken..];
        let Some((body, used)) = next_frame(bytes, MAX_FRAME_BYTES).map_err(|_| ())? else { return Ok(None) };
        let word = HostMessage::decode(body).map_err(|_| ())?;
        self.taken += used;
        Ok(Some(word))
    }

    /// The first word; an error if none comes.
    pub(crate) async fn first(&mut self) -> Result<HostMessage, String> {
        loop {
            match self.next().map_err(|()| "its process sent an invalid message".to_owned())? {
                // The exit, which comes next, says more.
                Some(HostMessage::Dying(_)) => continue,
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

/// The process of a plugin, as a child of the keeper. It is no run; no session has its id.
fn spawn(plugin: &Plugin, orders: &std::path::Path, words: &std::path::Path) -> Result<Spawn, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| "its path holds a NUL character".to_owned());
    let path = |path: PathBuf| string(path.into_os_string().into_encoded_bytes());
    Ok(Spawn {
        run: RunId::from_parts(u64::MAX, NEXT.fetch_add(1, Ordering::Relaxed)),
        argv: vec![
            path(plugin.host.program.clone())?,
            string(crate::dylib::SUBCOMMAND.into())?,
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

/// Writes queued frames, as many as there are in one write. It yields first, so that runs which begin together share one
/// write and wake the host once. On an error it ends: the supervisor notices that the host is gone.
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
