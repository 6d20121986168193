//! Who is calling, and what the caller may do.

use std::sync::Arc;

use carillon_store::NamespaceScope;
use sha2::{Digest, Sha256};
use warp::http::StatusCode;
use warp::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};

use crate::config::{Role, TokenConfig, TokenDigest};
use crate::http::connection::Fingerprint;
use crate::http::problem::Problem;

/// Longer ones are not looked at.
const LONGEST_TOKEN: usize = 1_024;

/// The tokens that are let in. Only their digests are kept.
#[derive(Debug, Clone)]
pub struct Tokens {
    entries: Vec<Arc<TokenConfig>>,
}

impl Tokens {
    /// The configured ones.
    pub fn configured(entries: &[TokenConfig]) -> Self {
        Self { entries: entries.iter().cloned().map(Arc::new).collect() }
    }

    /// One token that may do everything.
    pub fn one_admin(token: &str) -> Self {
        let sha256 = Some(TokenDigest(Sha256::digest(token).into()));
        let name = "carillon.token".into();
        Self::configured(&[TokenConfig { name, sha256, certificate: None, role: Role::Admin, namespaces: None }])
    }

    /// Whose token this is.
    pub(crate) fn bearer_of(&self, token: &str) -> Option<Caller> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).ok()?);
        self.caller(&headers, None).ok()
    }

    /// The token of that name; names are no secrets.
    pub(crate) fn named(&self, name: &str) -> Option<Caller> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| Caller(Arc::clone(entry)))
    }

    /// Whose token a request carries. A bearer token goes before the certificate of the connection: it is what this request says.
    pub(crate) fn caller(&self, headers: &HeaderMap, certificate: Option<Fingerprint>) -> Result<Caller, Problem> {
        if let (false, Some(certificate)) = (headers.contains_key(AUTHORIZATION), certificate) {
            let found = self.find(&certificate.0, |entry| entry.certificate);
            return found.ok_or_else(|| unauthorized("the certificate of this connection is no token here"));
        }
        let token = bearer(headers).ok_or_else(|| unauthorized("a token is needed: Authorization: Bearer TOKEN"))?;
        let found = self.find(&Sha256::digest(token).into(), |entry| entry.sha256);
        found.ok_or_else(|| unauthorized("this token is not known here"))
    }

    /// All entries are compared, and each to its end: the time taken tells nothing.
    fn find(&self, given: &[u8; 32], known_by: impl Fn(&TokenConfig) -> Option<TokenDigest>) -> Option<Caller> {
        let mut found = None;
        for entry in &self.entries {
            if known_by(entry).is_some_and(|known| same(&known.0, given)) {
                found = Some(entry);
            }
        }
        found.map(|entry| Caller(Arc::clone(entry)))
    }
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<TokenConfig>);

impl Caller {
    /// The name of the token.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The namespaces that the token is for; `None` for all.
    pub fn namespaces(&self) -> Option<&[String]> {
        self.0.namespaces.as_deref()
    }

