//! Gives back the memory that only a start needs.
//!
//! A node reads its configuration, its schema and its plugins once, and would keep that program text resident for ever: a fifth of its memory.
//! The kernel maps a page again when it is needed, out of its cache. The C library holds what was freed, and so half a megabyte that SQLite's
//! migrations took.

use std::ptr::NonNull;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::mman::{MmapAdvise, madvise};
use nix::unistd::{SysconfVar, sysconf};
use tokio::time::sleep;
use tracing::debug;

/// When everything has begun that begins with a node.
const AFTER_START: Duration = Duration::from_secs(5);

unsafe extern "C" {
    /// The first byte of the program in memory. The linker defines it.
    static __executable_start: u8;
    /// The byte behind the program's text. Before it lie constants and text, behind it what a process may write to.
    static etext: u8;
}

/// Waits until the start is over, and gives back once.
pub(super) async fn give_back_after_start() {
    sleep(AFTER_START).await;
    if let Err(error) = give_back_text() {
        debug!(%error, "the program text of the start stays in memory");
    }
    #[cfg(target_env = "gnu")]
    give_back_freed();
}

/// Other C libraries have no such call.
#[cfg(target_env = "gnu")]
fn give_back_freed() {
    // SAFETY: it takes the locks of the allocator, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

fn give_back_text() -> nix::Result<()> {
    let (start, end) = (&raw const __executable_start, &raw const etext);
    let length = end.addr() - start.addr();
    let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(Errno::EINVAL)?;
    let whole_pages = length - length % page;
    let start = NonNull::new(start.cast_mut().cast()).ok_or(Errno::EFAULT)?;
    // SAFETY: the range is a read-only mapping of the program's file that nobody writes to, so the next reader finds the same bytes.
    unsafe { madvise(start, whole_pages, MmapAdvise::MADV_DONTNEED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes of this program's text that are mapped.
    fn resident_text() -> u64 {
        let program = std::env::current_exe().expect("a program");
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("its memory");
        let mut of_text = maps
            .lines()
            .skip_while(|line| !(line.contains(" r-xp ") && line.ends_with(program.to_str().expect("a path"))));
        let rss = of_text.find_map(|line| line.strip_prefix("Rss:")).expect("a size");
        kilobytes(rss)
    }

    #[test]
    fn what_the_start_touched_is_given_back() {
        let touched = resident_text();
        give_back_text().expect("to give back");
        let left = resident_text();
        assert!(left < touched, "{left} kB of {touched} kB are left");
    }

    /// The C library gives back by itself only what lies above all that is in use.
    #[cfg(target_env = "gnu")]
    #[test]
    fn what_was_freed_is_given_back() {
        const BLOCK: usize = 4_096;
        let mut blocks: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1; BLOCK]).collect();
        let all = blocks.len();
        let _in_use = blocks.pop();
        drop(blocks);
        let freed = resident_kib();
        give_back_freed();
        let left = resident_kib();
        let half = u64::try_from(all * BLOCK / 1_024 / 2).expect("a small number");
        assert!(left + half < freed, "{left} kB of {freed} kB are left");
    }

    /// Kilobytes of this process that are in memory.
    #[cfg(target_env = "gnu")]
    fn resident_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("its status");
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        kilobytes(rss)
    }

    fn kilobytes(text: &str) -> u64 {
        text.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}
