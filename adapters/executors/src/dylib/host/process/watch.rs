//! The thread that watches a host process: its memory, and the threads that runs left behind.
//!
//! It blocks while the plugin can execute nothing, so an idle host causes no wake-ups.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use super::leave;
use super::serve::MessagePipe;
use crate::dylib::frames::HostMessage;
use crate::dylib::run_threads::{RunThreads, of_the_plugin};

/// The pause between two looks. A plugin can fill about 100 MB in that time on an idle machine.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// This many looks in a row must agree. A thread may be ending during one look, and the counts of one look may be of
/// different moments.
const LOOKS_IN_A_ROW: u32 = 10;

/// Starts the thread. It reports left threads, and ends the process if that holds more than `memory_bytes`.
pub(crate) fn start(
    runs: Arc<RunThreads<Arc<MessagePipe>>>,
    words: Arc<MessagePipe>,
    memory_bytes: u64,
) -> io::Result<()> {
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok());
    let page_bytes = page_bytes.unwrap_or(4096);
    let watch = move || {
        let (mut with_threads, mut idle) = (0, 0);
        loop {
            std::thread::sleep(LOOK_EVERY);
            if resident_pages().is_some_and(|pages| pages.saturating_mul(page_bytes) > memory_bytes) {
                words.say(&HostMessage::TooMuchMemory);
                leave(1);
            }
            let left = threads_left(&runs);
            with_threads = if left > Some(0) { with_threads + 1 } else { 0 };
            idle = if left == Some(0) { idle + 1 } else { 0 };
            if with_threads == LOOKS_IN_A_ROW {
                words.say(&HostMessage::ThreadsLeft(u32::try_from(left.unwrap_or(0)).unwrap_or(u32::MAX)));
            }
            if idle == LOOKS_IN_A_ROW {
                // The plugin has neither a run nor a thread, so it can neither fill memory nor start a thread.
                runs.wait_for_run();
                idle = 0;
            }
        }
    };
    std::thread::Builder::new().name("plugin-watch".to_owned()).stack_size(64 << 10).spawn(watch).map(drop)
}

/// The resident memory of this process. `None` if the system does not report it.
fn resident_pages() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The number of threads that belong to the plugin and to no run. `None` while a run is active: they may be its threads.
fn threads_left(runs: &RunThreads<Arc<MessagePipe>>) -> Option<usize> {
    let (for_runs, active) = runs.counts();
    (active == 0).then(|| of_the_plugin(for_runs))
}
