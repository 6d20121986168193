//! Which authorities may vouch for a server.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Where systems keep the authorities that they trust: Debian, Fedora, openSUSE, Alpine.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// Those in `ca_file` and no others; without one, the system's, or Mozilla's where the system has none.
pub(crate) fn config(ca_file: Option<&Path>) -> Result<TlsConfig, String> {
    let roots = match ca_file {
        Some(file) => read(file).map_err(|fault| format!("the ca_file {} {fault}", file.display()))?,
        None => BUNDLES.iter().find_map(|file| read(Path::new(file)).ok()).unwrap_or(RootCerts::WebPki),
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

/// No error shows the file's content: a user who may save a job may name any file.
fn read(file: &Path) -> Result<RootCerts, String> {
    let mut pem = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut pem));
    opened.map_err(|error| format!("cannot be read: {error}"))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err("holds no certificate in PEM".to_owned());
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
