//! The memory of a database that is away: a file, because the node may end itself or be killed before it can tell anybody.
//!
//! It is written once the database counts as away, and removed once that was told. A node that finds one at its start tells it.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use carillon_domain::name::in_alphabet;
use carillon_domain::time::Timestamp;
use carillon_keeper::boottime_ms;
use carillon_store::{Clock, SystemClock};
use tracing::warn;

use crate::engine::EngineHandle;

/// The file of one node. Several nodes may share a directory.
#[derive(Debug, Clone)]
pub struct AwayNote {
    path: PathBuf,
}

impl AwayNote {
    /// Of the node in `node.data_dir`.
    pub fn of(data_dir: &Path, node: &str) -> Self {
        Self { path: data_dir.join(format!("carillon-{}.database-away", in_alphabet(node))) }
    }

    /// Notes that the database has not answered since its last answer, by its own clock as far as this node knows it.
    pub fn write_of(&self, engine: &EngineHandle) {
        let counts = engine.counts();
        let silent_ms = i64::try_from(boottime_ms().saturating_sub(counts.database_heard_ms)).unwrap_or(i64::MAX);
        let now_ms = SystemClock.now().as_ms().saturating_add(counts.clock_offset_ms);
        self.write(Timestamp::from_ms(now_ms.saturating_sub(silent_ms)));
    }

    /// Notes since when. An earlier note that nobody was told of yet stays.
    fn write(&self, since: Timestamp) {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
        match file.and_then(|mut file| writeln!(file, "{since}")) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                let path = self.path.display();
                warn!("a node that ends now forgets that the database is away: {path} cannot be written ({error})");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Since when the database was away, if nobody was told yet. A note that holds no time is removed.
    pub(super) fn read(&self) -> Option<Timestamp> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let since = Timestamp::parse_rfc3339(text.trim());
        if since.is_none() {
            warn!("{} holds no time, so the database that was away then is not told", self.path.display());
            self.remove();
        }
        since
    }

    /// It was told.
    pub(super) fn remove(&self) {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let path = self.path.display();
                warn!(
                    "{path} cannot be removed ({error}): remove it, or the next start tells again that the database was away"
                );
            }
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_outlives_the_node_until_it_was_told() {
        let dir = tempfile::tempdir().unwrap();
        let note = AwayNote::of(dir.path(), "a/b");
        assert_eq!(note.read(), None);
        note.remove();
        let at = |second: i64| Timestamp::from_secs(1_795_000_000 + second);
        note.write(at(1));
        note.write(at(2));
        assert_eq!(AwayNote::of(dir.path(), "a/b").read(), Some(at(1)), "it is away since the first");
        assert_eq!(AwayNote::of(dir.path(), "a").read(), None, "each node has its own");
        note.remove();
        note.write(at(3));
        assert_eq!(note.read(), Some(at(3)));

        std::fs::write(&note.path, "yesterday").unwrap();
        assert_eq!(note.read(), None);
        assert!(!note.path.exists());
        AwayNote::of(&dir.path().join("nowhere"), "a").write(at(1));
    }
}
