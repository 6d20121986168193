//! A host that runs its plugin. It reads commands from one pipe and writes messages to another.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};

use super::{dying, leave, watch};
use crate::dylib::MOST_RUNS;
use crate::dylib::frames::{CHUNK_BYTES, HostCommand, HostMessage, MAX_FRAME_BYTES, Report, UNHEARD};
use crate::dylib::library::Library;
use crate::dylib::run_threads::{PluginThreads, RunEvents, RunThreads, STACK_BYTES};
use carillon_keeper::protocol::fields::next_frame;

/// Read from the pipe at a time.
const READ_BYTES: usize = 64 << 10;

/// Runs the plugin until the server closes the pipe. Returns only if it could not begin.
pub(crate) fn serve(image: &Path, orders: &Path, words: &Path, memory_bytes: u64) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("a pipe to the server cannot be opened: {error}");
    let words = MessagePipe(OpenOptions::new().write(true).open(words).map_err(cannot)?);
    let orders = File::open(orders).map_err(cannot)?;
    let no_signals = |error: Errno| format!("signals cannot be set up: {error}");
    dying::tell_of_crashes(words.0.as_raw_fd()).map_err(no_signals)?;
    limit_memory(memory_bytes);
    write_lines();
    let library = match Library::load(image) {
        Ok(library) => library,
        Err(reason) => {
            words.say(&HostMessage::Refused(reason));
            leave(1)
        }
    };
    dying::tell_of_exits();
    words.say(&HostMessage::Ready);
    let words = Arc::new(words);
    let stage = Arc::new(RunThreads::new(library, words.clone(), PluginThreads::new()).map_err(no_signals)?);
    watch::start(stage.clone(), words, memory_bytes).map_err(|error| format!("there is no second thread: {error}"))?;
    obey(orders, &stage)
}

/// Ends with the pipe: the server is gone, or has closed it to end the host, or the plugin has closed it.
fn obey(mut orders: File, stage: &RunThreads<Arc<MessagePipe>>) -> ! {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match orders.read(&mut buffer) {
            // The plugin may have put another file in its place, whose end says nothing of the server.
            Ok(0) => leave(if is_pipe(&orders) { 0 } else { UNHEARD }),
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => leave(UNHEARD),
        }
        let mut taken = 0;
        while let Ok(Some((body, used))) = next_frame(&bytes[taken..], MAX_FRAME_BYTES) {
            match HostCommand::decode(body) {
                Ok(HostCommand::Run { key, lease_ms, facts }) => stage.begin(key, lease_ms, facts),
                Ok(HostCommand::Cancel(key)) => stage.cancel(key),
                // Both ends are the same binary: somebody else has written into the pipe, or into this memory.
                Err(_) => leave(UNHEARD),
            }
            taken += used;
        }
        bytes.drain(..taken);
    }
}

fn is_pipe(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// The pipe to the server. Many threads write to it without a lock: each word is one write that the kernel does not split.
pub(crate) struct MessagePipe(File);

impl MessagePipe {
    /// Writes a message. A host that cannot write ends.
    pub(crate) fn say(&self, word: &HostMessage) {
        self.write_or_leave(&word.encode());
    }

    fn write_or_leave(&self, frames: &[u8]) {
        if self.write(frames).is_err() {
            leave(UNHEARD);
        }
    }

    fn write(&self, frame: &[u8]) -> Result<(), i32> {
        loop {
            // SAFETY: the bytes are those of a slice.
            match Errno::result(unsafe { libc::write(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len()) }) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error as i32),
            }
        }
    }
}

impl RunEvents for Arc<MessagePipe> {
    fn begun(&self, key: u64) {
        self.say(&HostMessage::Begun(key));
    }

    fn output(&self, key: u64, bytes: &[u8]) -> Result<(), i32> {
        bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| self.write(&HostMessage::output_frame(key, chunk)))
    }

    fn ended(&self, key: u64, report: Report) {
        self.say(&HostMessage::Ended(key, report));
    }

    fn ended_and_begun(&self, ended: u64, report: Report, begun: u64) {
        let mut frames = HostMessage::Ended(ended, report).encode();
        HostMessage::Begun(begun).put(&mut frames);
        self.write_or_leave(&frames);
    }
}

/// Far beyond the limit that [`watch`] holds, so that what grows too fast for it finds an end as well. Stacks count here
/// whether they are used or not.
fn limit_memory(memory_bytes: u64) {
    let stacks = (MOST_RUNS * STACK_BYTES) as u64;
    let limit = memory_bytes.saturating_mul(2).saturating_add(stacks);
    // A refusal leaves the limit that the server has.
    let _ = setrlimit(Resource::RLIMIT_DATA, limit, limit);
}

/// Makes stdout line buffered: the server's log gets lines, and stdio would buffer a pipe in blocks.
fn write_lines() {
    unsafe extern "C" {
        static mut stdout: *mut libc::FILE;
    }
    // SAFETY: the process has one thread, and nothing was printed yet.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
}
