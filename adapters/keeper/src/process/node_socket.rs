//! The keeper's end of the socket to the node. It never blocks and holds a bounded amount of bytes.
//!
//! Exits must arrive, live output need not: chunks are dropped while [`LIVE_BYTES`] wait to be sent. Should even exits
//! pile up, no further commands are read until the node takes them; a node that never does loses its lease.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use carillon_domain::id::RunId;
use nix::sys::epoll::EpollFlags;

use crate::protocol::fields::BadFrame;
use crate::protocol::fields::next_frame;
use crate::protocol::frames::{Command, MAX_FRAME_BYTES, Report};

/// Live output is dropped while more than this waits to be sent.
const LIVE_BYTES: usize = 256 << 10;
/// Commands are not read while more than this waits to be sent.
const BACKLOG_BYTES: usize = 64 << 20;
/// Taken from the socket at a time.
const READ_BYTES: usize = 64 << 10;

pub(crate) struct Link {
    socket: UnixStream,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    gone: bool,
}

impl Link {
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, input: Vec::new(), taken: 0, output: Vec::new(), sent: 0, gone: false })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether the node has closed its end, or cannot be understood.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Nothing sent by the node is of interest any more, not even what has already arrived.
    pub(crate) fn set_gone(&mut self) {
        self.gone = true;
        self.input.clear();
        self.taken = 0;
    }

    /// The events to wait for on the socket.
    pub(crate) fn interest(&self) -> EpollFlags {
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP, !self.gone && self.may_read());
        flags.set(EpollFlags::EPOLLOUT, self.unsent() > 0);
        flags
    }

    fn may_read(&self) -> bool {
        self.unsent() < BACKLOG_BYTES && self.input.len() - self.taken <= MAX_FRAME_BYTES
    }

    fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Reads what the node sent, a bounded piece of it.
    pub(crate) fn receive(&mut self) {
        if self.gone || !self.may_read() {
            return;
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        let length = self.input.len();
        self.input.resize(length + READ_BYTES, 0);
        let read = self.socket.read(&mut self.input[length..]);
        self.input.truncate(length + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.set_gone(),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => self.set_gone(),
            _ => {}
        }
    }

    /// The next command that has arrived whole.
    pub(crate) fn next_command(&mut self) -> Result<Option<Command>, BadFrame> {
        let Some((body, used)) = next_frame(&self.input[self.taken..], MAX_FRAME_BYTES)? else { return Ok(None) };
        let command = Command::decode(body)?;
        self.taken += used;
        Ok(Some(command))
    }

    /// Queues a report that must arrive.
    pub(crate) fn report(&mut self, report: &Report) {
        report.encode(&mut self.output);
    }

    /// Queues live output, or drops it.
    pub(crate) fn report_live(&mut self, run: RunId, bytes: &[u8]) {
        if self.unsent() < LIVE_BYTES {
            Report::encode_chunk(run, bytes, &mut self.output);
        }
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self) {
        while self.unsent() > 0 {
            match self.socket.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.sent = self.output.len();
                    self.set_gone();
                }
            }
        }
        if self.sent >= self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        if self.output.is_empty() && self.output.capacity() > 2 * LIVE_BYTES {
            self.output = Vec::new();
        }
    }
}
