//! Processes whose parent is gone, found in /proc.
//!
//! The keeper is child subreaper, so every process that a run leaves behind becomes the keeper's own child. A double fork and a setsid
//! escape nothing; they only make it harder to say whose the process is. It is told by its cgroup, its session or
//! process group (each run's main process leads both), or by CARILLON_RUN_ID in its environment.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use carillon_domain::id::RunId;

/// The facts in /proc/PID/stat that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The process.
    pub(crate) pid: i32,
    /// Its parent.
    pub(crate) parent: i32,
    /// Its process group.
    pub(crate) group: i32,
    /// Its session.
    pub(crate) session: i32,
    /// When it started, in clock ticks since boot: with the pid, a process's identity.
    started_ticks: u64,
}

/// Reads the keeper's list of children.
pub(crate) struct Children {
    /// /proc/self/task/PID/children; absent in kernels without CONFIG_PROC_CHILDREN.
    list: Option<File>,
    buffer: Vec<u8>,
}

impl Children {
    pub(crate) fn open() -> Self {
        let pid = std::process::id();
        Self { list: File::open(format!("/proc/self/task/{pid}/children")).ok(), buffer: vec![0; 4096] }
    }

    /// All children, zombies too.
    pub(crate) fn list(&mut self) -> Vec<i32> {
        let Some(list) = &self.list else {
            let own = std::process::id().cast_signed();
            return processes().into_iter().filter(|stat| stat.parent == own).map(|stat| stat.pid).collect();
        };
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            match list.read_at(&mut self.buffer[length..], length as u64) {
                Ok(read @ 1..) => length += read,
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&self.buffer[..length]);
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}

/// Reads /proc/PID/stat; `None` when there is no such process.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, also parentheses.
    let after_name = text.iter().rposition(|byte| *byte == b')')?;
    let fields = String::from_utf8_lossy(&text[after_name + 1..]).into_owned();
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    let started_ticks = fields.get(19)?.parse().ok()?;
    Some(Stat { pid, parent: number(1)?, group: number(2)?, session: number(3)?, started_ticks })
}

/// The path of a process's cgroup v2, from the hierarchy's root.
pub(crate) fn cgroup_of(pid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// The run named in the environment that the process was started with.
pub(crate) fn run_in_environment(pid: i32) -> Option<RunId> {
    let mut environment = Vec::new();
    File::open(format!("/proc/{pid}/environ")).ok()?.take(4 << 20).read_to_end(&mut environment).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let id = entries.find_map(|entry| entry.strip_prefix(b"CARILLON_RUN_ID="))?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Kills `roots` and all their descendants: stops them first, so that none forks away while it is being looked for.
/// What still slips away is found at the next round, as an orphan.
pub(crate) fn kill_trees(roots: &[i32]) {
    send_to_trees(roots, libc::SIGSTOP);
    send_to_trees(roots, libc::SIGKILL);
}

fn send_to_trees(roots: &[i32], signal: libc::c_int) {
    let all = processes();
    let mut members: HashSet<i32> = roots.iter().copied().collect();
    loop {
        let before = members.len();
        members
            .extend(all.iter().filter(|stat| members.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>());
        if members.len() == before {
            break;
        }
    }
    all.iter().filter(|stat| members.contains(&stat.pid)).for_each(|stat| send(stat, signal));
}

/// Sends through a pidfd after looking once more who it is: a pid seen a moment ago may be another process by now.
fn send(seen: &Stat, signal: libc::c_int) {
    // SAFETY: pidfd_open takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, seen.pid, 0) };
    let Some(fd) = i32::try_from(fd).ok().filter(|fd| *fd >= 0) else { return };
    // SAFETY: the kernel just made this descriptor for us; pidfds are close-on-exec.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    if stat(seen.pid).is_some_and(|now| now.started_ticks == seen.started_ticks) {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open and the kernel accepts a null siginfo.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal, no_info, 0) };
    }
}

/// Every process that /proc shows.
fn processes() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_knows_this_process() {
        let own = stat(std::process::id().cast_signed()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id().cast_signed());
        assert_eq!(own.group, nix::unistd::getpgrp().as_raw());
        assert!(processes().contains(&own));
        assert_eq!(stat(0), None);
    }
}
