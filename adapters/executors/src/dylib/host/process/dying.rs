//! The last message of a host that crashes or exits: the run in which it happened.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::dylib::call;
use crate::dylib::frames::dying_frame;

const CRASHES: [Signal; 7] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGABRT, Signal::SIGTRAP, Signal::SIGSYS];

/// The pipe to the server.
static WORDS: AtomicI32 = AtomicI32::new(-1);

/// Crashes say where they happened, and then look like crashes. To be called before the plugin is loaded, which may have
/// handlers of its own; then no run is reported.
pub(crate) fn tell_of_crashes(words: RawFd) -> nix::Result<()> {
    WORDS.store(words, Ordering::Relaxed);
    // On the other stack that Rust gives to each of its threads: the crash may be an overflow of the first.
    let flags = SaFlags::SA_ONSTACK | SaFlags::SA_NODEFER;
    on_crash(&SigAction::new(SigHandler::Handler(crashed), flags, SigSet::empty()))
}

/// Crashes look like crashes: Rust's own handlers, which explain an overflow of the stack, would turn a SIGSEGV into a
/// SIGABRT.
pub(crate) fn crash_plainly() -> nix::Result<()> {
    on_crash(&SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty()))
}

fn on_crash(action: &SigAction) -> nix::Result<()> {
    // SAFETY: the handler does only what a handler may.
    CRASHES.into_iter().try_for_each(|signal| unsafe { sigaction(signal, action) }.map(drop))
}

/// `exit` says where it happened. To be called after the plugin is loaded, so that it comes first. The plugin's own handlers of exit are
/// left out: they could crash, or never end.
pub(crate) fn tell_of_exits() {
    // SAFETY: the function may be called at any time.
    unsafe { libc::atexit(exiting) };
}

/// The first thread that crashes reports it before the process ends. A second crash in that time comes here too.
extern "C" fn crashed(signal: i32) {
    say();
    // SAFETY: both may be called in a handler. The disposition is the default one then, and the signal is not blocked: this ends
    // the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn exiting() {
    say();
}

fn say() {
    let frame = dying_frame(call::current());
    // SAFETY: write is async-signal-safe; the frame is on the stack, and short enough to be written at once or not at all.
    unsafe { libc::write(WORDS.load(Ordering::Relaxed), frame.as_ptr().cast(), frame.len()) };
}
