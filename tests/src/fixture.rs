//! How tests talk with the commands of jobs: a directory, lines in files, gates that hold a command.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

use crate::waiting::wait_until;

/// A directory of the test's own, gone at its end.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

/// The whole lines of a file; none when it is not there.
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

/// Waits until a file has `count` whole lines.
pub fn wait_for_lines(path: &Path, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    wait_until(&format!("{count} lines in {}", path.display()), || {
        found = lines(path);
        found.len() >= count
    });
    found
}

/// A named pipe that a command waits at. It stays open here, so that nothing ever finds it closed.
pub struct Gate {
    path: PathBuf,
    pipe: File,
}

impl Gate {
    /// Makes one in `dir`.
    pub fn new(dir: &Path, name: &str) -> Self {
        let path = dir.join(name);
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a named pipe can be made");
        let pipe = OpenOptions::new().read(true).write(true).open(&path).expect("a named pipe can be opened");
        Self { path, pipe }
    }

    /// The words of a shell that wait here until the gate is opened for one.
    pub fn wait(&self) -> String {
        format!("read -r _ < {}", self.path.display())
    }

    /// Lets one command pass.
    pub fn open(&self) {
        (&self.pipe).write_all(b"go\n").expect("a named pipe takes a line");
    }
}
