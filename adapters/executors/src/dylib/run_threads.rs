//! The runs of one loaded plugin in this process, which is a host process or the server. Each has a thread.
//!
//! Threads wait a while for the next run before they end, so that short runs do not pay for making one. As long as runs wait, one
//! thread is on its way to them. It calls the next thread before it begins. So a run that ends at once leaves its thread to others, and
//! no run ever waits for the end of another.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::fcntl::{OFlag, open};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::stat::{Mode, fstat};

use crate::dylib::abi_input::AbiInput;
use crate::dylib::call::{Port, call};
use crate::dylib::frames::Report;
use crate::dylib::library::Library;
use carillon_keeper::boottime_ms;

/// The stack of a plugin's thread, in bytes; as much as the main thread of a program has.
pub(crate) const STACK_BYTES: usize = 8 << 20;
/// How long a thread waits for another run before it ends.
const IDLE: Duration = Duration::from_secs(5);
/// Interrupts system calls of a run that has to stop. Its default action is to do nothing.
const WAKE: Signal = Signal::SIGURG;

/// Receives the events of runs. Called on the threads of runs.
pub(crate) trait RunEvents: Send + Sync + 'static {
    /// The plugin is about to be called for this run.
    fn begun(&self, key: u64);
    /// Takes output whole, or answers an errno value. May block.
    fn output(&self, key: u64, bytes: &[u8]) -> Result<(), i32>;
    /// The run ended.
    fn ended(&self, key: u64, report: Report);
    /// One run ended and the next one begins, on one thread.
    fn ended_and_begun(&self, ended: u64, report: Report, begun: u64) {
        self.ended(ended, report);
        self.begun(begun);
    }
}

/// A plugin and its runs. Clones are the same.
pub(crate) struct RunThreads<S>(Arc<PoolState<S>>);

struct PoolState<S> {
    library: Library,
    sink: S,
    state: Mutex<State>,
    work: Condvar,
    /// Wakes [`RunThreads::wait_for_run`].
    busy: Condvar,
    /// `None` in the server: there, threads of the plugin cannot be told from the server's own.
    threads: Option<PluginThreads>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<QueuedCall>,
    going: BTreeMap<u64, Arc<ActiveCall>>,
    /// The run that has been alone since it began, when the plugin had no threads: if it has some later, they are this
    /// run's.
    alone: Option<u64>,
    threads: usize,
    /// Threads without a run.
    idle: usize,
    /// How many of them are told to come.
    called: usize,
    /// New threads that have not begun yet.
    starting: usize,
    closed: bool,
    /// A thread is in [`RunThreads::wait_for_run`].
    watcher_waits: bool,
}

struct QueuedCall {
    key: u64,
    lease_ms: u64,
    facts: AbiInput,
    going: Arc<ActiveCall>,
}

/// A run that was begun and is not over.
#[derive(Default)]
struct ActiveCall {
    stop: Arc<AtomicBool>,
    /// The thread that it is on; 0 as long as it waits for one.
    thread: AtomicI32,
}

impl<S: RunEvents> RunThreads<S> {
    /// Nothing runs yet. With `threads`, runs are told which of them left some behind.
    pub(crate) fn new(library: Library, sink: S, threads: Option<PluginThreads>) -> nix::Result<Self> {
        // Without SA_RESTART: it is there to interrupt.
        let wake = SigAction::new(SigHandler::Handler(on_wake), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(WAKE, &wake) }?;
        Ok(Self(Arc::new(PoolState {
            library,
            sink,
            state: Mutex::default(),
            work: Condvar::new(),
            busy: Condvar::new(),
            threads,
        })))
    }

    /// Queues a run. The plugin is not called for it if CLOCK_BOOTTIME has reached `lease_ms` by then.
    pub(crate) fn begin(&self, key: u64, lease_ms: u64, facts: AbiInput) {
        let going = Arc::new(ActiveCall::default());
        let mut state = self.0.state();
        state.alone = (state.going.is_empty() && self.0.plugin_has_no_threads(&state)).then_some(key);
        state.going.insert(key, going.clone());
        // A notification is a system call, so an awake watcher must not cost one for each run.
        if std::mem::take(&mut state.watcher_waits) {
            self.0.busy.notify_one();
        }
        state.waiting.push_back(QueuedCall { key, lease_ms, facts, going });
        self.0.see_to_waiting(state);
    }

    /// Asks a run to stop, and interrupts its system call. Does nothing if the run ended.
    pub(crate) fn cancel(&self, key: u64) {
        let state = self.0.state();
        let Some(going) = state.going.get(&key) else { return };
        going.stop.store(true, Ordering::Relaxed);
        let thread = going.thread.load(Ordering::Relaxed);
        if thread != 0 {
            // SAFETY: takes numbers. The thread is still in the run: it leaves it under the lock that is held here.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, WAKE as i32) };
        }
    }

    /// Blocks until a run is active. For one watcher thread.
    pub(crate) fn wait_for_run(&self) {
        let mut state = self.0.state();
        while state.going.is_empty() {
            state.watcher_waits = true;
            state = self.0.busy.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many threads there are for runs, and how many runs go on.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.0.state();
        (state.threads, state.going.len())
    }
}

impl<S> Drop for RunThreads<S> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.work.notify_all();
    }
}