    /// Refuses what the role does not reach.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.0.role >= role {
            return Ok(());
        }
        let (name, has) = (&self.0.name, self.0.role.as_str());
        Err(forbidden(format!("this needs the role {}; the token {name} has the role {has}", role.as_str())))
    }

    /// The rights of the token.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// A digest of the whole entry: another one as soon as anything of it is changed.
    pub fn fingerprint(&self) -> [u8; 32] {
        let TokenConfig { name, sha256, certificate, role, namespaces } = &*self.0;
        let mut digest = Sha256::new();
        for known_by in [sha256, certificate] {
            digest.update(known_by.map_or([0; 32], |digest| digest.0));
        }
        digest.update(format!("{name:?} {role:?} {namespaces:?}"));
        digest.finalize().into()
    }

    /// The namespaces that it may see, for reports about many jobs.
    pub fn scope(&self) -> NamespaceScope {
        match self.namespaces() {
            None => NamespaceScope::All,
            Some(names) => NamespaceScope::Only(names.iter().cloned().collect()),
        }
    }

    /// Refuses a namespace that the token is not for.
    pub fn enters(&self, namespace: &str) -> Result<(), Problem> {
        if self.sees(namespace) {
            return Ok(());
        }
        Err(forbidden(format!("the token {} is not for the namespace {namespace}", self.0.name)))
    }

    /// Refuses listings over all namespaces to a token that is only for some.
    pub fn enters_all(&self) -> Result<(), Problem> {
        match &self.0.namespaces {
            None => Ok(()),
            Some(only) => Err(forbidden(format!("the token {} is only for: {}", self.0.name, only.join(", ")))),
        }
    }

    /// Whether the token is for that namespace.
    pub fn sees(&self, namespace: &str) -> bool {
        self.0.namespaces.as_ref().is_none_or(|only| only.iter().any(|name| name == namespace))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN).then_some(token)
}

/// Compares to the end: the time taken tells nothing.
pub(crate) fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differences) == 0
}

/// 401 with the scheme that is expected.
pub(crate) fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail).with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn forbidden(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_the_whole_token_lets_in() {
        let tokens = Tokens::one_admin("open-sesame");
        for good in ["Bearer open-sesame", "bearer open-sesame", "Bearer  open-sesame "] {
            assert!(tokens.caller(&headers(&[good]), None).is_ok(), "{good}");
        }
        let long = format!("Bearer {}", "x".repeat(5_000));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer open-sesam",
            "Bearer open-sesamee",
            "Basic open-sesame",
            "open-sesame",
            &long,
        ] {
            assert_eq!(tokens.caller(&headers(&[bad]), None).unwrap_err().status, 401, "{bad}");
        }
        assert!(tokens.caller(&headers(&[]), None).is_err());
        assert!(tokens.caller(&headers(&["Bearer open-sesame", "Bearer open-sesame"]), None).is_err(), "two headers");
        assert!(Tokens::configured(&[]).caller(&headers(&["Bearer x"]), None).is_err());
    }

    #[test]
    fn a_certificate_is_a_token_where_no_other_is_given() {
        let entry = |name: &str, sha256, certificate| TokenConfig {
            name: name.into(),
            sha256,
            certificate,
            role: Role::Viewer,
            namespaces: None,
        };
        let digest = |token: &str| Some(TokenDigest(Sha256::digest(token).into()));
        let tokens = Tokens::configured(&[
            entry("by-token", digest("open-sesame"), None),
            entry("by-certificate", None, Some(TokenDigest([7; 32]))),
            entry("by-either", digest("either"), Some(TokenDigest([8; 32]))),
        ]);
        let name = |values: &[&str], certificate: Option<u8>| {
            let certificate = certificate.map(|byte| Fingerprint([byte; 32]));
            tokens
                .caller(&headers(values), certificate)
                .map(|caller| caller.0.name.clone())
                .map_err(|no| no.status.as_u16())
        };
        assert_eq!(name(&[], Some(7)), Ok("by-certificate".into()));
        assert_eq!(name(&[], Some(8)), Ok("by-either".into()));
        assert_eq!(name(&["Bearer either"], None), Ok("by-either".into()));
        assert_eq!(
            name(&["Bearer open-sesame"], Some(7)),
            Ok("by-token".into()),
            "the request goes before the connection"
        );
        for (values, certificate) in
            [(&[][..], Some(9)), (&["Bearer wrong"], Some(7)), (&["Basic x"], Some(7)), (&[], None)]
        {
            assert_eq!(name(values, certificate), Err(401), "{values:?} {certificate:?}");
        }
        let digest_as_certificate: [u8; 32] = Sha256::digest("open-sesame").into();
        assert!(
            tokens.caller(&headers(&[]), Some(Fingerprint(digest_as_certificate))).is_err(),
            "one is not the other"
        );
    }
}
