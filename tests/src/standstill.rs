//! Machines that stand still under a test. A node that gets nothing done for seconds ends itself, as it must; a test of something else has lost
//! its node then, and has shown nothing.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A step of a process, or a write to the disk, that takes so long is a standstill: a node may lose its lease over a few of them.
const LONG: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);
const TRIES: usize = 3;

/// Runs a test that needs nodes which keep their leases. If it fails while the machine stood still, it is run again, and says so.
///
/// # Panics
/// As the test does, where the machine did not stand still, or did each time.
pub fn repeated_after_a_standstill(test: impl Fn()) {
    repeated(test, longest_step);
}

fn repeated(test: impl Fn(), watch: impl Fn(&AtomicBool) -> Duration + Sync) {
    for left in (0..TRIES).rev() {
        let done = AtomicBool::new(false);
        let (ended, longest) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&done));
            let ended = catch_unwind(AssertUnwindSafe(&test));
            done.store(true, Ordering::Relaxed);
            (ended, watching.join().expect("the watch goes on"))
        });
        let Err(panic) = ended else { return };
        eprintln!("meanwhile the machine stood still for {longest:?} at the most");
        if left == 0 || longest < LONG {
            resume_unwind(panic);
        }
        eprintln!("so the test is repeated");
    }
}

/// The longest of many small steps, each with a write that must reach the disk.
fn longest_step(done: &AtomicBool) -> Duration {
    // Where the database servers of the tests have their data; temporary files may be in memory.
    let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
    let mut longest = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let begun = Instant::now();
        file.write_all(b".").and_then(|()| file.sync_data()).expect("a byte can be written");
        std::thread::park_timeout(STEP);
        longest = longest.max(begun.elapsed().saturating_sub(STEP));
    }
    longest
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// How often a test is run that fails until its last time, on a machine whose longest step is this; and whether it passed.
    fn runs(until: usize, longest: Duration) -> (usize, bool) {
        let runs = AtomicUsize::new(0);
        let test = || assert!(runs.fetch_add(1, Ordering::Relaxed) + 1 >= until, "not yet");
        let passed = catch_unwind(AssertUnwindSafe(|| repeated(test, |_| longest))).is_ok();
        (runs.into_inner(), passed)
    }

    #[test]
    fn only_a_machine_that_stood_still_gives_another_try() {
        let (still, steady) = (LONG, Duration::from_millis(999));
        assert_eq!(runs(1, still), (1, true));
        assert_eq!(runs(2, steady), (1, false));
        assert_eq!(runs(3, still), (3, true));
        assert_eq!(runs(4, still), (3, false));
    }

    #[test]
    fn the_watch_ends_with_the_test() {
        let done = AtomicBool::new(true);
        assert_eq!(longest_step(&done), Duration::ZERO);
    }
}