impl<S> PoolState<S> {
    /// No code of a plugin runs while the lock is held, so what is behind it is whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: RunEvents> PoolState<S> {
    /// Wakes or starts a thread for the next queued run, if no thread is coming.
    fn see_to_waiting(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.waiting.is_empty() || state.called + state.starting > 0 {
            return;
        }
        if state.idle > 0 {
            state.called += 1;
            drop(state);
            self.work.notify_one();
            return;
        }
        let shared = self.clone();
        let thread = std::thread::Builder::new().name("plugin-run".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn(move || shared.work()) {
            Ok(_) => (state.threads, state.starting) = (state.threads + 1, state.starting + 1),
            Err(error) => {
                let waiting = std::mem::take(&mut state.waiting);
                waiting.iter().for_each(|task| drop(state.going.remove(&task.key)));
                drop(state);
                for task in waiting {
                    self.sink.ended(task.key, Report::failed(format!("there is no thread for it: {error}")));
                }
            }
        }
    }

    /// The life of a thread.
    fn work(self: &Arc<Self>) {
        // SAFETY: always.
        let thread = unsafe { libc::gettid() };
        let mut state = self.state();
        state.starting -= 1;
        while let Some(mut task) = self.await_task(state) {
            self.sink.begun(task.key);
            loop {
                let (key, report) = (task.key, self.run(task, thread));
                let (report, next) = self.end(key, report);
                let Some(next) = next else {
                    self.sink.ended(key, report);
                    break;
                };
                self.sink.ended_and_begun(key, report, next.key);
                task = next;
            }
            state = self.state();
        }
    }

    /// The next run; `None` when the thread is to end.
    fn await_task(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Option<QueuedCall> {
        while state.waiting.is_empty() && !state.closed {
            state.idle += 1;
            let not_called = |state: &mut State| state.called == 0 && !state.closed;
            let (woken, waited) =
                self.work.wait_timeout_while(state, IDLE, not_called).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() {
                break;
            }
            state.called = state.called.saturating_sub(1);
        }
        let task = state.waiting.pop_front();
        if task.is_none() {
            state.threads -= 1;
        }
        self.see_to_waiting(state);
        task
    }

    /// Calls the plugin on this thread.
    fn run(self: &Arc<Self>, task: QueuedCall, thread: libc::pid_t) -> Report {
        let QueuedCall { key, lease_ms, facts, going } = task;
        going.thread.store(thread, Ordering::Relaxed);
        let shared = self.clone();
        let write = Box::new(move |bytes: &[u8]| shared.sink.output(key, bytes));
        match boottime_ms() < lease_ms {
            true => call(&self.library, key, &facts, Port { stop: going.stop.clone(), write }),
            false => Report::LeaseOver,
        }
    }

    /// A run is over: its report, and what this thread goes on with at once.
    fn end(self: &Arc<Self>, key: u64, report: Report) -> (Report, Option<QueuedCall>) {
        let mut state = self.state();
        // Under the lock nothing else begins, so that what is looked for can only be of this run.
        let left = self.threads.as_ref().filter(|_| state.alone == Some(key));
        let left = left.map_or(0, |threads| threads.left_behind(state.threads));
        state.going.remove(&key);
        let next = if left == 0 { state.waiting.pop_front() } else { None };
        self.see_to_waiting(state);
        (report.leaving(left), next)
    }

    fn plugin_has_no_threads(&self, state: &State) -> bool {
        self.threads.as_ref().is_some_and(|threads| threads.glance(state.threads) == 0)
    }
}

extern "C" fn on_wake(_signal: i32) {}

/// The host's own: the main thread, and that of [`crate::dylib::host::process`]'s watch.
const OF_THE_HOST: usize = 2;
/// How long a thread may take to end after the run that started it.
const GRACE: Duration = Duration::from_millis(200);
/// Before it is looked for again, doubled up to the longest: where the machine is short of CPU, there are as many looks.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// Links that a directory has without directories in it.
const BARE: usize = 2;

/// The threads of this process.
pub(crate) struct PluginThreads(OwnedFd);

impl PluginThreads {
    /// `None` if the system does not tell of them.
    pub(crate) fn new() -> Option<Self> {
        open("/proc/self/task", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok().map(Self)
    }

    /// The number of the plugin's own threads, without the `for_runs` threads of ours. It costs one system call: each
    /// thread is a directory, and counts as a link. A plugin that closes handles that are not its own makes this any number.
    pub(crate) fn glance(&self, for_runs: usize) -> usize {
        let links = fstat(&self.0).map_or(0, |found| usize::try_from(found.st_nlink).unwrap_or(0));
        links.saturating_sub(BARE + OF_THE_HOST + for_runs)
    }

    /// Counts the threads that a run left behind: all threads after the run, without the `for_runs` threads of ours. The
    /// plugin must have had none before. Waits up to [`GRACE`], because a joined thread may still exist for a moment.
    pub(crate) fn left_behind(&self, for_runs: usize) -> usize {
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

/// The number of the plugin's own threads, without the `for_runs` threads of ours. Too slow to call for each run.
pub(crate) fn of_the_plugin(for_runs: usize) -> usize {
    threads().map_or(0, |all| all.saturating_sub(OF_THE_HOST + for_runs))
}

fn threads() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name stands in parentheses and may hold anything.
    text[text.rfind(')')? + 1..].split_ascii_whitespace().nth(17)?.parse().ok()
}
