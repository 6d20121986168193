//! From a [`Spawn`] to a running program: what happens between fork and exec.
//!
//! Everything that needs memory is made before the fork. What fails after it is written as a [`Failure`] to one pipe that
//! all children share and that exec closes, so that "could not be started" costs no descriptor and no wait per child.

use std::ffi::{CStr, CString, c_char};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use carillon_domain::guard::{Guard, stands};
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Whence, lseek, pipe2};

use super::clock::boottime_ms;
use super::failure::{Failure, Stage};
use super::fork::fork_into;
use super::spawn::{Spawn, UserIds};

/// What all children are born with.
pub(super) struct Place {
    /// Write end of the pipe of [`Failure`]s.
    pub(super) failures: OwnedFd,
    /// /dev/null, for reading.
    pub(super) null: OwnedFd,
    /// The keeper's own process id, which a child's parent must still be.
    pub(super) keeper_pid: libc::pid_t,
    /// The limit on open files that the keeper found, before it raised its own.
    pub(super) files: libc::rlimit,
}

/// A child just forked.
pub(super) struct Born {
    /// Its process id, which is also its process group and its session.
    pub(super) pid: libc::pid_t,
    /// Read end of its stdout and stderr; never blocks.
    pub(super) output: OwnedFd,
}

/// Forks a child that becomes `spawn` unless CLOCK_BOOTTIME has reached `deadline_ms` just before exec.
pub(super) fn start(
    spawn: &Spawn,
    deadline_ms: u64,
    place: &Place,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<Born, String> {
    let stdin = match &spawn.stdin {
        Some(bytes) => Some(stdin_file(bytes).map_err(|error| format!("cannot make its stdin: {error}"))?),
        None => None,
    };
    let no_pipe = |error| format!("cannot make the pipe for its output: {error}");
    let (output, writer) = pipe2(OFlag::O_CLOEXEC).map_err(no_pipe)?;
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(no_pipe)?;
    if let Some(user) = &spawn.user {
        // So that the program may open /dev/stdout and /dev/stdin again.
        for file in [Some(&writer), stdin.as_ref()].into_iter().flatten() {
            let (uid, gid) = (user.uid.into(), user.gid.into());
            nix::unistd::fchown(file, Some(uid), Some(gid)).map_err(no_pipe)?;
        }
    }
    let programs = programs(spawn);
    let image = Image {
        programs: pointers(&programs),
        argv: pointers(&spawn.argv),
        env: pointers(&spawn.env),
        dir: &spawn.dir,
        dir_or_root: spawn.dir_or_root,
        user: spawn.user.as_ref(),
        stdin: stdin.as_ref().unwrap_or(&place.null).as_raw_fd(),
        output: writer.as_raw_fd(),
        deadline_ms,
        place,
    };
    // SAFETY: the keeper has one thread; `become_program` makes only system calls on what was prepared above.
    let pid = unsafe { fork_into(cgroup) }.map_err(|error| format!("cannot make another process: {error}"))?;
    if pid == 0 {
        // SAFETY: this is the child of that fork.
        unsafe { image.become_program() }
    }
    Ok(Born { pid, output })
}

/// A sealed file in memory: a pipe would have to be fed while the child reads, a file is simply there.
fn stdin_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(memfd_create(c"stdin", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    lseek(file.as_fd(), 0, Whence::SeekSet)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

/// The paths to try, as execvp would: the program itself if it has a slash, else each directory of the PATH it will see.
fn programs(spawn: &Spawn) -> Vec<CString> {
    let Some(program) = spawn.argv.first() else { return Vec::new() };
    if program.as_bytes().contains(&b'/') {
        return vec![program.clone()];
    }
    let path = spawn.env.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH=")).unwrap_or_default();
    let directories = path.split(|byte| *byte == b':').filter(|directory| directory.starts_with(b"/"));
    directories.filter_map(|directory| CString::new([directory, b"/", program.as_bytes()].concat()).ok()).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// All that the child needs, allocated before the fork. The vectors of pointers end in a null pointer.
struct Image<'a> {
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    dir: &'a CStr,
    dir_or_root: bool,
    user: Option<&'a UserIds>,
    stdin: RawFd,
    output: RawFd,
    deadline_ms: u64,
    place: &'a Place,
}

impl Image<'_> {
    /// Turns this process into the program, or reports why not and ends.
    ///
    /// # Safety
    /// Only in a freshly forked child. Allocates nothing, takes no lock.
    unsafe fn become_program(&self) -> ! {
        // SAFETY: system calls on descriptors, strings and arrays that this process inherited intact.
        let Err(stage) = unsafe { self.prepare() }.and_then(|()| unsafe { self.execute() });
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        // SAFETY: getpid, write and _exit are async-signal-safe; the failure is smaller than PIPE_BUF, so it is written
        // whole or not at all.
        unsafe {
            let failure = Failure { pid: libc::getpid(), stage, errno }.to_bytes();
            libc::write(self.place.failures.as_raw_fd(), failure.as_ptr().cast(), failure.len());
            libc::_exit(Failure::EXIT_CODE)
        }
    }

    /// The order matters: files while still the keeper's user, then the user; the death signal after it, because switching
    /// clears it, and the parent check after that; then what may hang (a directory on a dead mount).
    unsafe fn prepare(&self) -> Result<(), Stage> {
        // SAFETY: see `become_program`.
        unsafe {
            check(libc::setsid(), Stage::Setup)?;
            check(libc::dup2(self.stdin, 0), Stage::Setup)?;
            check(libc::dup2(self.output, 1), Stage::Setup)?;
            check(libc::dup2(self.output, 2), Stage::Setup)?;
            check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.place.files), Stage::Setup)?;
            libc::umask(0o022);
            if let Some(user) = self.user {
                check(libc::setgroups(user.groups.len(), user.groups.as_ptr()), Stage::User)?;
                check(libc::setresgid(user.gid, user.gid, user.gid), Stage::User)?;
                check(libc::setresuid(user.uid, user.uid, user.uid), Stage::User)?;
                check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Stage::User)?;
            }
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0), Stage::Setup)?;
            if libc::getppid() != self.place.keeper_pid {
                return Err(Stage::Orphaned);
            }
            if libc::chdir(self.dir.as_ptr()) != 0 && !(self.dir_or_root && libc::chdir(c"/".as_ptr()) == 0) {
                return Err(Stage::Directory);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()), Stage::Setup)
        }
    }

    /// Returns only on failure, with errno set. As execvp, goes on after "not found" and remembers "not permitted".
    unsafe fn execute(&self) -> Result<std::convert::Infallible, Stage> {
        let mut denied = false;
        for program in self.programs.iter().take_while(|program| !program.is_null()) {
            if boottime_ms() >= self.deadline_ms && stands(Guard::KeeperExec) {
                return Err(Stage::Lease);
            }
            // SAFETY: both arrays end in a null pointer and point to strings that outlive the call.
            unsafe { libc::execve(*program, self.argv.as_ptr(), self.env.as_ptr()) };
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EACCES) => denied = true,
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                _ => return Err(Stage::Exec),
            }
        }
        Err(if denied { Stage::Denied } else { Stage::NotFound })
    }
}

