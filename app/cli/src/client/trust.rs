//! Certificates: those that are trusted, and the one that is shown.

use std::fs;
use std::path::Path;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::args::ServerArgs;
use crate::failure::CommandFailure;

/// The arguments' certificates; by default the well-known authorities are trusted and none is shown.
pub(super) fn config(args: &ServerArgs) -> Result<TlsConfig, CommandFailure> {
    let mut tls = TlsConfig::builder();
    if let Some(path) = &args.ca {
        let trusted: Vec<_> = certificates(path)?.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
        tls = tls.root_certs(RootCerts::from(trusted));
    }
    if let (Some(cert), Some(key)) = (&args.cert, &args.key) {
        tls = tls.client_cert(Some(shown(cert, key)?));
    }
    Ok(tls.build())
}

fn shown(cert: &Path, key: &Path) -> Result<ClientCert, CommandFailure> {
    let chain = certificates(cert)?;
    let text = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(&text);
    let private = private.map_err(|_| {
        let key = key.display();
        CommandFailure::usage(format!("{key} holds no private key in PEM that is in the clear (--key, CARILLON_KEY)"))
    })?;
    // ureq panics where they do not fit.
    let fits = CertifiedKey::from_der(chain.clone(), private, &ring::default_provider());
    fits.map_err(|error| {
        let (cert, key) = (cert.display(), key.display());
        CommandFailure::usage(match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{key} is not the key of the certificate {cert}; name the two that belong together")
            }
            error => format!("the certificate {cert} with the key {key} cannot be used: {error}"),
        })
    })?;
    let key =
        PrivateKey::from_pem(&text).map_err(|error| CommandFailure::usage(format!("{}: {error}", key.display())))?;
    let chain: Vec<_> = chain.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    Ok(ClientCert::new_with_certs(&chain, key))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CommandFailure> {
    let shown = path.display();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| CommandFailure::usage(format!("{shown} is not a PEM file: {error}")))?;
    match found.is_empty() {
        true => Err(CommandFailure::usage(format!("{shown} holds no certificate in PEM"))),
        false => Ok(found),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    fs::read(path).map_err(|error| CommandFailure::usage(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use carillon_doubles::certificates::Authority;

    use super::*;

    #[test]
    fn what_does_not_belong_together_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new("ours");
        let (one, other) = (authority.client("one"), authority.client("other"));
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (cert, key) = (write("cert.pem", &one.cert), write("key.pem", &one.key));
        let other = write("other.pem", &other.key);
        let empty = write("empty.pem", "");
        assert!(shown(&cert, &key).is_ok());
        for (cert, key, said) in [
            (&cert, &other, "is not the key of the certificate"),
            (&cert, &cert, "holds no private key in PEM"),
            (&key, &key, "holds no certificate in PEM"),
            (&empty, &key, "holds no certificate in PEM"),
            (&dir.path().join("nothing"), &key, "cannot read"),
        ] {
            let failure = shown(cert, key).unwrap_err();
            assert!(failure.sentence.contains(said), "{} lacks {said}", failure.sentence);
        }
    }
}
