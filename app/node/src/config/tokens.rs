//! `http.tokens`: who may call the API, with which rights.

use std::fmt;

use carillon_domain::name::{check_label_key, check_namespace};
use config::{Map, Value, ValueKind};

use super::section::Section;

const TOKEN_KEYS: [&str; 5] = ["name", "sha256", "certificate", "role", "namespaces"];
const BAD_SHA256: &str = "sha256 must be the 64 hexadecimal digits of the token's SHA-256";
const BAD_CERTIFICATE: &str = "certificate must be the SHA-256 of a certificate, 64 hexadecimal digits, as \
     `openssl x509 -noout -fingerprint -sha256 -in FILE` prints it";

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

/// The SHA-256 of a token or certificate. Not shown, although the token cannot be told from it.
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
    /// The digest of the bearer token by which it is recognised.
    pub sha256: Option<TokenDigest>,
    /// The fingerprint of the client certificate by which it is recognised: the SHA-256 of its DER.
    pub certificate: Option<TokenDigest>,
    /// The rights of its bearer.
    pub role: Role,
    /// Where; `None` is everywhere.
    pub namespaces: Option<Vec<String>>,
}

impl TokenConfig {
    /// The key by which one of two entries would be taken for the other.
    fn shares(&self, other: &Self) -> Option<&'static str> {
        let same = |a: Option<TokenDigest>, b: Option<TokenDigest>| a.is_some() && a == b;
        if self.name == other.name {
            Some("name")
        } else if same(self.sha256, other.sha256) {
            Some("sha256")
        } else {
            same(self.certificate, other.certificate).then_some("certificate")
        }
    }
}

pub(super) fn tokens(section: &mut Section<'_>) -> Vec<TokenConfig> {
    let mut tokens: Vec<TokenConfig> = Vec::new();
    let items = section.array("tokens", "an array of tables with name, sha256 or certificate, role and namespaces");
    for (index, item) in items.into_iter().enumerate() {
        let read = match item.kind {
            ValueKind::Table(table) => token(table),
            _ => Err("it must be a table with name, sha256 or certificate, role and namespaces".into()),
        };
        match read {
            Ok(token) => match tokens.iter().find_map(|other| token.shares(other)) {
                Some(key) => section.fault("tokens", &format!("entry {}: its {key} stands twice", index + 1)),
                None => tokens.push(token),
            },
            Err(what) => section.fault("tokens", &format!("entry {}: {what}", index + 1)),
        }
    }
    tokens
}

/// Reads an entry; the errors never show a digest, nor a token that was written in its place.
fn token(mut table: Map<String, Value>) -> Result<TokenConfig, String> {
    let mut text = |key: &str| match table.remove(key).map(|value| value.kind) {
        Some(ValueKind::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{key} must be a string")),
        None => Ok(None),
    };
    let name = text("name")?.ok_or("name is missing")?;
    check_label_key(&name).map_err(|error| format!("name: {error}"))?;
    let sha256 = text("sha256")?.map(|text| digest(&text).ok_or(BAD_SHA256)).transpose()?;
    let certificate = text("certificate")?.map(|text| fingerprint(&text).ok_or(BAD_CERTIFICATE)).transpose()?;
    if sha256.is_none() && certificate.is_none() {
        return Err(
            "sha256 is missing: the SHA-256 of the token, or certificate, that of a client's certificate".into()
        );
    }
    let role = text("role")?.ok_or("role is missing")?;
    let role = Role::ALL.into_iter().find(|known| known.as_str() == role);
    let role = role.ok_or("role must be viewer, operator or admin")?;
    let namespaces = table.remove("namespaces").map(namespaces).transpose()?.flatten();
    match table.keys().next() {
        Some(key) => Err(format!("{key:?} is not known; a token has: {}", TOKEN_KEYS.join(", "))),
        None => Ok(TokenConfig { name, sha256, certificate, role, namespaces }),
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

/// A fingerprint may have colons between its bytes, as openssl prints them.
fn fingerprint(text: &str) -> Option<TokenDigest> {
    digest(&text.replace(':', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_openssl_prints_it() {
        let plain = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let pairs: Vec<_> = plain.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap()).collect();
        let printed = pairs.join(":").to_uppercase();
        assert!(fingerprint(plain).is_some() && fingerprint(plain) == fingerprint(&printed));
        for bad in ["", "sha256", &plain[1..], &format!("{plain}0"), &plain.replace('9', "g")] {
            assert!(fingerprint(bad).is_none(), "{bad}");
        }
        assert!(digest(&printed).is_none(), "the digest of a token has no colons");
    }
}
