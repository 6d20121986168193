//! Plugins that this node does not load, as the watcher of the plugins directory finds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files and why each is refused. Clones are the same.
#[derive(Clone, Default)]
pub struct RefusedPlugins {
    files: Arc<Mutex<BTreeMap<PathBuf, String>>>,
}

impl RefusedPlugins {
    /// A file is not loaded.
    pub fn refused(&self, file: &Path, why: &str) {
        self.lock().insert(file.to_owned(), why.to_owned());
    }

    /// A file is loaded.
    pub fn loaded(&self, file: &Path) {
        self.lock().remove(file);
    }

    /// Those that are still there.
    pub(super) fn now(&self) -> BTreeMap<PathBuf, String> {
        let mut files = self.lock();
        files.retain(|file, _| file.exists());
        files.clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
