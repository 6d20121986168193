//! From a [`Spawn`] to a running program: what happens between birth and exec.
//!
//! Everything that needs memory is made before. A failure is written as a [`LaunchFailure`] to one pipe that all children share and that exec
//! closes. So "could not be started" costs no descriptor and no wait per child.

use std::ffi::{CString, c_char, c_int};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use carillon_domain::guard::{Guard, enabled};
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Whence, lseek, pipe2};

use crate::clock::boottime_ms;
use crate::process::launch::cradle::Cradles;
use crate::process::launch::failure::{LaunchFailure, Step};
use crate::process::launch::files::{self, KEPT};
use crate::process::launch::system::call;
use crate::spawn_request::Spawn;

/// Shared by all children.
pub(crate) struct LaunchContext {
    /// Write end of the pipe of [`LaunchFailure`]s.
    pub(crate) failures: OwnedFd,
    /// /dev/null, for reading.
    pub(crate) null: OwnedFd,
    /// The keeper's own process id, which a child's parent must still be.
    pub(crate) keeper_pid: libc::pid_t,
    /// The limit on open files that the keeper found, before it raised its own.
    pub(crate) files: libc::rlimit,
    /// Whether children may borrow the keeper's table of files: whether the kernel has close_range.
    pub(crate) lends_files: bool,
    /// Where children are before their exec.
    pub(crate) cradles: Cradles,
}

/// A child just born.
pub(crate) struct Born {
    /// Its process id, which is also its process group and its session.
    pub(crate) pid: libc::pid_t,
    /// Read end of its stdout and stderr; never blocks.
    pub(crate) output: OwnedFd,
}

