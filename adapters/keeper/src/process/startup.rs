//! The start of the keeper process: inherited descriptors, signals, limits and cgroups.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use carillon_domain::guard::{Guard, enabled};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{chdir, pipe2, setsid};

use crate::process::cgroup::Cgroups;
use crate::process::event_loop::Keeper;
use crate::process::frozen_node::Node;
use crate::process::launch::child::LaunchContext;
use crate::process::launch::cradle::Cradles;
use crate::process::launch::files::make_room;
use crate::process::node_socket::Link;
use crate::process::run_supervisor::Runs;
use crate::protocol::frames::Report;

/// The argument that stands for "no lock", "no cgroups" and "the node is not to be killed".
pub(crate) const NONE: &str = "-";
/// The argument that stands for "cgroups, where possible".
pub(crate) const CGROUPS: &str = "cgroups";

/// The whole life of a keeper process. The hidden subcommand `keeper` calls this with the arguments that
/// [`crate::KeeperHandle::start`] wrote after its name. Must run before the process has a second thread. Exit code 0 when the node is
/// gone and all children are reaped. 2 for bad arguments, 1 if the keeper could not do its work.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Some(Inherited { socket, lock, cgroups, kill_node_after_ms }) = inherited(&arguments) else {
        complain("is started by `carillon serve`, not by hand");
        return ExitCode::from(2);
    };
    let _lock = lock.filter(|_| enabled(Guard::KeeperHolds));
    match come_up(socket, cgroups, kill_node_after_ms).and_then(|mut keeper| Ok(keeper.serve()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot go on: {error}; its runs end with it"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to stderr. `eprintln` would panic if the reader is gone.
fn complain(sentence: &str) {
    let _ = writeln!(io::stderr(), "carillon keeper {sentence}");
}

/// The arguments from the node.
struct Inherited {
    socket: OwnedFd,
    /// Must outlive the last child.
    lock: Option<OwnedFd>,
    cgroups: bool,
    kill_node_after_ms: Option<u64>,
}

fn inherited(arguments: &[OsString]) -> Option<Inherited> {
    let [socket, lock, cgroups, kill_node_after_ms] = arguments else { return None };
    let socket = inherited_fd(socket)?;
    let lock = if lock == NONE { None } else { Some(inherited_fd(lock)?) };
    let kill_node_after_ms = match kill_node_after_ms.to_str()? {
        NONE => None,
        ms => Some(ms.parse().ok()?),
    };
    Some(Inherited { socket, lock, cgroups: cgroups == CGROUPS, kill_node_after_ms })
}

fn inherited_fd(argument: &OsString) -> Option<OwnedFd> {
    let number: RawFd = std::str::from_utf8(argument.as_bytes()).ok()?.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: asks about a number; when it is no open descriptor the answer is an error.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and nothing else in this process owns it: it was inherited for this purpose.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(fd)
}

fn come_up(socket: OwnedFd, cgroups: bool, kill_node_after_ms: Option<u64>) -> io::Result<Keeper> {
    // Out of the terminal's reach: its Ctrl-C goes to the whole foreground group. Already done when a node started us.
    let _ = setsid();
    chdir("/")?;
    prctl::set_name(c"carillon-keeper")?;
    prctl::set_child_subreaper(true)?;
    // Other users' runs share this memory until their exec.
    prctl::set_dumpable(false)?;
    let lends_files = close_on_exec();
    hear_children_only()?;
    let children = SignalFd::with_flags(&child_signal(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let (failures, failures_writer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let files = raise_file_limit()?;
    make_room(&failures);
    let place = LaunchContext {
        failures: failures_writer,
        null: std::fs::File::open("/dev/null")?.into(),
        keeper_pid: std::process::id().cast_signed(),
        files,
        lends_files,
        cradles: Cradles::default(),
    };
    let mut link = Link::new(UnixStream::from(socket))?;
    let cgroups = match if cgroups { Cgroups::open() } else { Err("switched off".to_owned()) } {
        Ok(cgroups) => Some(cgroups),
        Err(why) => {
            link.report(&Report::Note(format!("runs get no cgroups: {why}; leftovers are looked for in /proc")));
            None
        }
    };
    let node = kill_node_after_ms.map(Node::parent);
    if node.as_ref().is_some_and(Node::is_init) {
        let why = "it is process 1 of its container; give that an init";
        link.report(&Report::Note(format!("a frozen node with plugins in it could not be ended: {why}")));
    }
    let root = cgroups.as_ref().map(|cgroups| cgroups.root().as_os_str().as_bytes().to_vec());
    link.report(&Report::Ready { cgroup: root.unwrap_or_default() });
    let epoll = Rc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?);
    let runs = Runs::new(epoll.clone(), place, failures.into(), cgroups);
    Ok(Keeper::new(epoll, link, children, runs, node)?)
}

/// Marks everything that was inherited, so that no child ever gets it. Whether there is such a call: kernels before 5.11
/// refuse, and the two descriptors that matter are marked already.
fn close_on_exec() -> bool {
    // SAFETY: only sets a flag on descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 }
}

/// Blocks every signal and gives each its default. Blocked ones wait for ever. Children unblock all of them before exec, and so start
/// with every disposition at its default without a call for each. (Rust ignores SIGPIPE, a caller like nohup may have ignored others,
/// and an ignored signal stays so across exec. A handler must not run in a child, whose memory is the keeper's.)
fn hear_children_only() -> io::Result<()> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
    for signal in 1..=libc::SIGRTMAX() {
        // A kernel sigaction of zeros is the default. Raw, because libc hides signals 32 and 33.
        let default = [0_usize; 8];
        // SAFETY: it is longer than the struct and valid. SIGKILL and SIGSTOP, which cannot be changed, give an error,
        // which changes nothing.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null_mut::<usize>(), 8) };
    }
    Ok(())
}

fn child_signal() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals
}

/// A thousand runs need several thousand descriptors. Returns the limit as it was, for the children.
fn raise_file_limit() -> io::Result<libc::rlimit> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let raised = libc::rlimit { rlim_cur: found.rlim_max, ..found };
    // SAFETY: the struct is valid. A refusal leaves the limit as it was: then fewer runs fit at a time.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    Ok(found)
}

/// In the node, between fork and exec of the keeper: lets it inherit `fds`, and takes it out of the terminal's reach.
pub(crate) fn before_exec(fds: &[RawFd]) -> io::Result<()> {
    // SAFETY: system calls on numbers only.
    unsafe {
        libc::setsid();
        for fd in fds {
            if libc::fcntl(*fd, libc::F_SETFD, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// The arguments that [`main`] expects.
pub(crate) fn arguments(
    socket: &UnixStream,
    lock: Option<&OwnedFd>,
    cgroups: bool,
    kill_node_after: Option<Duration>,
) -> [String; 4] {
    let lock = lock.map_or(NONE.to_owned(), |lock| lock.as_raw_fd().to_string());
    let kill_node_after_ms = kill_node_after.map_or(NONE.to_owned(), |after| after.as_millis().to_string());
    [socket.as_raw_fd().to_string(), lock, if cgroups { CGROUPS } else { NONE }.to_owned(), kill_node_after_ms]
}
