//! A wall clock that a test moves under a process that runs (libfaketime). Clocks that nobody can set, CLOCK_MONOTONIC and
//! CLOCK_BOOTTIME, are left alone.
//!
//! The library has a remedy for waits on CLOCK_MONOTONIC that hang with some versions of the system's library. With it such waits may end
//! too early, as its README says. On MySQL they end at once: threads that sleep for a second spin, and all of them queue for the
//! library's one lock. So the remedy is switched off.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Debian's package `libfaketime` puts it, in the directory of the machine's kind; the one for programs with threads.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The clock of the processes that are started with its environment.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
    /// Where the library keeps something for each process, and leaves it there when that is killed.
    leftovers: PathBuf,
}

impl Clock {
    /// A clock that goes right, its files in `dir`, for processes whose files begin at `root`; why there is none here.
    pub fn new(dir: &Path, root: &Path) -> Result<Self, String> {
        // A copy, for those who see nothing but a part of the machine's files.
        let (library, file, leftovers) = (dir.join("libfaketime.so"), dir.join("clock"), root.join("dev/shm"));
        let this = Self { library, file, leftovers };
        let kinds = fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
        let library = kinds.map(|kind| kind.path().join(LIBRARY)).find(|library| library.exists());
        let library = library.ok_or(format!("there is no {LIBRARIES}/*/{LIBRARY} (apt-get install faketime)"))?;
        fs::copy(&library, &this.library).map_err(|error| format!("{}: {error}", library.display()))?;
        this.put(0);
        Ok(this)
    }

    /// The variables to start a process with, each `NAME=value`; `seen` says where it sees a file.
    pub fn environment(&self, seen: impl Fn(&Path) -> PathBuf) -> Vec<String> {
        vec![
            format!("LD_PRELOAD={}", seen(&self.library).display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", seen(&self.file).display()),
            "FAKETIME_NO_CACHE=1".into(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
            "FAKETIME_FORCE_MONOTONIC_FIX=0".into(),
        ]
    }

    /// Puts it so many milliseconds before the machine's clock, or behind it.
    pub fn put(&self, offset_ms: i64) {
        let (sign, ms) = (if offset_ms < 0 { '-' } else { '+' }, offset_ms.unsigned_abs());
        // It is read at any moment: never half of it.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{sign}{}.{:03}\n", ms / 1_000, ms % 1_000)).expect("a file can be written");
        fs::rename(new, &self.file).expect("a file can be renamed");
    }
}

impl Drop for Clock {
    /// Clears away what nobody uses any more: a process that got the same number would not start.
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.leftovers).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let of = name.strip_prefix("faketime_shm_").or_else(|| name.strip_prefix("sem.faketime_sem_"));
            if of.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _gone = fs::remove_file(entry.path());
            }
        }
    }
}
