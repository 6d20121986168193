//! PEM files, and a sentence for each way in which one cannot be used.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use tokio_rustls::rustls::pki_types::pem::{self, PemObject, SectionKind};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// A file of `http.tls` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("http.tls.{key} = {path} {reason}")]
pub struct TlsError {
    /// Which key of `http.tls`.
    pub key: &'static str,
    /// Its file.
    pub path: String,
    /// The fault and its remedy.
    pub reason: String,
}

/// A file's key in the configuration and its text.
pub(super) struct PemFile<'a> {
    key: &'static str,
    path: &'a Path,
    text: Vec<u8>,
}

impl<'a> PemFile<'a> {
    /// Reads a file that anybody may know.
    pub fn open(key: &'static str, path: &'a Path) -> Result<Self, TlsError> {
        Self::read(key, path, |_| Ok(()))
    }

    /// Reads a file that nobody else may know.
    pub fn open_private(key: &'static str, path: &'a Path) -> Result<Self, TlsError> {
        Self::read(key, path, private)
    }

    fn read(
        key: &'static str,
        path: &'a Path,
        trusted: impl Fn(&Metadata) -> Result<(), String>,
    ) -> Result<Self, TlsError> {
        let mut file = Self { key, path, text: Vec::new() };
        let unreadable = |error: io::Error| {
            format!("cannot be read: {error}; it must be a PEM file that the server's user may read")
        };
        // A pipe would hold up the start for ever.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let opened = opened.map_err(|error| file.refused(unreadable(error)))?;
        let metadata = opened.metadata().map_err(|error| file.refused(unreadable(error)))?;
        if !metadata.is_file() {
            return Err(file.refused("is not a regular file; name a PEM file"));
        }
        trusted(&metadata).map_err(|reason| file.refused(reason))?;
        let read = opened.take(LONGEST + 1).read_to_end(&mut file.text);
        read.map_err(|error| file.refused(unreadable(error)))?;
        if file.text.len() as u64 > LONGEST {
            return Err(file.refused("is longer than 1 MiB; name a PEM file with one chain of certificates"));
        }
        Ok(file)
    }

    /// The certificates, at least one.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.check_pem()?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        let found = found.map_err(|error| self.broken(&error))?;
        if found.is_empty() {
            return Err(self.refused("holds no certificate; it must have a section -----BEGIN CERTIFICATE-----"));
        }
        Ok(found)
    }

    /// The first private key.
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let encrypted = [&b"BEGIN ENCRYPTED PRIVATE KEY"[..], b"Proc-Type: 4,ENCRYPTED"];
        if encrypted.iter().any(|mark| self.text.windows(mark.len()).any(|part| part == *mark)) {
            let path = self.path.display();
            return Err(self.refused(format!(
                "is encrypted, and nobody is there to type its passphrase; write it in the clear with `openssl pkey -in {path}`"
            )));
        }
        self.check_pem()?;
        match PrivateKeyDer::pem_slice_iter(&self.text).next() {
            Some(found) => found.map_err(|error| self.broken(&error)),
            None => Err(self.refused("holds no private key; it must have a section -----BEGIN PRIVATE KEY-----")),
        }
    }

    /// An error of this file.
    pub fn refused(&self, reason: impl Into<String>) -> TlsError {
        TlsError { key: self.key, path: self.path.display().to_string(), reason: reason.into() }
    }

    fn check_pem(&self) -> Result<(), TlsError> {
        match <(SectionKind, Vec<u8>)>::pem_slice_iter(&self.text).next() {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(self.broken(&error)),
            None => Err(self.refused(
                "is not PEM: no section of it begins with -----BEGIN; openssl makes PEM of DER with -outform PEM",
            )),
        }
    }

    fn broken(&self, error: &pem::Error) -> TlsError {
        let what = match error {
            pem::Error::MissingSectionEnd { .. } => "a section of it has no end".to_owned(),
            pem::Error::IllegalSectionStart { .. } => "the line that begins a section is malformed".to_owned(),
            pem::Error::Base64Decode(_) => "a section of it is not base64".to_owned(),
            other => other.to_string(),
        };
        self.refused(format!("is not PEM: {what}; write the file anew"))
    }
}

/// PostgreSQL's rule: a file of our own with mode 0600, or one of root's that a group may read, as Debian's group ssl-cert.
fn private(file: &Metadata) -> Result<(), String> {
    let (owner, own) = (file.uid(), nix::unistd::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(
            "belongs to another user, who knows the key then; it must belong to the server's user or to root".into()
        );
    }
    let allowed = if owner == 0 { 0o640 } else { 0o600 };
    if file.mode() & 0o777 & !(allowed | 0o100) != 0 {
        return Err(format!(
            "can be read or written by others (its mode is {:04o}); `chmod {allowed:o}` it",
            file.mode() & 0o777
        ));
    }
    Ok(())
}
