//! The private copy of a plugin: a sealed file in memory.
//!
//! It has no name, no process can write to it, and it ends with the server. Host processes open it
//! through the server's /proc/PID/fd, and load nothing that does not carry the seals.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The largest plugin that is copied, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// A copy of a plugin that will not change.
#[derive(Debug)]
pub(crate) struct Image(File);

impl Image {
    /// Copies `file`, which must stand at its beginning.
    pub(crate) fn copy(file: File) -> Result<Self, String> {
        let cannot = |error: io::Error| format!("its private copy in memory cannot be made: {error}");
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let mut copy = memfd_create(c"carillon-plugin", flags).map(File::from).map_err(|error| cannot(error.into()))?;
        let length = io::copy(&mut file.take(MAX_BYTES + 1), &mut copy).map_err(cannot)?;
        if length > MAX_BYTES {
            return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
        }
        fcntl(&copy, FcntlArg::F_ADD_SEALS(seals())).map_err(|error| cannot(error.into()))?;
        Ok(Self(copy))
    }

    /// Where other processes of the same user find it, while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.0)
    }
}

/// Where other processes of the same user find a file that this process has open.
pub(crate) fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Opens an image of another process, and nothing else.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    let file = File::open(path).map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
    match fcntl(file.as_fd(), FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate) {
        Ok(found) if found.contains(seals()) => Ok(file),
        Ok(_) | Err(_) => Err(format!("{} is not a sealed copy of a plugin", path.display())),
    }
}

fn seals() -> SealFlag {
    SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL
}
