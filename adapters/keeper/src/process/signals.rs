//! Signals and zombies, in the few ways that the keeper needs them.

use std::io;

use carillon_domain::measured::Usage;

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

/// Takes a zombie off the process table. Answers what it used, with all descendants that it and they have waited for.
pub(crate) fn reap(pid: libc::pid_t) -> Usage {
    // SAFETY: a rusage of zeros is valid, the kernel fills it in.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a null status is allowed, `used` is valid for writing; the child has ended, so this does not wait.
    let reaped = unsafe { libc::wait4(pid, std::ptr::null_mut(), libc::WNOHANG, &raw mut used) };
    if reaped == pid { usage(&used) } else { Usage::default() }
}

fn usage(used: &libc::rusage) -> Usage {
    let us = |time: libc::timeval| u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or_default();
    let cpu_ms = Some(whole_ms(us(used.ru_utime) + us(used.ru_stime)));
    Usage { cpu_ms, peak_memory_kib: u64::try_from(used.ru_maxrss).ok() }
}

/// The nearest whole milliseconds.
pub(crate) const fn whole_ms(us: u64) -> u64 {
    us.saturating_add(500) / 1_000
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
