//! The names of the files that belong to a database.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A file whose name begins with that of another.
pub(in crate::sqlite) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// The directory in which a file stands.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
