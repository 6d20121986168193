//! A small disk for the data of a server, which can be filled up.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::statvfs;

/// A mounted disk. Who deletes the directory of the server unmounts it.
#[derive(Debug)]
pub struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Mounts one of so many MiB in a directory; why that cannot be done here.
    pub(super) fn mount(directory: &Path, mib: u32) -> Result<Self, String> {
        let place = directory.join("disk");
        fs::create_dir_all(&place).expect("a directory");
        let size = format!("size={mib}m");
        match mount(Some("none"), &place, Some("tmpfs"), MsFlags::empty(), Some(size.as_str())) {
            Ok(()) => Ok(Self { place }),
            Err(error) => Err(format!("a disk of its own cannot be mounted ({error}); only root may")),
        }
    }

    /// Where it is mounted.
    pub fn place(&self) -> &Path {
        &self.place
    }

    fn ballast(&self) -> PathBuf {
        self.place.join("ballast")
    }

    /// Takes all space that is left.
    pub fn fill(&self) {
        let file = File::options().create(true).append(true).open(self.ballast()).expect("a file can be made");
        let begin = file.metadata().map_or(0, |of| of.len());
        let Ok(space) = statvfs(&self.place) else { return };
        let free = space.blocks_available() * space.fragment_size();
        // Space that the server takes at the same time makes the last piece fail.
        let (mut at, mut piece) = (begin, free);
        while piece >= 4096 {
            let taken = (i64::try_from(at), i64::try_from(piece));
            let (Ok(from), Ok(length)) = taken else { return };
            match fallocate(file.as_fd(), FallocateFlags::empty(), from, length) {
                Ok(()) => at += piece,
                Err(_) => piece /= 2,
            }
        }
    }

    /// Gives it back.
    pub fn free(&self) {
        let _gone = fs::remove_file(self.ballast());
    }
}
