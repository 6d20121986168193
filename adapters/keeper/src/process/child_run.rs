//! One run in the keeper: its state, and its exit.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::measured::Usage;
use carillon_domain::run::Outcome;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use crate::exit::Exit;
use crate::output::Output;
use crate::process::cgroup::Cgroup;
use crate::process::launch::failure::{LaunchFailure, Names};

/// The most that is read after the end; a pipe holds 64 KiB, or up to 1 MiB if the job asked for that.
const LAST_BYTES: usize = 1 << 20;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is not being stopped.
    Running,
    /// SIGTERM was sent.
    Terminating,
    /// SIGKILL was sent.
    Killed,
    /// The main process has ended; what it left behind is being killed.
    Ending,
}

/// The reading end of a run's output, watched by the loop.
///
/// It removes itself from the epoll. To close it is not enough while a child that hangs before its exec holds a copy: the loop would
/// never be quiet again.
pub(crate) struct Pipe {
    file: File,
    epoll: Rc<Epoll>,
}

impl Pipe {
    /// Watches `fd` under the name `key`. Should that fail, the output is still read at the end, as far as the pipe
    /// holds it.
    pub(crate) fn watch(fd: OwnedFd, key: u64, epoll: &Rc<Epoll>) -> (Self, nix::Result<()>) {
        let watched = epoll.add(&fd, EpollEvent::new(EpollFlags::EPOLLIN, key));
        (Self { file: fd.into(), epoll: epoll.clone() }, watched)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Fails where it was never added.
        let _ = self.epoll.delete(&self.file);
    }
}

pub(crate) struct Run {
    pub(crate) id: RunId,
    /// Main process; also its process group and session.
    pub(crate) pid: i32,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) phase: Phase,
    /// Set while it is being stopped: the outcome, and a sentence with the reason.
    pub(crate) stopped: Option<(Outcome, String)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) kill_grace: Duration,
    /// When [`Phase`] moves on by itself, on CLOCK_BOOTTIME.
    pub(crate) wake_at_ms: Option<u64>,
    /// stdout and stderr, until they are closed by all.
    pub(crate) pipe: Option<Pipe>,
    pub(crate) output: Output,
    /// How the main process ended: exit code or signal.
    pub(crate) end: (Option<i32>, Option<i32>),
    /// The machine that it used, once its main process was reaped.
    pub(crate) usage: Usage,
    /// Why it never became its program, if it did not.
    pub(crate) failure: Option<LaunchFailure>,
    pub(crate) names: Names,
}

impl Run {
    /// Reads once, at most `buffer`. Returns what was read; empty when there is nothing now or the pipe was closed.
    pub(crate) fn read_output<'b>(&mut self, buffer: &'b mut [u8]) -> &'b [u8] {
        let Some(pipe) = &mut self.pipe else { return &[] };
        match pipe.file.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.output.push(&buffer[..length]);
                return &buffer[..length];
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
        &[]
    }

    /// Reads the rest of the pipe after the last writer is gone, and gives each piece to `each`.
    pub(crate) fn drain_output(&mut self, buffer: &mut [u8], mut each: impl FnMut(&[u8])) {
        let mut total = 0;
        while total < LAST_BYTES {
            let bytes = self.read_output(buffer);
            if bytes.is_empty() {
                break;
            }
            total += bytes.len();
            each(bytes);
        }
    }

    /// Notes why the run is being stopped. The first reason stays, but a lost lease is stronger than any.
    pub(crate) fn stop_because(&mut self, how: Outcome, reason: String) {
        if self.stopped.is_none() || how == Outcome::Lost {
            self.stopped = Some((how, reason));
        }
    }

    /// The run's exit.
    pub(crate) fn finish(self) -> Exit {
        let ((exit_code, signal), usage) = (self.end, self.usage);
        let (output, output_truncated) = self.output.finish();
        let (how, reason) = match (self.stopped, self.failure) {
            (Some((how, reason)), _) => (how, Some(reason)),
            (None, Some(failure)) => {
                let (how, reason) = self.names.explain(failure);
                return Exit { output, output_truncated, ..Exit::without_process(how, reason) };
            }
            (None, None) if exit_code == Some(0) => (Outcome::Succeeded, None),
            (None, None) => (Outcome::Failed, None),
        };
        Exit { how, exit_code, signal, reason, output, output_truncated, usage }
    }
}
