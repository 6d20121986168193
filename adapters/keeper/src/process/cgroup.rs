//! cgroup v2: the one thing that a process cannot leave by forking, and that kills all of its members at once.
//!
//! The keeper makes `carillon-keeper-PID` next to its own cgroup, and in it one directory for each run. Later runs reuse
//! the directories, because it costs time to make and remove one. One that was killed is not used again. Linux (seen on 6.18) kills
//! every process that is forked into a cgroup that was killed more often than the parent's own.
//!
//! The keeper holds a lock on its directory. A directory that another keeper can lock belongs to a dead one. That keeper kills and
//! removes the leftovers, even from another pid namespace.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::process::launch::files::keep;
use crate::process::launch::fork::fork_into;

const PREFIX: &str = "carillon-keeper-";

/// The cgroups of one keeper.
pub(crate) struct Cgroups {
    root: PathBuf,
    _lock: File,
    free: Vec<Cgroup>,
    made: u32,
}

/// The cgroup of one run.
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: OwnedFd,
    events: File,
    cpu: File,
    /// The CPU time of the runs that were in it before.
    earlier_us: u64,
    killed: Cell<bool>,
}

impl Cgroups {
    /// Makes this keeper's directory where the hierarchy allows it; the error says why nowhere.
    pub(crate) fn open() -> Result<Self, String> {
        let mut why = "no cgroup v2 hierarchy is mounted".to_owned();
        for parent in parents()? {
            match Self::open_in(&parent) {
                Ok(cgroups) => return Ok(cgroups),
                Err(error) => why = format!("cannot make a cgroup in {}: {error}", parent.display()),
            }
        }
        Err(why)
    }

    fn open_in(parent: &Path) -> io::Result<Self> {
        remove_leftovers(parent);
        let root = parent.join(format!("{PREFIX}{}", std::process::id()));
        let lock = make_locked(&root)?;
        if !root.join("cgroup.kill").exists() {
            fs::remove_dir(&root)?;
            return Err(io::Error::other("the kernel has no cgroup.kill (it came with Linux 5.14)"));
        }
        let mut cgroups = Self { root, _lock: lock, free: Vec::new(), made: 0 };
        let probe = cgroups.take()?;
        if !survives_birth_in(&probe)? {
            return Err(io::Error::other("processes forked into it are killed at once"));
        }
        cgroups.give_back(probe);
        Ok(cgroups)
    }

    /// The directory that holds all runs.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// An empty cgroup for a run.
    pub(crate) fn take(&mut self) -> io::Result<Cgroup> {
        if let Some(cgroup) = self.free.pop() {
            return Ok(cgroup);
        }
        let path = self.root.join(format!("run-{}", self.made));
        fs::create_dir(&path)?;
        self.made += 1;
        let open = |name: &str| Ok::<_, io::Error>(keep(File::open(path.join(name))?.into()));
        let (directory, events, cpu) = (open(".")?, open("cgroup.events")?, open("cpu.stat")?);
        let (events, cpu, killed) = (events.into(), cpu.into(), Cell::new(false));
        Ok(Cgroup { path, directory, events, cpu, earlier_us: 0, killed })
    }

    /// Keeps an empty cgroup for a later run, unless it was killed.
    pub(crate) fn give_back(&mut self, cgroup: Cgroup) {
        if cgroup.killed.get() {
            remove_below(&cgroup.path);
        } else {
            self.free.push(cgroup);
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        kill_and_remove(&self.root);
    }
}

impl Cgroup {
    /// The directory, for a fork into it.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Whether a process lives in it. If that cannot be read: no, and /proc decides.
    pub(crate) fn is_populated(&self) -> bool {
        let mut text = [0; 64];
        let length = self.events.read_at(&mut text, 0).unwrap_or(0);
        text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 1")
    }

    /// The CPU time in microseconds since this was last asked, which is once for each run. The kernel counts it in every cgroup
    /// v2, whatever its controllers, and keeps it when processes end.
    pub(crate) fn take_cpu_us(&mut self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.cpu.read_at(&mut text, 0).ok()?;
        let total_us = usage_us(&text[..length])?;
        let earlier_us = std::mem::replace(&mut self.earlier_us, total_us);
        total_us.checked_sub(earlier_us)
    }

    /// Whether `path`, as /proc/PID/cgroup gives it, is this cgroup or one that a process made below it.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let ours = self.path.iter().rev().take(2).collect::<Vec<_>>();
        let [run, keeper] = ours[..] else { return false };
        let mut names = Path::new(path).iter();
        names.any(|name| name == keeper) && names.next() == Some(run)
    }

