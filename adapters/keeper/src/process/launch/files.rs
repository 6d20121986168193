//! Which of the keeper's open files its children see.
//!
//! A child is born with all files of its parent, and closes them when it becomes its program. With a thousand runs those are
//! thousands, and to copy and to close them takes longer than all else about a start. So the keeper's own files are numbered from
//! [`KEPT`] on, and those that a child needs stand below. A child borrows the keeper's table of files just until it has asked for a
//! copy of the part below that it needs.

use std::ffi::c_int;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};

use crate::process::launch::system::call;

/// The first of the numbers that no child needs. Below is room for the outputs of all children that are usually on their way to their
/// exec at one time. Others are born with a copy of the whole table.
pub(crate) const KEPT: RawFd = 512;
/// Room for a thousand runs. A table that grows while a child borrows it holds the keeper up for some milliseconds.
const ROOM: RawFd = 4_096;

/// Numbers a file so that children do not see it. One that cannot be is closed by their exec, as it would be anyway.
pub(crate) fn keep(file: OwnedFd) -> OwnedFd {
    match fcntl(&file, FcntlArg::F_DUPFD_CLOEXEC(KEPT)) {
        // SAFETY: the kernel just made this descriptor for us.
        Ok(number) => unsafe { OwnedFd::from_raw_fd(number) },
        Err(_) => file,
    }
}

/// Makes the table as large as it is going to be, where that is allowed.
pub(crate) fn make_room(file: impl AsFd) {
    if let Ok(number) = fcntl(file, FcntlArg::F_DUPFD_CLOEXEC(ROOM - 1)) {
        // SAFETY: as above.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

/// In a child that borrows the keeper's table: takes a copy of it up to the descriptor `last`, and leaves the borrowed one
/// alone.
///
/// # Safety
/// Only in such a child, which must touch no descriptor before, and none at all if this fails.
pub(crate) unsafe fn own_the_needed(last: RawFd) -> Result<(), c_int> {
    let (from, until) = (last.unsigned_abs() as usize + 1, u32::MAX as usize);
    // SAFETY: numbers only.
    unsafe { call(libc::SYS_close_range, [from, until, libc::CLOSE_RANGE_UNSHARE as usize]) }.map(drop)
}
