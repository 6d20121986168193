//! Following one host process to its end: what it says, and what becomes of it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::discovery::Plugin;
use super::link::HostLink;
use super::stage::Sink;
use super::verdict::{HostEnd, Killed};
use super::wire::{MAX_FRAME_BYTES, Report, UNHEARD, Word};
use crate::executor::{Exit, Stop};
use carillon_keeper::RunningChild;
use carillon_keeper::fields::next_frame;

/// Read from the pipe at a time, in bytes.
const READ_BYTES: usize = 64 << 10;
/// What the pipe may hold before a host that says more has to wait, in bytes.
const PIPE_BYTES: libc::c_int = 256 << 10;
/// How long after its last word a process may still be there; then it is not ending.
const ENDING: Duration = Duration::from_millis(100);

/// Follows a host to its end.
pub(super) struct Supervisor {
    pub(super) link: Arc<HostLink>,
    pub(super) child: RunningChild,
    pub(super) words: Words,
    pub(super) plugin: Arc<Plugin>,
}

impl Supervisor {
    /// Returns when the process is gone; `on_end` is told before its runs are.
    pub(super) async fn supervise(mut self, on_end: impl FnOnce(&HostEnd) + Send) {
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
            self.link.slots.ended(key, report);
        }
        self.link.ended(end);
    }

    /// Takes in the words that have come. An error if they make no sense.
    fn take_in(&mut self, last: &mut LastWords) -> Result<(), ()> {
        while let Some(word) = self.words.next()? {
            match word {
                Word::Begun(key) => self.link.slots.begun(key),
                Word::Output(key, bytes) => drop(self.link.slots.output(key, &bytes)),
                Word::Ended(key, report) if report.threads_left() > 0 => {
                    self.replace_for_threads(report.threads_left());
                    if self.link.slots.len() > 1 {
                        self.link.slots.ended(key, report);
                    } else {
                        // Its code goes on: it is over when the process is.
                        last.report = Some((key, report));
                        self.link.kill(Killed::Retired);
                    }
                }
                Word::Ended(key, report) => {
                    self.link.slots.ended(key, report);
                    self.link.end_if_done();
                }
                Word::Dying(key) => (last.dying, last.culprit) = (true, Some(key).filter(|key| *key != 0)),
                Word::TooMuchMemory => last.too_much_memory = true,
                Word::ThreadsLeft(count) => {
                    self.replace_for_threads(count);
                    self.link.end_if_done();
                }
                Word::Ready | Word::Refused(_) => return Err(()),
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

    /// What the dead host had said. Whatever it forked is dead too, so the pipe has an end.
    async fn what_is_there(&mut self, last: &mut LastWords) {
        while !self.words.closed {
            let read = tokio::time::timeout(Duration::from_secs(1), self.words.read()).await;
            if !matches!(read, Ok(Ok(()))) || self.take_in(last).is_err() {
                self.words.closed = true;
            }
        }
    }

    fn end(&self, mut exit: Exit, last: &LastWords) -> HostEnd {
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

/// What a host said before it ended.
#[derive(Default)]
struct LastWords {
    dying: bool,
    culprit: Option<u64>,
    too_much_memory: bool,
    /// Of a run that left threads behind, which end with the host.
    report: Option<(u64, Report)>,
}

/// The pipe from a host, and what of it is not a whole frame yet.
pub(super) struct Words {
    pipe: pipe::Receiver,
    bytes: Vec<u8>,
    /// How many of the bytes are taken.
    taken: usize,
    closed: bool,
}

impl Words {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        // More room than usual, so that a burst of output waits for nobody. A refusal leaves the usual.
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
    fn next(&mut self) -> Result<Option<Word>, ()> {
        let bytes = &self.bytes[self.taken..];
        let Some((body, used)) = next_frame(bytes, MAX_FRAME_BYTES).map_err(|_| ())? else { return Ok(None) };
        let word = Word::decode(body).map_err(|_| ())?;
        self.taken += used;
        Ok(Some(word))
    }

    /// The first word; an error if none comes.
    pub(super) async fn first(&mut self) -> Result<Word, String> {
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
