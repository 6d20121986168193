//! Which threads of a host process are the plugin's own: those that are neither the host's nor there for runs.

use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

/// The host's own: the main thread, and that of [`super::host`]'s watch.
const OF_THE_HOST: usize = 2;
/// How long a thread may take to end after the run that started it.
const GRACE: Duration = Duration::from_millis(200);
/// Before it is looked for again, doubled up to the longest: where the machine is short of CPU, there are as many looks.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// Links that a directory has without directories in it.
const BARE: usize = 2;

/// The threads of this process.
pub(super) struct Threads(OwnedFd);

impl Threads {
    /// `None` if the system does not tell of them.
    pub(super) fn new() -> Option<Self> {
        open("/proc/self/task", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok().map(Self)
    }

    /// How many the plugin has, beside so many that are there for runs. At the price of one system call: each thread is
    /// a directory, and counts as a link. A plugin that closes handles that are not its own makes this any number.
    pub(super) fn glance(&self, for_runs: usize) -> usize {
        let links = fstat(&self.0).map_or(0, |found| usize::try_from(found.st_nlink).unwrap_or(0));
        links.saturating_sub(BARE + OF_THE_HOST + for_runs)
    }

    /// How many threads are left when a run is over that began when the plugin had none, beside so many that are there for
    /// runs. Waits a while for those that are about to end: who has joined a thread may go on before it is gone.
    pub(super) fn left_behind(&self, for_runs: usize) -> usize {
        if self.glance(for_runs) == 0 {
            return 0;
        }
        let mut waited = Duration::ZERO;
        let mut pause = FIRST_PAUSE;
        loop {
            let left = of_the_plugin(for_runs);
            if left == 0 || waited >= GRACE {
                return left;
            }
            std::thread::sleep(pause);
            waited += pause;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

/// How many the plugin has, beside so many that are there for runs. Too dear to be asked for each run.
pub(super) fn of_the_plugin(for_runs: usize) -> usize {
    threads().map_or(0, |all| all.saturating_sub(OF_THE_HOST + for_runs))
}

fn threads() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name stands in parentheses and may hold anything.
    text[text.rfind(')')? + 1..].split_ascii_whitespace().nth(17)?.parse().ok()
}