fn check(returned: libc::c_int, stage: Stage) -> Result<(), Stage> {
    if returned < 0 { Err(stage) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use carillon_domain::id::RunId;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;

    use super::*;

    /// How a child ends that becomes `true`, and what it says if it does not.
    fn born(deadline_ms: u64, keeper_pid: libc::pid_t) -> (WaitStatus, Option<Stage>) {
        let (reader, failures) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap().into();
        let place = Place { failures, null, keeper_pid, files: libc::rlimit { rlim_cur: 64, rlim_max: 64 } };
        let spawn = Spawn {
            run: RunId::from_parts(1, 1),
            argv: vec![c"true".into()],
            env: vec![c"PATH=relative:/usr/bin:/bin".into()],
            dir: c"/".into(),
            dir_or_root: false,
            stdin: None,
            user: None,
            timeout: None,
            kill_grace: Duration::ZERO,
        };
        let born = start(&spawn, deadline_ms, &place, None).unwrap();
        let status = waitpid(Pid::from_raw(born.pid), None).unwrap();
        drop(place);
        let mut bytes = Vec::new();
        std::fs::File::from(reader).read_to_end(&mut bytes).unwrap();
        let failure = bytes.try_into().ok().and_then(Failure::from_bytes);
        (status, failure.inspect(|failure| assert_eq!(failure.pid, born.pid)).map(|failure| failure.stage))
    }

    #[test]
    fn the_lease_and_the_parent_are_checked_last() {
        let own = std::process::id().cast_signed();
        assert!(matches!(born(u64::MAX, own), (WaitStatus::Exited(_, 0), None)));
        assert!(matches!(born(boottime_ms(), own), (WaitStatus::Exited(_, 127), Some(Stage::Lease))));
        assert!(matches!(born(u64::MAX, 1), (WaitStatus::Exited(_, 127), Some(Stage::Orphaned))));
    }
}
