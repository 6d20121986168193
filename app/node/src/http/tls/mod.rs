//! TLS on the API's port: the certificate that is served now, and the handshakes.
//!
//! Each connection keeps what it began with. A certificate that is renewed on disk serves the connections that come after.

mod files;
mod handshake;
mod load;
mod watch;

pub use self::files::TlsError;
pub(in crate::http) use self::handshake::Secured;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use carillon_domain::time::Timestamp;
use tokio_rustls::rustls::ServerConfig;
use tracing::warn;

use self::load::{Loaded, load};
use self::watch::{Identity, identities};
use crate::config::TlsConfig;

/// A certificate that ends sooner is warned of.
const ENDS_SOON: Duration = Duration::from_secs(7 * 86_400);

/// The server's side of TLS.
#[derive(Debug)]
pub struct Tls {
    files: TlsConfig,
    at_start: Vec<Identity>,
    current: RwLock<Loaded>,
    handshakes_failed: AtomicU64,
    reloads_refused: AtomicU64,
}

/// The files of `http.tls` as they stand, read once.
#[derive(Debug)]
pub struct TlsLook {
    /// From when until when the certificate is valid, as far as it can be read.
    pub valid: Option<(Timestamp, Timestamp)>,
    /// Why a server would not start with them.
    pub fault: Option<TlsError>,
}

impl TlsLook {
    /// Reads the files. Blocks.
    pub fn at(files: &TlsConfig) -> Self {
        let at = |time: SystemTime| Timestamp::from_secs(seconds_since_1970(time));
        let valid = load::validity(&files.cert).ok().map(|(from, until)| (at(from), at(until)));
        Self { valid, fault: load(files).err() }
    }
}

impl Tls {
    /// Reads the files. An expired certificate is served with a warning: jobs run without the API, so a server that does not
    /// start would be worse. Blocks.
    ///
    /// # Errors
    /// [`TlsError`] when a file cannot be read, used or trusted.
    pub fn new(files: TlsConfig) -> Result<Self, TlsError> {
        // A change while they are read is found by the first look.
        let at_start = identities(&files);
        let loaded = load(&files)?;
        let tls = Self {
            at_start,
            current: RwLock::new(loaded),
            files,
            handshakes_failed: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
        };
        tls.warn_of_dates();
        Ok(tls)
    }

    /// How long the certificate is still good for, in seconds; negative once it has expired.
    pub fn expires_in_seconds(&self) -> i64 {
        let now = seconds_since_1970(SystemTime::now());
        self.read(|loaded| seconds_since_1970(loaded.not_after)).saturating_sub(now)
    }

    /// When the certificate ends.
    pub fn expires_at(&self) -> Timestamp {
        Timestamp::from_secs(self.read(|loaded| seconds_since_1970(loaded.not_after)))
    }

    /// The file of the certificate.
    pub fn certificate(&self) -> &Path {
        &self.files.cert
    }

    /// How many handshakes have failed.
    pub fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    /// How many times changed files could not be used.
    pub fn reloads_refused(&self) -> u64 {
        self.reloads_refused.load(Ordering::Relaxed)
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.read(|loaded| Arc::clone(&loaded.config))
    }

    fn read<T>(&self, what: impl FnOnce(&Loaded) -> T) -> T {
        what(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves what the files hold now, or goes on with what they held. Blocks.
    fn reload(&self) -> Result<(), TlsError> {
        match load(&self.files) {
            Ok(loaded) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
                self.warn_of_dates();
                Ok(())
            }
            Err(error) => {
                self.reloads_refused.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    fn warn_of_dates(&self) {
        let (cert, now) = (self.files.cert.display(), SystemTime::now());
        let (from, until) = self.read(|loaded| (loaded.not_before, loaded.not_after));
        let shown = |time: SystemTime| chrono::DateTime::<chrono::Utc>::from(time).format("%Y-%m-%dT%H:%M:%SZ");
        if until <= now {
            warn!("the certificate {cert} expired at {}: clients refuse it; renew it", shown(until));
        } else if from > now {
            warn!("the certificate {cert} is not valid before {}: look at this machine's clock", shown(from));
        } else if until <= now + ENDS_SOON {
            warn!("the certificate {cert} expires at {}: renew it", shown(until));
        }
    }
}

fn seconds_since_1970(time: SystemTime) -> i64 {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
