//! From the files of `http.tls` to a configuration of rustls.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::files::{PemFile, TlsError};
use crate::config::TlsConfig;
use crate::http::protocol::{HTTP_1, HTTP_2};

/// The content of the files, ready to serve.
#[derive(Debug)]
pub(super) struct Loaded {
    /// For connections from now on.
    pub config: Arc<ServerConfig>,
    /// From when on the certificate is valid.
    pub not_before: SystemTime,
    /// When it expires.
    pub not_after: SystemTime,
}

/// Reads the files and checks that they fit together. Blocks.
pub(super) fn load(files: &TlsConfig) -> Result<Loaded, TlsError> {
    let cert = PemFile::open("cert", &files.cert)?;
    let chain = cert.certificates()?;
    let (not_before, not_after) = dates(&cert, &chain)?;
    let key = PemFile::open_private("key", &files.key)?;
    let private = key.private_key()?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13, &TLS12]);
    let builder = builder.map_err(|error| cert.refused(format!("cannot be served: {error}")))?;
    let clients =
        files.client_ca.as_ref().map(|path| clients(&PemFile::open("client_ca", path)?, provider)).transpose()?;
    let asks_for_certificates = clients.is_some();
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, private).map_err(|error| unfit(&cert, &key, &error));
    let mut config = config?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    if asks_for_certificates {
        // A resumed session would skip the check of the client's certificate, which may have expired meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Loaded { config: Arc::new(config), not_before, not_after })
}

/// From when until when the certificate of a file is valid.
pub(super) fn validity(path: &Path) -> Result<(SystemTime, SystemTime), TlsError> {
    let cert = PemFile::open("cert", path)?;
    dates(&cert, &cert.certificates()?)
}

/// Clients may show a certificate; one that they show must be of these authorities.
fn clients(
    file: &PemFile<'_>,
    provider: Arc<tokio_rustls::rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut authorities = RootCertStore::empty();
    for (index, certificate) in file.certificates()?.into_iter().enumerate() {
        let added = authorities.add(certificate);
        added.map_err(|error| file.refused(format!("cannot be used: its certificate {}: {error}", index + 1)))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider);
    let verifier = verifier.allow_unauthenticated().build();
    verifier.map(|verifier| verifier as _).map_err(|error| file.refused(format!("cannot be used: {error}")))
}

fn dates(file: &PemFile<'_>, chain: &[CertificateDer<'_>]) -> Result<(SystemTime, SystemTime), TlsError> {
    let malformed = |error: &dyn std::fmt::Display| {
        file.refused(format!("holds a certificate that cannot be read: {error}; have it issued anew"))
    };
    let first = chain.first().ok_or_else(|| malformed(&"there is none"))?;
    let read = Certificate::from_der(first).map_err(|error| malformed(&error))?;
    let validity = read.tbs_certificate().validity();
    Ok((validity.not_before.to_system_time(), validity.not_after.to_system_time()))
}

fn unfit(cert: &PemFile<'_>, key: &PemFile<'_>, error: &Error) -> TlsError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => key.refused(
            "is not the key of the first certificate in http.tls.cert; name the key that the certificate was made for, and put \
             the server's own certificate before those of its authorities",
        ),
        Error::InvalidCertificate(error) => cert.refused(format!("cannot be used: {error}; have it issued anew")),
        Error::General(_) => key.refused(
            "is a key of a kind that is not known here; use ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 bits or more",
        ),
        other => cert.refused(format!("cannot be served: {other}")),
    }
}
