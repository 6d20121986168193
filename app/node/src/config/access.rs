//! `[http]`: where the API listens, who may call it, and the rules that keep it from being open by mistake.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::public_url::PublicUrl;
use super::section::{Root, Section};
use super::tokens::tokens;
use super::{HttpConfig, path};

const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7_650);

/// `[http] tls`. The files are read at start, and again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate and its chain, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The authorities of client certificates, in PEM; without it none is asked for.
    pub client_ca: Option<PathBuf>,
}

pub(super) fn http(root: &mut Root) -> HttpConfig {
    let mut section = root.section("http");
    let bind = section.text("bind", address).unwrap_or(DEFAULT_BIND);
    let base_path = section.text("base_path", base_path).unwrap_or_default();
    let public_url = section.text("public_url", PublicUrl::parse);
    let tokens = tokens(&mut section);
    let plaintext = section.flag("plaintext", false);
    let hosts = hosts(&mut section);
    let (tls_given, tls) = tls(&mut section);
    if !bind.ip().is_loopback() {
        if tokens.is_empty() {
            section.fault(
                "bind",
                &format!("{bind} is not a loopback address, and http.tokens is empty: other machines get in with a token only"),
            );
        }
        if !plaintext && !tls_given {
            section.fault(
                "bind",
                &format!(
                    "{bind} is not a loopback address, and tokens would cross the network in the clear: give http.tls a \
                     certificate, or put a proxy that speaks TLS in front and set http.plaintext = true, or bind to 127.0.0.1"
                ),
            );
        }
    }
    if plaintext && tls_given {
        section.fault("plaintext", "http.tls is given too, and this port speaks TLS only: remove one of the two");
    }
    let asked_for = tls.as_ref().map_or(tls_given, |tls| tls.client_ca.is_some());
    if let Some(token) = tokens.iter().find(|token| token.certificate.is_some() && !asked_for) {
        let name = &token.name;
        section.fault(
            "tokens",
            &format!("{name} has a certificate, and clients are asked for one with http.tls.client_ca only"),
        );
    }
    HttpConfig { bind, base_path, public_url, tokens, plaintext, hosts, tls }
}

/// Whether it is given at all, and what can be used of it.
fn tls(section: &mut Section<'_>) -> (bool, Option<TlsConfig>) {
    const ALLOWED: &str = "a table of paths: cert, key, client_ca (in the environment CARILLON__HTTP__TLS__CERT=path)";
    let Some(given) = section.table("tls", ALLOWED) else { return (false, None) };
    let (mut cert, mut key, mut client_ca) = (None, None, None);
    for (name, text) in given {
        let slot = match name.as_str() {
            "cert" => &mut cert,
            "key" => &mut key,
            "client_ca" => &mut client_ca,
            _ => {
                section.fault("tls", &format!("{name:?} is not known; it has: cert, key, client_ca"));
                continue;
            }
        };
        match path(&text) {
            Ok(path) => *slot = Some(path),
            Err(_) => section.fault("tls", &format!("{name} is empty: it is the path of a PEM file")),
        }
    }
    match (cert, key) {
        (Some(cert), Some(key)) => (true, Some(TlsConfig { cert, key, client_ca })),
        _ => {
            section.fault("tls", "it needs cert and key, the paths of the certificate's chain and of its private key");
            (true, None)
        }
    }
}

/// A prefix of all paths, as a proxy in front may want it.
fn base_path(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let segments =
        || text[1..].split('/').all(|one| !one.is_empty() && !["..", "."].contains(&one) && one.chars().all(plain));
    if text.is_empty() || (text.starts_with('/') && segments()) {
        return Ok(text.to_owned());
    }
    Err("\"\", or a path of letters, digits and -._~ that begins with a slash and ends without one, such as \"/cron\""
        .into())
}

/// Names as they stand in the header `Host`; not URLs.
fn hosts(section: &mut Section<'_>) -> Vec<String> {
    let hosts = section.texts("hosts");
    for host in &hosts {
        if host.contains(|c: char| c == '/' || c == '*' || c.is_whitespace() || !c.is_ascii()) {
            section.fault("hosts", &format!("{host:?} is not a host name, such as carillon.example.org"));
        }
    }
    hosts
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| "an address and a port, such as 127.0.0.1:7650 or [::1]:7650".into())
}
