//! The trust check: only root and the server's own user may be able to create or change a plugin file.
//!
//! The way to the plugins directory is walked from `/` by descriptors, and follows no symbolic link. So the file that was checked is the
//! one that is opened. On it, only root and the server's user may own or write. A parent that everybody may write
//! to is accepted if it has the sticky bit (/tmp). There only an owner can replace a file, and the next step of the walk checks the
//! owner. The plugins directory itself must not be like that: anybody could add files to it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

/// The kind of the file that is checked, which says what is demanded of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Parent,
    Directory,
    File,
}

/// Opens the plugins directory for reading. `None` if it does not exist.
pub(crate) fn open_directory(path: &Path) -> Result<Option<OwnedFd>, String> {
    let path = std::path::absolute(path).map_err(|error| format!("its full path is not known: {error}"))?;
    let mut walked = PathBuf::from("/");
    let mut here = openat(AT_FDCWD, "/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|error| format!("/ cannot be opened: {error}"))?;
    let mut steps = path.components().filter(|step| matches!(step, Component::Normal(_) | Component::ParentDir));
    let mut step = steps.next();
    check(&here, &walked, if step.is_some() { Role::Parent } else { Role::Directory })?;
    while let Some(name) = step {
        step = steps.next();
        walked.push(name);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        here = match openat(&here, name.as_os_str(), flags, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(cannot_open(&here, name.as_os_str(), &walked, error)),
        };
        check(&here, &walked, if step.is_some() { Role::Parent } else { Role::Directory })?;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = openat(&here, ".", flags, Mode::empty());
    directory.map(Some).map_err(|error| format!("{} cannot be read: {error}", walked.display()))
}

/// Opens a plugin in a directory that was opened by [`open_directory`]. `path` is for sentences only.
pub(crate) fn open_file(directory: impl AsFd, name: &OsStr, path: &Path) -> Result<File, String> {
    // Not blocking: opening a FIFO would wait for a writer.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(&directory, name, flags, Mode::empty())
        .map_err(|error| cannot_open(directory.as_fd(), name, path, error))?;
    check(&file, path, Role::File)?;
    Ok(File::from(file))
}

fn cannot_open(directory: impl AsFd, name: &OsStr, path: &Path, error: Errno) -> String {
    let found = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW);
    let is_link = found.is_ok_and(|stat| kind(stat.st_mode) == SFlag::S_IFLNK);
    let path = path.display();
    if is_link {
        format!("{path} is a symbolic link, and links are not followed here: give the place that it leads to")
    } else {
        format!("{path} cannot be opened: {}", error.desc())
    }
}

fn check(file: impl AsFd, path: &Path, role: Role) -> Result<(), String> {
    let stat = fstat(file).map_err(|error| format!("{} cannot be examined: {error}", path.display()))?;
    let own_uid = nix::unistd::geteuid().as_raw();
    judge(stat.st_mode, stat.st_uid, own_uid, role).map_err(|fault| format!("{} {fault}", path.display()))
}

/// The rule itself, on what the system says of an opened file.
fn judge(st_mode: u32, uid: u32, own_uid: u32, role: Role) -> Result<(), String> {
    if role == Role::File && kind(st_mode) != SFlag::S_IFREG {
        return Err("is not a regular file".to_owned());
    }
    if uid != 0 && uid != own_uid {
        return Err(format!("belongs to user {uid}, not to root or the server's own user ({own_uid})"));
    }
    let mode = Mode::from_bits_truncate(st_mode);
    let writers = match (mode.contains(Mode::S_IWGRP), mode.contains(Mode::S_IWOTH)) {
        (false, false) => return Ok(()),
        (true, false) => "its group",
        (_, true) => "everybody",
    };
    if role == Role::Parent && mode.contains(Mode::S_ISVTX) {
        return Ok(());
    }
    let mode = st_mode & 0o7777;
    Err(format!("can be written by {writers} (mode {mode:o}), who could then run code as the server: chmod go-w"))
}

fn kind(st_mode: u32) -> SFlag {
    SFlag::from_bits_truncate(st_mode & SFlag::S_IFMT.bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(mode: u32, uid: u32, role: Role) -> Result<(), String> {
        judge(mode, uid, 1000, role)
    }

    #[test]
    fn only_root_and_oneself_may_own_and_write() {
        let (file, directory) = (libc::S_IFREG, libc::S_IFDIR);
        for uid in [0, 1000] {
            assert_eq!(judged(file | 0o755, uid, Role::File), Ok(()));
            assert_eq!(judged(directory | 0o755, uid, Role::Directory), Ok(()));
        }
        assert!(judged(file | 0o755, 1001, Role::File).unwrap_err().contains("belongs to user 1001"));
        assert!(judged(directory | 0o755, 1001, Role::Parent).unwrap_err().contains("belongs to user 1001"));
        assert!(judged(file | 0o775, 0, Role::File).unwrap_err().contains("written by its group (mode 775)"));
        assert!(judged(directory | 0o757, 0, Role::Parent).unwrap_err().contains("written by everybody"));
    }

    #[test]
    fn a_sticky_directory_may_be_a_parent_but_not_hold_plugins() {
        let sticky = libc::S_IFDIR | 0o1777;
        assert_eq!(judged(sticky, 0, Role::Parent), Ok(()));
        assert!(judged(sticky, 0, Role::Directory).is_err());
        assert!(judged(sticky, 1001, Role::Parent).is_err());
    }

    #[test]
    fn only_a_regular_file_is_a_plugin() {
        for kind in [libc::S_IFIFO, libc::S_IFDIR, libc::S_IFCHR, libc::S_IFSOCK] {
            assert_eq!(judged(kind | 0o600, 0, Role::File), Err("is not a regular file".to_owned()));
        }
    }
}
