//! `[http]`: where the API listens, who may call it, and the rules that keep it from being open by mistake.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use carillon_domain::name::{check_label_key, check_namespace};
use config::{Map, Value, ValueKind};

use super::HttpConfig;
use super::section::{Root, Section};

const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7_650);
const TOKEN_KEYS: [&str; 4] = ["name", "sha256", "role", "namespaces"];

/// The rights of a caller. Each role has those of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read.
    Viewer,
    /// Also run, pause, resume and cancel.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// Every value, the weakest first.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

/// The SHA-256 of a token. Not shown, although the token cannot be told from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenDigest(pub [u8; 32]);

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

/// One entry of `http.tokens`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenConfig {
    /// Whose it is, for people.
    pub name: String,
    /// The digest by which it is recognised.
    pub sha256: TokenDigest,
    /// The rights of its bearer.
    pub role: Role,
    /// Where; `None` is everywhere.
    pub namespaces: Option<Vec<String>>,
}

pub(super) fn http(root: &mut Root) -> HttpConfig {
    let mut section = root.section("http");
    let bind = section.text("bind", address).unwrap_or(DEFAULT_BIND);
    let tokens = tokens(&mut section);
    let plaintext = section.flag("plaintext", false);
    let hosts = hosts(&mut section);
    if section.take("tls").is_some() {
        section.fault(
            "tls",
            "this version speaks TLS only through a proxy in front of it: remove http.tls, let the proxy reach \
             http.bind and say so with http.plaintext = true",
        );
    }
    if !bind.ip().is_loopback() {
        if tokens.is_empty() {
            section.fault(
                "bind",
                &format!("{bind} is not a loopback address, and http.tokens is empty: other machines get in with a token only"),
            );
        }
        if !plaintext {
            section.fault(
                "bind",
                &format!(
                    "{bind} is not a loopback address, and tokens would cross the network in the clear: put a proxy that \
                     speaks TLS in front and set http.plaintext = true, or bind to 127.0.0.1"
                ),
            );
        }
    }
    HttpConfig { bind, tokens, plaintext, hosts }
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

fn tokens(section: &mut Section<'_>) -> Vec<TokenConfig> {
    let mut tokens: Vec<TokenConfig> = Vec::new();
    let items = section.array("tokens", "an array of tables with name, sha256, role and namespaces");
    for (index, item) in items.into_iter().enumerate() {
        let read = match item.kind {
            ValueKind::Table(table) => token(table),
            _ => Err("it must be a table with name, sha256, role and namespaces".into()),
        };
        match read {
            Ok(token) if tokens.iter().any(|other| other.name == token.name || other.sha256 == token.sha256) => {
                section.fault("tokens", &format!("entry {}: its name or its sha256 stands twice", index + 1));
            }
            Ok(token) => tokens.push(token),
            Err(what) => section.fault("tokens", &format!("entry {}: {what}", index + 1)),
        }
    }
    tokens
}

/// Reads an entry; the errors never show a digest, nor a token that was written in its place.
fn token(mut table: Map<String, Value>) -> Result<TokenConfig, String> {
    let mut text = |key: &str| match table.remove(key).map(|value| value.kind) {
        Some(ValueKind::String(text)) => Ok(text),
        Some(_) => Err(format!("{key} must be a string")),
        None => Err(format!("{key} is missing")),
    };
    let name = text("name")?;
    check_label_key(&name).map_err(|error| format!("name: {error}"))?;
    let sha256 = digest(&text("sha256")?).ok_or("sha256 must be the 64 hexadecimal digits of the token's SHA-256")?;
    let role = text("role")?;
    let role = Role::ALL.into_iter().find(|known| known.as_str() == role);
    let role = role.ok_or("role must be viewer, operator or admin")?;
    let namespaces = table.remove("namespaces").map(namespaces).transpose()?.flatten();
    match table.keys().next() {
        Some(key) => Err(format!("{key:?} is not known; a token has: {}", TOKEN_KEYS.join(", "))),
        None => Ok(TokenConfig { name, sha256, role, namespaces }),
    }
}

fn namespaces(value: Value) -> Result<Option<Vec<String>>, String> {
    const ALLOWED: &str = "namespaces must be an array of at least one namespace; leave it out for all of them";
    let ValueKind::Array(items) = value.kind else { return Err(ALLOWED.into()) };
    let mut names = Vec::new();
    for item in items {
        match item.kind {
            ValueKind::String(name) if name == "*" => return Ok(None),
            ValueKind::String(name) => {
                check_namespace(&name).map_err(|error| error.to_string())?;
                names.push(name);
            }
            _ => return Err(ALLOWED.into()),
        }
    }
    if names.is_empty() { Err(ALLOWED.into()) } else { Ok(Some(names)) }
}

fn digest(text: &str) -> Option<TokenDigest> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(TokenDigest(digest))
}
