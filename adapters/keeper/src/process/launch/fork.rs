//! clone3, and a fork that puts the child straight into its cgroup.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From `linux/sched.h`: the field `cgroup` of the arguments names the child's cgroup (Linux 5.7).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of `linux/sched.h`, version 2 (88 bytes).
#[repr(C)]
#[derive(Default)]
pub(crate) struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneArgs {
    /// A child whose end is told by SIGCHLD, born in `cgroup`.
    pub(crate) fn child_in(cgroup: Option<BorrowedFd<'_>>) -> Self {
        Self {
            flags: if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 },
            exit_signal: libc::SIGCHLD.unsigned_abs().into(),
            cgroup: cgroup.map_or(0, |cgroup| cgroup.as_raw_fd().unsigned_abs().into()),
            ..Self::default()
        }
    }

    /// It borrows this process's table of files ([`crate::process::launch::files`]), if `borrows`.
    pub(crate) fn borrowing_files(self, borrows: bool) -> Self {
        let files = if borrows { u64::from(libc::CLONE_FILES.unsigned_abs()) } else { 0 };
        Self { flags: self.flags | files, ..self }
    }

    /// It shares this process's memory, on a stack of its own. `occupied` becomes 0 when it has left this memory.
    pub(crate) fn sharing_memory(self, stack: *mut u8, stack_bytes: usize, occupied: *mut i32) -> Self {
        Self {
            flags: self.flags | u64::from((libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID).unsigned_abs()),
            child_tid: occupied as u64,
            stack: stack as u64,
            stack_size: stack_bytes as u64,
            ..self
        }
    }
}

/// Forks; 0 in the child. With a cgroup directory the child is born in it. If the kernel or a sandbox does not allow that, the child
/// enters it by itself. If it may not do that either, it stays outside.
///
/// # Safety
/// The process must have one thread, and the child may only call what is async-signal-safe before it calls execve.
pub(crate) unsafe fn fork_into(cgroup: Option<BorrowedFd<'_>>) -> io::Result<libc::pid_t> {
    let Some(cgroup) = cgroup else {
        // SAFETY: the caller keeps the rules of fork.
        return result(unsafe { libc::fork() }.into());
    };
    let args = CloneArgs::child_in(Some(cgroup));
    // SAFETY: without a stack and without CLONE_VM, clone3 is a fork; the kernel only reads `args`, which is of the size
    // given. The caller keeps the rules of fork.
    let pid = result(unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) });
    match pid {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) => {
            // SAFETY: as above.
            let pid = result(unsafe { libc::fork() }.into())?;
            if pid == 0 {
                enter(cgroup);
            }
            Ok(pid)
        }
        other => other,
    }
}

fn result(returned: libc::c_long) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(returned).ok().filter(|pid| *pid >= 0).ok_or_else(io::Error::last_os_error)
}

/// In the child: enters the cgroup. A failure is no error: what is left of a run is looked for in /proc as well.
fn enter(cgroup: BorrowedFd<'_>) {
    // SAFETY: plain system calls on a descriptor that is open and on constants that end in NUL.
    unsafe {
        let procs = libc::openat(cgroup.as_raw_fd(), c"cgroup.procs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if procs >= 0 {
            libc::write(procs, c"0".as_ptr().cast(), 1);
            libc::close(procs);
        }
    }
}
