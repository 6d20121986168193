//! Who is calling, and what the caller may do.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use warp::http::StatusCode;
use warp::http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};

use crate::config::{Role, TokenConfig, TokenDigest};
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
        let sha256 = TokenDigest(Sha256::digest(token).into());
        Self::configured(&[TokenConfig { name: "carillon.token".into(), sha256, role: Role::Admin, namespaces: None }])
    }

    /// Whose token a request carries.
    pub(in crate::http) fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let token = bearer(headers).ok_or_else(|| unauthorized("a token is needed: Authorization: Bearer TOKEN"))?;
        let given: [u8; 32] = Sha256::digest(token).into();
        // All entries are compared, and each to its end: the time taken tells nothing.
        let mut found = None;
        for entry in &self.entries {
            if same(&entry.sha256.0, &given) {
                found = Some(entry);
            }
        }
        found.map(|entry| Caller(Arc::clone(entry))).ok_or_else(|| unauthorized("this token is not known here"))
    }
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub(in crate::http) struct Caller(Arc<TokenConfig>);

impl Caller {
    /// Refuses what the role does not reach.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.0.role >= role {
            return Ok(());
        }
        let (name, has) = (&self.0.name, self.0.role.as_str());
        Err(forbidden(format!("this needs the role {}; the token {name} has the role {has}", role.as_str())))
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

fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differences) == 0
}

fn unauthorized(detail: &str) -> Problem {
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
            assert!(tokens.caller(&headers(&[good])).is_ok(), "{good}");
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
            assert_eq!(tokens.caller(&headers(&[bad])).unwrap_err().status, 401, "{bad}");
        }
        assert!(tokens.caller(&headers(&[])).is_err());
        assert!(tokens.caller(&headers(&["Bearer open-sesame", "Bearer open-sesame"])).is_err(), "two headers");
        assert!(Tokens::configured(&[]).caller(&headers(&["Bearer x"])).is_err());
    }
}
