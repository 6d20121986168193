//! The session of this node's former process, in a locked file. Thanks to it a node that starts again need not wait until that session
//! is silent for long enough.
//!
//! The lock belongs to the open file. The keeper inherits it, and exits when it has reaped its last child. So whoever gets the lock
//! knows that the process that wrote the file is dead, and its children before it. That holds for this file on this machine since it
//! came up; a copy, or the file of another machine, proves nothing. Where there is no proof, others end the session once
//! it is silent.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::lease::Timing;
use carillon_domain::name::in_alphabet;
use carillon_store::sqlite::lock_file;
use tracing::{info, warn};

use super::SharedStore;
use carillon_node::engine::end_session;

/// A new number each time the machine comes up.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The locked file of one node. Several nodes may share a directory.
#[derive(Debug)]
pub(super) struct SessionFile {
    file: File,
    path: PathBuf,
    former: Option<SessionId>,
}

impl SessionFile {
    /// Takes the lock of the node in `node.data_dir`, waiting up to `wait` for the keeper of its former process to go. `None`, and a line in
    /// the log, where it cannot be had: the node does without.
    pub fn lock(data_dir: &Path, node: &str, wait: Duration) -> Option<Self> {
        let path = data_dir.join(format!("carillon-{}.session", in_alphabet(node)));
        match Self::at(&path, wait) {
            Ok(Some(held)) => return Some(held),
            Ok(None) => info!(
                "{} is held by another process, so a former session of this node ends once it is silent",
                path.display()
            ),
            Err(error) => info!(
                "{} cannot be used ({error}): after a crash this node's jobs wait until its session is silent",
                path.display()
            ),
        }
        None
    }

    fn at(path: &Path, wait: Duration) -> io::Result<Option<Self>> {
        let (mut file, is_locked) = lock_file(path, wait)?;
        if !is_locked {
            return Ok(None);
        }
        let mut text = String::new();
        // Half of a file proves nothing.
        _ = (&mut file).take(1_000).read_to_string(&mut text);
        let former = session_in(&text, &place_of(&file)?);
        Ok(Some(Self { file, path: path.to_owned(), former }))
    }

    /// The session of the former process, which is certainly dead.
    pub const fn former(&self) -> Option<SessionId> {
        self.former
    }

    /// From now on it is this session that the next process finds.
    pub fn note(&mut self, session: SessionId) {
        let noted = self.write(session);
        if let Err(error) = noted {
            warn!(
                "{} cannot be written ({error}): after a crash this node's jobs wait until its session is silent",
                self.path.display()
            );
        }
    }

    fn write(&mut self, session: SessionId) -> io::Result<()> {
        let text = format!("{session}\n{}\n", place_of(&self.file)?);
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl AsFd for SessionFile {
    /// The file that the keeper inherits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Where a lock on this file counts: this machine since it came up, and this file.
fn place_of(file: &File) -> io::Result<String> {
    let (boot, metadata) = (std::fs::read_to_string(BOOT_ID)?, file.metadata()?);
    Ok(format!("boot {}, file {}:{}", boot.trim(), metadata.dev(), metadata.ino()))
}

/// The session in the text of a file, if that was written at this place.
fn session_in(text: &str, place: &str) -> Option<SessionId> {
    let (session, written_at) = text.split_once('\n')?;
    let bits = u64::from_str_radix(session, 16).ok().filter(|_| written_at.trim_end() == place)?;
    Some(SessionId::from_random(bits)).filter(|id| id.as_u64() == bits)
}

/// Ends the session of the former process as that of `me`, trying until it has ended. The nodes sweep it after their next heartbeats, as any
/// ended one. Other nodes may know that the database has lost commits; they say so with their next heartbeat, so it waits for that first.
pub(super) async fn end_former(store: SharedStore, me: SessionId, former: SessionId, timing: Timing, limit: Duration) {
    if !is_alone_with(&store, me, former).await {
        tokio::time::sleep(timing.heartbeat + timing.heartbeat_timeout).await;
    }
    while !end_session(&*store, me, former, limit).await.unwrap_or(false) {
        tokio::time::sleep(timing.heartbeat).await;
    }
    info!("session {former} of this node's former process has ended: nothing of it lives");
}

async fn is_alone_with(store: &SharedStore, me: SessionId, former: SessionId) -> bool {
    store.sessions().await.is_ok_and(|all| all.iter().all(|one| one.beat.id == me || one.beat.id == former))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another test of this process may be between fork and exec, and its child hold a copy of the descriptor until then.
    const AWHILE: Duration = Duration::from_secs(10);

    fn former(path: &Path) -> Option<SessionId> {
        SessionFile::at(path, AWHILE).unwrap().expect("nobody holds it").former()
    }

    #[test]
    fn the_next_process_finds_the_session_and_only_once_nobody_holds_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = SessionFile::lock(dir.path(), "a/b", AWHILE).unwrap();
        assert_eq!(first.former(), None);
        let session = SessionId::from_random(7);
        first.note(SessionId::from_random(1));
        first.note(session);
        let path = first.path.clone();
        assert_eq!(path, dir.path().join("carillon-a_b.session"));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(SessionFile::lock(dir.path(), "a/b", Duration::ZERO).is_none(), "it is held");
        let keepers = first.as_fd().try_clone_to_owned().unwrap();
        drop(first);
        assert!(SessionFile::at(&path, Duration::ZERO).unwrap().is_none(), "the keeper holds it");
        drop(keepers);
        assert_eq!(former(&path), Some(session));
        assert_eq!(former(&path), Some(session), "until another one is noted");
        assert!(SessionFile::lock(&dir.path().join("nowhere"), "a", Duration::ZERO).is_none());
    }

    #[test]
    fn a_copy_another_boot_and_half_a_file_prove_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        SessionFile::at(&path, AWHILE).unwrap().unwrap().note(SessionId::from_random(7));
        let copy = dir.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(former(&copy), None);
        let text = std::fs::read_to_string(&path).unwrap();
        let place = text.split_once('\n').unwrap().1.trim_end().to_owned();
        assert_eq!(session_in(&text, &place), Some(SessionId::from_random(7)));
        for other in [text.replace("boot ", "boot 1"), text[..20].to_owned(), String::new(), format!("x{text}")] {
            assert_eq!(session_in(&other, &place), None, "{other:?}");
        }
        assert_eq!(session_in(&text[1..], &place), None, "no session has such a number");
    }
}