/// Makes a child that becomes `spawn` unless CLOCK_BOOTTIME has reached `deadline_ms` just before exec.
pub(crate) fn start(
    mut spawn: Box<Spawn>,
    deadline_ms: u64,
    place: &mut LaunchContext,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<Born, String> {
    let stdin = match spawn.stdin.take() {
        Some(bytes) => Some(stdin_file(&bytes).map_err(|error| format!("cannot make its stdin: {error}"))?),
        None => None,
    };
    let no_pipe = |error| format!("cannot make the pipe for its output: {error}");
    let (output, writer) = pipe2(OFlag::O_CLOEXEC).map_err(no_pipe)?;
    let output = files::keep(output);
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(no_pipe)?;
    if let Some(user) = &spawn.user {
        // So that the program may open /dev/stdout and /dev/stdin again.
        for file in [Some(&writer), stdin.as_ref()].into_iter().flatten() {
            let (uid, gid) = (user.uid.into(), user.gid.into());
            nix::unistd::fchown(file, Some(uid), Some(gid)).map_err(no_pipe)?;
        }
    }
    let programs = programs(&spawn);
    let image = Image {
        program_pointers: pointers(&programs),
        argv: pointers(&spawn.argv),
        env: pointers(&spawn.env),
        stdin: stdin.as_ref().unwrap_or(&place.null).as_raw_fd(),
        output: writer.as_raw_fd(),
        failures: place.failures.as_raw_fd(),
        lends_files: place.lends_files,
        keeper_pid: place.keeper_pid,
        files: place.files,
        deadline_ms,
        spawn,
        _programs: programs,
        _files: (writer, stdin),
    };
    let pid = place.cradles.bear(image, cgroup).map_err(|error| format!("cannot make another process: {error}"))?;
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

/// All that the child needs, allocated before it is born. The vectors of pointers end in a null pointer.
pub(crate) struct Image {
    program_pointers: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    stdin: RawFd,
    output: RawFd,
    failures: RawFd,
    lends_files: bool,
    keeper_pid: libc::pid_t,
    files: libc::rlimit,
    deadline_ms: u64,
    /// The values behind the pointers, among others.
    spawn: Box<Spawn>,
    _programs: Vec<CString>,
    /// The owners of the numbers above, among others.
    _files: (OwnedFd, Option<OwnedFd>),
}

impl Image {
    /// Whether the child borrows the keeper's table of files, and takes from it what it needs.
    pub(crate) fn borrows_files(&self) -> bool {
        self.lends_files && self.last_needed() < KEPT
    }

    /// The highest of the descriptors that it needs.
    fn last_needed(&self) -> RawFd {
        self.stdin.max(self.output).max(self.failures)
    }

    /// Turns this process into the program, or reports why not and ends.
    ///
    /// # Safety
    /// Only in a child that was just born; `image` must stay as it is until its exec. Writes to no memory but its stack,
    /// allocates nothing, takes no lock, uses nothing of libc's that knows an errno.
    pub(crate) unsafe extern "C" fn begin(image: *const Self) -> ! {
        // SAFETY: the caller keeps the image; the rest are system calls on descriptors, strings and arrays in it.
        unsafe {
            let image = &*image;
            let Err((step, errno)) = image.take_files().and_then(|()| image.prepare()).and_then(|()| image.execute());
            let pid = call(libc::SYS_getpid, []).unwrap_or_default();
            let failure = LaunchFailure { pid: pid as i32, step, errno }.to_bytes();
            // Smaller than PIPE_BUF, so it is written whole or not at all.
            let _ = call(libc::SYS_write, [image.failures as usize, failure.as_ptr() as usize, failure.len()]);
            loop {
                let _ = call(libc::SYS_exit_group, [LaunchFailure::EXIT_CODE as usize]);
            }
        }
    }

    /// Until this is done a borrowed table must stay as it is.
    unsafe fn take_files(&self) -> Result<(), (Step, c_int)> {
        if !self.borrows_files() {
            return Ok(());
        }
        // SAFETY: see `begin`.
        unsafe { files::own_the_needed(self.last_needed()) }.map_err(|errno| (Step::Setup, errno))
    }

    /// The order matters. Files come first, while it is still the keeper's user, then the user. The death signal follows, because
    /// switching clears it, and then the parent check. Last come steps that may hang (a directory on a dead mount).
    unsafe fn prepare(&self) -> Result<(), (Step, c_int)> {
        let at = |step| move |errno| (step, errno);
        let setup = at(Step::Setup);
        // SAFETY: see `begin`.
        unsafe {
            call(libc::SYS_setsid, []).map_err(setup)?;
            for (from, to) in [(self.stdin, 0), (self.output, 1), (self.output, 2)] {
                call(libc::SYS_dup3, [from as usize, to, 0]).map_err(setup)?;
            }
            let (files, old) = (&raw const self.files as usize, 0);
            call(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, files, old]).map_err(setup)?;
            let _ = call(libc::SYS_umask, [0o022]);
            self.switch_user().map_err(at(Step::User))?;
            call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize]).map_err(setup)?;
            if call(libc::SYS_getppid, []) != Ok(self.keeper_pid as usize) {
                return Err((Step::Orphaned, 0));
            }
            let enter = |dir: *const c_char| call(libc::SYS_chdir, [dir as usize]);
            if let Err(errno) = enter(self.spawn.dir.as_ptr())
                && (!self.spawn.dir_or_root || enter(c"/".as_ptr()).is_err())
            {
                return Err((Step::Directory, errno));
            }
            let (none, bytes) = (0_u64, size_of::<u64>());
            let none = &raw const none as usize;
            call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, none, 0, bytes]).map_err(setup)?;
        }
        Ok(())
    }

    unsafe fn switch_user(&self) -> Result<(), c_int> {
        let Some(user) = &self.spawn.user else { return Ok(()) };
        let (uid, gid) = (user.uid as usize, user.gid as usize);
        // SAFETY: see `begin`.
        unsafe {
            call(libc::SYS_setgroups, [user.groups.len(), user.groups.as_ptr() as usize])?;
            call(libc::SYS_setresgid, [gid, gid, gid])?;
            call(libc::SYS_setresuid, [uid, uid, uid])?;
            // The switch has set it to fs.suid_dumpable, for the keeper too as far as their memory is one.
            call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as usize, 0])?;
            call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])?;
        }
        Ok(())
    }

    /// Returns only on failure. As execvp, goes on after "not found" and remembers "not permitted".
    unsafe fn execute(&self) -> Result<std::convert::Infallible, (Step, c_int)> {
        let mut failed = (Step::NotFound, libc::ENOENT);
        let (argv, env) = (self.argv.as_ptr() as usize, self.env.as_ptr() as usize);
        for program in self.program_pointers.iter().take_while(|program| !program.is_null()) {
            if boottime_ms() >= self.deadline_ms && enabled(Guard::KeeperExec) {
                return Err((Step::Lease, 0));
            }
            // SAFETY: both arrays end in a null pointer and point to strings that outlive the call.
            match unsafe { call(libc::SYS_execve, [*program as usize, argv, env]) } {
                Err(libc::EACCES) => failed = (Step::Denied, libc::EACCES),
                Err(libc::ENOENT | libc::ENOTDIR) => {}
                Err(errno) => return Err((Step::Exec, errno)),
                Ok(_) => {}
            }
        }
        Err(failed)
    }
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
    fn born(deadline_ms: u64, keeper_pid: libc::pid_t) -> (WaitStatus, Option<Step>) {
        let (reader, failures) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap().into();
        let files = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        let cradles = Cradles::default();
        let mut place = LaunchContext { failures, null, keeper_pid, files, lends_files: true, cradles };
        let spawn = Box::new(Spawn {
            run: RunId::from_parts(1, 1),
            argv: vec![c"true".into()],
            env: vec![c"PATH=relative:/usr/bin:/bin".into()],
            dir: c"/".into(),
            dir_or_root: false,
            stdin: None,
            user: None,
            timeout: None,
            kill_grace: Duration::ZERO,
        });
        let born = start(spawn, deadline_ms, &mut place, None).unwrap();
        let status = waitpid(Pid::from_raw(born.pid), None).unwrap();
        drop(place);
        let mut bytes = Vec::new();
        std::fs::File::from(reader).read_to_end(&mut bytes).unwrap();
        let failure = bytes.try_into().ok().and_then(LaunchFailure::from_bytes);
        (status, failure.inspect(|failure| assert_eq!(failure.pid, born.pid)).map(|failure| failure.step))
    }

    #[test]
    fn the_lease_and_the_parent_are_checked_last() {
        let own = std::process::id().cast_signed();
        assert!(matches!(born(u64::MAX, own), (WaitStatus::Exited(_, 0), None)));
        assert!(matches!(born(boottime_ms(), own), (WaitStatus::Exited(_, 127), Some(Step::Lease))));
        assert!(matches!(born(u64::MAX, 1), (WaitStatus::Exited(_, 127), Some(Step::Orphaned))));
    }
}
