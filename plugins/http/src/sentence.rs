//! The fault of a call, as a sentence.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use crate::target::Target;

/// A sentence on its way through the client.
#[derive(Debug)]
pub(crate) struct Sentence(String);

impl Sentence {
    pub(crate) fn into_error(text: String) -> ureq::Error {
        ureq::Error::Other(Box::new(Self(text)))
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Sentence {}

/// Why calling `target` failed.
pub(crate) fn of(error: &ureq::Error, target: &Target, timeout: Duration) -> String {
    use ureq::Error::*;
    match error {
        Other(inner) if inner.is::<Sentence>() => inner.to_string(),
        Timeout(_) => too_late(target, timeout),
        Io(error) => of_io(error, target),
        Rustls(error) => of_tls(&error.to_string(), target),
        Tls(error) => of_tls(error, target),
        Protocol(error) => format!("the answer of {target} is not valid HTTP: {error}"),
        LargeResponseHeader(..) => format!("the answer of {target} is not valid HTTP: its headers are too long"),
        other => format!("calling {target} failed: {other}"),
    }
}

pub(crate) fn too_late(target: &Target, timeout: Duration) -> String {
    format!("there was no complete answer from {target} within {timeout:?}")
}

fn of_io(error: &io::Error, target: &Target) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => format!("the connection to {target} was refused"),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::NotConnected => format!("{target} closed the connection before its answer was complete"),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => format!("{target} cannot be reached from here"),
        // How rustls speaks through the client.
        ErrorKind::InvalidData => of_tls(&error.to_string(), target),
        _ => format!("calling {target} failed: {error}"),
    }
}

fn of_tls(error: &str, target: &Target) -> String {
    let Some(fault) = error.strip_prefix("invalid peer certificate: ") else {
        return format!("TLS with {target} failed: {error}");
    };
    let fault = match fault {
        "UnknownIssuer" => "nobody that is trusted here has issued it (`ca_file` names other authorities)",
        "CaUsedAsEndEntity" => "it is that of an authority, not of a server",
        other => other,
    };
    format!("the certificate of {target} is refused: {fault}")
}
