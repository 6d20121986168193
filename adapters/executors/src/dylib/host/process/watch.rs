//! The thread that looks after a host: how much memory it holds, and whether runs left threads behind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use super::leave;
use super::serve::Words;
use crate::dylib::frames::Word;
use crate::dylib::run_threads::{RunThreads, of_the_plugin};

/// How often it looks. At the speed of a machine that does nothing else, some 100 MB can be filled in between.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How many looks in a row must find threads without a run: one that is just ending is no fault.
const LOOKS_FOR_THREADS: u32 = 10;

/// Starts the thread. It says what it finds, and ends the process if that holds more than `memory_bytes`.
pub(crate) fn start(stage: Arc<RunThreads<Arc<Words>>>, words: Arc<Words>, memory_bytes: u64) -> io::Result<()> {
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok());
    let page_bytes = page_bytes.unwrap_or(4096);
    let watch = move || {
        let mut looks = 0;
        loop {
            std::thread::sleep(LOOK_EVERY);
            if resident_pages().is_some_and(|pages| pages.saturating_mul(page_bytes) > memory_bytes) {
                words.say(&Word::TooMuchMemory);
                leave(1);
            }
            let left = threads_left(&stage);
            looks = if left > 0 { looks + 1 } else { 0 };
            if looks == LOOKS_FOR_THREADS {
                words.say(&Word::ThreadsLeft(u32::try_from(left).unwrap_or(u32::MAX)));
            }
        }
    };
    std::thread::Builder::new().name("plugin-watch".to_owned()).stack_size(64 << 10).spawn(watch).map(drop)
}

/// What the process holds of the machine's memory; `None` if the system does not say.
fn resident_pages() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// PluginThreads that are neither the host's nor in a run; 0 while runs go on, whose threads they may be.
fn threads_left(stage: &RunThreads<Arc<Words>>) -> usize {
    let (for_runs, going) = stage.counts();
    if going > 0 {
        return 0;
    }
    of_the_plugin(for_runs)
}
