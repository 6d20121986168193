//! A child that hangs before it has become its program (here in a directory on a file system that does not answer) shares
//! the keeper's memory all that time. It delays no other child, and it dies as any other does.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carillon_executors::executor::{Outcome, Stop};
use carillon_keeper::{KeeperHandle, Spawn, boottime_ms};

use crate::support::*;
use crate::tests;

tests![
    a_child_that_hangs_before_its_exec_hangs_nobody_and_can_be_killed,
    more_hang_than_can_borrow_the_keepers_files,
    the_end_of_the_lease_kills_it,
];

/// A file system whose server never says a word. Whoever asks it something waits until killed, or until this is dropped.
struct Deaf {
    directory: tempfile::TempDir,
    _server: File,
}

impl Deaf {
    /// `None`, and said so, where it cannot be mounted.
    fn mount() -> Option<Self> {
        let server = File::options().read(true).write(true).open("/dev/fuse");
        let Ok(server) = server else { return none("there is no /dev/fuse to open") };
        let directory = tempfile::tempdir().unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let (path, options) = (c_path(directory.path()), CString::new(options).unwrap());
        // SAFETY: all strings end in NUL and outlive the call.
        let mounted =
            unsafe { libc::mount(c"deaf".as_ptr(), path.as_ptr(), c"fuse".as_ptr(), 0, options.as_ptr().cast()) };
        if mounted == 0 { Some(Self { directory, _server: server }) } else { none("mounting is not allowed") }
    }

    /// A run that hangs in it.
    fn spawn(&self) -> Spawn {
        Spawn { dir: c_path(self.directory.path()), ..argv(["true"]) }
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        // SAFETY: the string ends in NUL and outlives the call.
        unsafe { libc::umount2(c_path(self.directory.path()).as_ptr(), libc::MNT_DETACH) };
    }
}

fn none<T>(why: &str) -> Option<T> {
    skip(why);
    None
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn a_child_that_hangs_before_its_exec_hangs_nobody_and_can_be_killed() {
    let Some(deaf) = Deaf::mount() else { return };
    for cgroups in BOTH {
        run(async {
            let keeper = keeper(cgroups);
            let mut hanging = [0, 1].map(|_| start(&keeper, deaf.spawn()));
            for number in 0..100 {
                let exit = finish(&keeper, argv(["printf", "%s", &number.to_string()])).await;
                assert_eq!((exit.how, text(&exit)), (Outcome::Succeeded, &*number.to_string()));
                assert_eq!(finish(&keeper, argv(["no-such-program"])).await.exit_code, None);
            }
            for child in &mut hanging {
                child.stop(Stop::Now);
                let exit = child.exit().await;
                assert_eq!((exit.how, exit.signal), (Outcome::Cancelled, Some(libc::SIGKILL)));
            }
        });
    }
}

/// Those that come when the low numbers are taken are born with a copy of the whole table; nothing else is different.
fn more_hang_than_can_borrow_the_keepers_files() {
    let Some(deaf) = Deaf::mount() else { return };
    run(async {
        let keeper = keeper(true);
        let mut hanging: Vec<_> = (0..600).map(|_| start(&keeper, deaf.spawn())).collect();
        let looks = || script("cat; ls /proc/self/fd | tr '\\n' ' '");
        for _ in 0..10 {
            let exit = finish(&keeper, Spawn { stdin: Some(b"in ".to_vec()), ..looks() }).await;
            assert_eq!((exit.how, text(&exit)), (Outcome::Succeeded, "in 0 1 2 3 "));
        }
        for child in &mut hanging {
            child.stop(Stop::Now);
            assert_eq!(child.exit().await.signal, Some(libc::SIGKILL));
        }
        assert_eq!(finish(&keeper, looks()).await.how, Outcome::Succeeded);
    });
}

fn the_end_of_the_lease_kills_it() {
    let Some(deaf) = Deaf::mount() else { return };
    run(async {
        let keeper = KeeperHandle::start(options(true)).unwrap();
        keeper.extend_deadline(boottime_ms() + 300);
        let exit = start(&keeper, deaf.spawn()).exit().await;
        assert_eq!((exit.how, exit.signal), (Outcome::Lost, Some(libc::SIGKILL)));
    });
}
