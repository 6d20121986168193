//! Renewal without a restart: the files are looked at now and then, and read again when they have changed.
//!
//! Certificate and key are two files, so a look may fall between the writing of one and of the other. Files are read once two
//! looks have found them the same.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::Tls;
use crate::config::TlsConfig;

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long until the second look at files that have changed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How a file is told from the one that was there before; `None` where there is none.
pub(super) type Identity = Option<[i64; 7]>;

impl Tls {
    /// Follows the files for ever. Files that cannot be used leave everything as it is, with one warning.
    pub async fn watch(self: Arc<Self>) {
        let mut known = self.at_start.clone();
        while let Some(seen) = self.changed(&known).await {
            known = seen;
            let tls = Arc::clone(&self);
            match tokio::task::spawn_blocking(move || tls.reload()).await {
                Ok(Ok(())) => info!("the certificate {} was read anew", self.files.cert.display()),
                Ok(Err(error)) => warn!("TLS goes on with the former certificate: {error}"),
                // The server ends.
                Err(_) => return,
            }
        }
    }

    /// Waits until the files are no longer the known ones, and have stopped changing. `None` when the server ends.
    async fn changed(self: &Arc<Self>, known: &[Identity]) -> Option<Vec<Identity>> {
        let mut last = known.to_vec();
        loop {
            let settling = last != known;
            tokio::time::sleep(if settling { LOOK_AGAIN_AFTER } else { LOOK_EVERY }).await;
            let seen = self.look().await?;
            if settling && seen == last {
                return Some(seen);
            }
            last = seen;
        }
    }

    async fn look(self: &Arc<Self>) -> Option<Vec<Identity>> {
        let tls = Arc::clone(self);
        tokio::task::spawn_blocking(move || identities(&tls.files)).await.ok()
    }
}

/// How the files are told from those that were there before.
pub(super) fn identities(files: &TlsConfig) -> Vec<Identity> {
    let files = [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()];
    files.into_iter().flatten().map(|path| identity(path)).collect()
}

/// Of the file that a symbolic link leads to, as tools for renewal make them. The time of change tells a new mode too.
fn identity(path: &Path) -> Identity {
    let file = std::fs::metadata(path).ok()?;
    let whole = |number: u64| number.cast_signed();
    let (written, changed) = ([file.mtime(), file.mtime_nsec()], [file.ctime(), file.ctime_nsec()]);
    Some([whole(file.dev()), whole(file.ino()), whole(file.size()), written[0], written[1], changed[0], changed[1]])
}
