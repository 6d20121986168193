//! Signals and zombies, in the few ways that the keeper needs them.

use std::io;

/// A child that has ended and was not reaped yet: its number is still its own.
pub(crate) struct Zombie {
    pub(crate) pid: libc::pid_t,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// Some child that has ended, without reaping it. Raw, because nix refuses a death by a real-time signal.
pub(crate) fn peek_zombie() -> Option<Zombie> {
    loop {
        // SAFETY: a siginfo_t of zeros is valid, the kernel fills it in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is valid for writing.
        let waited = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
        if waited != 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        // SAFETY: waitid fills in these fields, or leaves the pid 0 when no child has ended.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        let exited = info.si_code == libc::CLD_EXITED;
        let zombie = Zombie { pid, exit_code: exited.then_some(status), signal: (!exited).then_some(status) };
        return Some(zombie).filter(|_| waited == 0 && pid > 0);
    }
}

/// Takes a zombie off the process table.
pub(crate) fn reap(pid: libc::pid_t) {
    // SAFETY: a null status is allowed; the child has ended, so this does not wait.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// SIGTERM for a whole group, and SIGCONT so that a stopped one hears it. `pid` is an unreaped child.
pub(crate) fn terminate_group(pid: libc::pid_t) {
    // SAFETY: kill takes numbers; the group is the child's own. Before its setsid there is no group yet: then the child
    // alone gets the signal.
    unsafe {
        if libc::killpg(pid, libc::SIGTERM) != 0 {
            libc::kill(pid, libc::SIGTERM);
        }
        libc::killpg(pid, libc::SIGCONT);
    }
}

/// SIGKILL for a whole group. `pid` is an unreaped child.
pub(crate) fn kill_group(pid: libc::pid_t) {
    // SAFETY: as above.
    unsafe {
        libc::killpg(pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
    }
}
