//! Process 1 of a container.
//!
//! The kernel gives it every orphan of the container, and whoever does not wait for them gathers zombies. It also hears no signal that
//! it has no handler for, SIGKILL from within included, so a frozen node could not be ended. So a server that finds itself to be
//! process 1 starts the real one as its child, and stays behind as the smallest of inits.

use std::mem::MaybeUninit;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// Splits process 1 in two. `None` in every process that is to go on: the child, and one that is not process 1. Must be called before
/// a second thread runs.
pub fn split() -> Option<ExitCode> {
    if std::process::id() != 1 {
        return None;
    }
    let mut former = SigSet::empty();
    // Before the fork: no signal may fall between it and the first wait.
    if sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut former)).is_err() {
        return None;
    }
    // SAFETY: this process has one thread, so the child may do whatever its parent may.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => Some(attend(child)),
        // A server alone is better than none.
        Ok(ForkResult::Child) | Err(_) => {
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&former), None);
            None
        }
    }
}

/// Hands on signals and buries the dead until the server has ended; its exit code is this one's.
fn attend(server: Pid) -> ExitCode {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the set and the struct are valid; the struct is written before the call returns a signal.
        let number = unsafe { libc::sigwaitinfo(SigSet::all().as_ref(), info.as_mut_ptr()) };
        if number == libc::SIGCHLD {
            if let Some(code) = bury(server) {
                return ExitCode::from(code);
            }
            continue;
        }
        // A positive code is the kernel's. It sends a terminal's Ctrl-C to the whole group, and so to the server too.
        // SAFETY: sigwaitinfo has written it, since it returned a signal.
        let by_a_process = number > 0 && unsafe { info.assume_init().si_code } <= 0;
        if let (true, Ok(signal)) = (by_a_process, Signal::try_from(number)) {
            let _ = kill(server, signal);
        }
    }
}

/// Waits for all who have ended. The server's exit code if it is among them; 128 and the number of the signal that killed it, as a
/// shell would say.
fn bury(server: Pid) -> Option<u8> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == server => return Some(code as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == server => return Some(128 + signal as u8),
            Ok(WaitStatus::StillAlive) => return None,
            // Process 1 without a child: the server cannot come back.
            Err(Errno::ECHILD) => return Some(1),
            Ok(_) | Err(_) => {}
        }
    }
}
