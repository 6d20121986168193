//! Which authorities may vouch for a receiver.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where systems keep the authorities that they trust: Debian, Fedora, openSUSE, Alpine.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// The authorities of `ca_file` and no others; without one, the system's, or Mozilla's where the system has none.
///
/// # Errors
/// A sentence about the file.
pub(super) fn authorities(ca_file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    match ca_file {
        Some(file) => read(file).map_err(|fault| format!("alerts.ca_file: {} {fault}", file.display())),
        None => Ok(BUNDLES.iter().find_map(|file| read(Path::new(file)).ok()).unwrap_or_default()),
    }
}

/// TLS 1.2 and 1.3 for clients that trust `authorities`; Mozilla's if there are none.
pub(super) fn client(authorities: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut pem = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut pem));
    opened.map_err(|error| format!("cannot be read: {error}"))?;
    // The system may trust an old one that rustls cannot read. That is no reason to trust nobody.
    let usable = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).filter(usable).collect();
    if certificates.is_empty() {
        return Err("holds no certificate of an authority in PEM".to_owned());
    }
    Ok(certificates)
}