    /// Kills all members, and whatever they are about to fork.
    pub(crate) fn kill(&self) {
        self.killed.set(true);
        // A failure leaves the cgroup populated; the keeper comes back.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

/// The first line of cpu.stat.
fn usage_us(text: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line.strip_prefix(b"usage_usec ")?).ok()?.parse().ok()
}

/// A directory in which a keeper would make its cgroups, seen without making one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPlace {
    /// The cgroup of this process.
    pub directory: PathBuf,
    /// Whether this process may make cgroups there and move processes into them.
    pub is_delegated: bool,
    /// Whether the kernel can kill a whole cgroup, where a cgroup tells it: the topmost one does not.
    pub has_kill: Option<bool>,
}

/// The directories that a keeper of this process would try, the first one first; none without cgroup v2.
///
/// # Errors
/// A sentence, if the system does not tell its mounts.
pub fn cgroup_places() -> Result<Vec<CgroupPlace>, String> {
    let allows = |path: &Path| access(path, AccessFlags::W_OK).is_ok();
    let look = |directory: PathBuf| CgroupPlace {
        is_delegated: allows(&directory) && allows(&directory.join("cgroup.procs")),
        has_kill: directory.join("cgroup.type").exists().then(|| directory.join("cgroup.kill").exists()),
        directory,
    };
    Ok(parents()?.into_iter().map(look).collect())
}

/// The cgroup of this process in each hierarchy that is mounted.
fn parents() -> Result<Vec<PathBuf>, String> {
    let mounts = fs::read("/proc/self/mounts").map_err(|error| format!("cannot read /proc/self/mounts: {error}"))?;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(mount_points(&mounts).into_iter().map(|mount| mount.join(own)).collect())
}

/// Kills everything below `root` and removes it as far as it is empty. Also for the node, when its keeper has died.
pub(crate) fn kill_and_remove(root: &Path) {
    let _ = fs::write(root.join("cgroup.kill"), "1");
    remove_below(root);
}

fn remove_below(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    // Members that are still dying keep it; the next keeper removes it.
    let _ = fs::remove_dir(directory);
}

/// Makes a directory and locks it. Another keeper that starts just now may take it for a dead one's before it is locked.
fn make_locked(directory: &Path) -> io::Result<File> {
    for _ in 0..10 {
        fs::create_dir(directory)?;
        if let Ok(lock) = File::open(directory) {
            lock.lock()?;
            if directory.exists() {
                return Ok(lock);
            }
        }
    }
    Err(io::Error::other("other keepers remove it at once"))
}

/// Whether a child forked into the cgroup lives to say so.
fn survives_birth_in(cgroup: &Cgroup) -> io::Result<bool> {
    // SAFETY: the keeper has one thread, and the child does nothing but end.
    let pid = unsafe { fork_into(Some(cgroup.directory())) }?;
    if pid == 0 {
        // SAFETY: this is the child.
        unsafe { libc::_exit(0) }
    }
    let mut status = -1;
    // SAFETY: waits for that child, which ends at once; `status` is valid for writing.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    Ok(status == 0)
}

/// The leftovers of dead keepers.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|directory| directory.try_lock().is_ok()) {
            kill_and_remove(&entry.path());
        }
    }
}

/// Mount points of type cgroup2 in the text of /proc/self/mounts, where a space is written `\040`.
fn mount_points(mounts: &[u8]) -> Vec<PathBuf> {
    let lines = mounts.split(|byte| *byte == b'\n');
    let fields = lines.map(|line| line.split(|byte| *byte == b' ').collect::<Vec<_>>());
    let cgroup2 = fields.filter(|fields| fields.get(2) == Some(&&b"cgroup2"[..]));
    cgroup2.map(|fields| OsString::from_vec(unescape(fields[1])).into()).collect()
}

fn unescape(mut field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    while let Some((&byte, rest)) = field.split_first() {
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if byte == b'\\' => {
                plain.push(code);
                field = &rest[3..];
            }
            _ => {
                plain.push(byte);
                field = rest;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_of_cgroup2_are_found() {
        let mounts = b"tmpfs /run tmpfs rw 0 0\ncgroup2 /sys/fs/a\\040b cgroup2 rw 0 0\ncgroup /c cgroup rw 0 0\n";
        assert_eq!(mount_points(mounts), [Path::new("/sys/fs/a b")]);
        assert!(mount_points(b"").is_empty());
    }

    #[test]
    fn the_cpu_time_is_the_first_line() {
        assert_eq!(usage_us(b"usage_usec 1234\nuser_usec 1000\nsystem_us"), Some(1_234));
        for odd in [&b""[..], b"usage_usec \n", b"user_usec 7\n"] {
            assert_eq!(usage_us(odd), None);
        }
    }
}
