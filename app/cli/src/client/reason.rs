//! Why a server cannot be reached, in words, and what to do about it.

use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

const ANOTHER: &str = "start one with `carillon serve`, or name another with --server or CARILLON_SERVER";
const AUTHORITY: &str = "name a PEM file with its authority's certificate with --ca or CARILLON_CA";
const OWN_CERTIFICATE: &str = "look at --cert and --key, or at CARILLON_CERT and CARILLON_KEY";

/// A part of a sentence each.
pub(super) struct Reason {
    /// Why.
    pub what: String,
    /// The remedy.
    pub advice: &'static str,
}

impl Reason {
    /// The words for an error of ureq.
    pub fn of(error: &ureq::Error) -> Self {
        let (what, advice) = match error {
            ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                Some(error) => of_tls(error),
                None => (of_io(error), ANOTHER),
            },
            ureq::Error::Rustls(error) => of_tls(error),
            ureq::Error::HostNotFound => ("there is no host of that name".into(), ANOTHER),
            ureq::Error::Timeout(_) => ("it did not answer in time".into(), ANOTHER),
            other => (other.to_string(), ANOTHER),
        };
        Self { what, advice }
    }
}

fn of_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there".into(),
        _ => error.to_string(),
    }
}

fn of_tls(error: &Error) -> (String, &'static str) {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::InvalidMessage(_) => (
            "it does not speak TLS".into(),
            "write http:// in place of https:// where that is safe, or name another port",
        ),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::DecryptError => {
                (format!("it does not take this client's certificate ({alert:?})"), OWN_CERTIFICATE)
            }
            other => (format!("it ended the TLS handshake ({other:?})"), ANOTHER),
        },
        other => (format!("TLS failed: {other}"), ANOTHER),
    }
}

fn of_certificate(error: &CertificateError) -> (String, &'static str) {
    match error {
        CertificateError::UnknownIssuer => {
            ("its certificate is of an authority that is not trusted here".into(), AUTHORITY)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("its certificate has expired".into(), "renew it at the server, and look at this machine's clock")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("its certificate is not valid yet".into(), "look at this machine's clock")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "its certificate is for another name".into(),
            "write a name that it is for into --server or CARILLON_SERVER",
        ),
        other => (format!("its certificate cannot be trusted ({other})"), AUTHORITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_tls_have_words_and_a_remedy() {
        let tls = |error: Error| ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
        let certificate = |error| tls(Error::InvalidCertificate(error));
        for (error, what, advice) in [
            (certificate(CertificateError::UnknownIssuer), "not trusted here", "--ca or CARILLON_CA"),
            (certificate(CertificateError::Expired), "has expired", "renew it"),
            (certificate(CertificateError::NotValidForName), "for another name", "--server"),
            (tls(Error::AlertReceived(AlertDescription::UnknownCA)), "does not take this client's", "--cert and --key"),
            (tls(Error::AlertReceived(AlertDescription::ProtocolVersion)), "ended the TLS handshake", "--server"),
            (ureq::Error::Io(io::ErrorKind::ConnectionRefused.into()), "nothing listens there", "carillon serve"),
        ] {
            let reason = Reason::of(&error);
            assert!(
                reason.what.contains(what) && reason.advice.contains(advice),
                "{} / {}",
                reason.what,
                reason.advice
            );
        }
    }
}
