//! Encryption of connections, with the modes and meanings of MySQL's own clients.

use std::fmt::Display;

use mysql_async::SslOpts;

/// How much a connection must be protected, each mode more than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::mysql) enum Mode {
    /// Never encrypted.
    Disabled,
    /// Encrypted when the server offers it.
    #[default]
    Preferred,
    /// Encrypted, whoever the server is.
    Required,
    /// As before, and the certificate comes from a known authority.
    VerifyCa,
    /// As before, and the certificate is for the host of the address.
    VerifyIdentity,
}

impl Mode {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Disabled, "disabled"),
        (Self::Preferred, "preferred"),
        (Self::Required, "required"),
        (Self::VerifyCa, "verify_ca"),
        (Self::VerifyIdentity, "verify_identity"),
    ];

    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(mode, _)| *mode)
    }

    pub fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }
}

/// The driver's options; the error is a sentence.
pub(in crate::mysql) fn options(mode: Mode, ca: Option<&str>) -> Result<SslOpts, String> {
    let ssl = SslOpts::default();
    let Some(path) = ca else { return Ok(ssl.with_danger_accept_invalid_certs(true)) };
    let authority = std::fs::read(path).map_err(|error| format!("ssl-ca {path} cannot be read: {error}"))?;
    if !String::from_utf8_lossy(&authority).contains("-----BEGIN CERTIFICATE-----") {
        return Err(format!("ssl-ca {path} has no certificate in it: it must be a PEM file"));
    }
    let ssl = ssl.with_root_certs(vec![authority.into()]).with_disable_built_in_roots(true);
    if mode == Mode::VerifyIdentity {
        return Ok(ssl);
    }
    // The driver looks for this word in the sentence of its TLS library to learn that only the name is wrong. Newer releases of the
    // library no longer have it, but say there which name was expected. The chain is checked before the name.
    Ok(ssl.with_danger_skip_domain_validation(true).with_danger_tls_hostname_override(Some("NotValidForName")))
}

/// A handshake that failed.
pub(in crate::mysql) fn refused(problem: impl Display) -> String {
    format!(
        "TLS failed ({problem}): for verify_ca, ssl-ca must name the authority that signed the server's certificate; for \
         verify_identity, the certificate must also be for the host that the address names"
    )
}
