//! Sessions of the page: who signed in, told by a cookie that every node can check.
//!
//! The cookie is a signed value: its end, the name of a token, and an HMAC. The HMAC covers the digest of that token's entry too. All nodes
//! share the key, so a session is good at each of them. A token that is removed or changed ends its sessions at once.
//!
//! A cookie is sent by the browser whoever made the request. So it lets in reads only; a write also needs the CSRF token, which
//! pages carry and other sites cannot read.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carillon_store::{LinkDigest, SigningKey, Store, StoreError};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use warp::http::header::{COOKIE, HeaderMap};

use crate::http::request::access::{Caller, Tokens, same};

/// The name of the cookie.
pub(crate) const COOKIE_NAME: &str = "carillon_session";
/// How long somebody stays signed in.
pub(crate) const SIGNED_IN_FOR: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a link waits to be used.
pub(crate) const LINK_LIVES_FOR: Duration = Duration::from_secs(60);
/// Longer values are not looked at.
const LONGEST: usize = 512;
/// Separates the parts of a signed value; neither names nor numbers have it, and cookies and paths may.
const BETWEEN: char = '~';

/// The signing of sessions and links.
pub(crate) struct Sessions {
    store: Arc<dyn Store>,
    key: OnceCell<SigningKey>,
}

/// Somebody who has signed in.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// By which token.
    pub caller: Caller,
    /// The value that forms carry.
    pub csrf: String,
}

/// The kinds of signed values; one is never taken for another.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Session,
    Link,
    Csrf,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Session => "session",
            Kind::Link => "link",
            Kind::Csrf => "csrf",
        }
    }
}

impl Sessions {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, key: OnceCell::new() }
    }

    /// The session of a request's cookie, if it has a good one.
    pub async fn of(&self, headers: &HeaderMap, tokens: &Tokens) -> Result<Option<Session>, StoreError> {
        match cookie(headers, COOKIE_NAME) {
            Some(value) => Ok(self.key().await?.session(tokens, value, now())),
            None => Ok(None),
        }
    }

    /// A new session: the value of its cookie.
    pub async fn begin(&self, caller: &Caller) -> Result<String, StoreError> {
        Ok(self.key().await?.issue(Kind::Session, caller, "", now() + SIGNED_IN_FOR.as_secs()))
    }

    /// A link that signs this caller in, once: its secret part.
    pub async fn make_link(&self, caller: &Caller) -> Result<String, StoreError> {
        let nonce = hex(&random()?);
        let secret = self.key().await?.issue(Kind::Link, caller, &nonce, now() + LINK_LIVES_FOR.as_secs());
        self.store.add_sign_in_link(digest(&secret), LINK_LIVES_FOR).await?;
        Ok(secret)
    }

    /// The caller whom a link would sign in; `None` where it was used or has expired. The link is not used.
    pub async fn of_link(&self, tokens: &Tokens, secret: &str) -> Result<Option<Caller>, StoreError> {
        let Some(caller) = self.signer_of_link(tokens, secret).await? else { return Ok(None) };
        Ok(self.store.has_sign_in_link(digest(secret)).await?.then_some(caller))
    }

    /// Uses a link; nobody can use it again.
    pub async fn use_link(&self, tokens: &Tokens, secret: &str) -> Result<Option<Caller>, StoreError> {
        let Some(caller) = self.signer_of_link(tokens, secret).await? else { return Ok(None) };
        Ok(self.store.use_sign_in_link(digest(secret)).await?.then_some(caller))
    }

    /// The caller of a link that this cluster has made. Strangers cost the database nothing.
    async fn signer_of_link(&self, tokens: &Tokens, secret: &str) -> Result<Option<Caller>, StoreError> {
        Ok(self.key().await?.open(Kind::Link, tokens, secret, now()))
    }

    async fn key(&self) -> Result<Signer, StoreError> {
        let key = self.key.get_or_try_init(async || self.store.signing_key(random()?).await).await?;
        Ok(Signer(*key))
    }
}

/// Makes and checks signed values.
struct Signer(SigningKey);

impl Signer {
    fn issue(&self, kind: Kind, caller: &Caller, nonce: &str, until: u64) -> String {
        let name = caller.name();
        let signature = hex(&self.sign(kind, &[&until.to_be_bytes(), nonce.as_bytes(), &caller.fingerprint()]));
        format!("{until}{BETWEEN}{name}{BETWEEN}{nonce}{BETWEEN}{signature}")
    }

    /// The caller of a signed value that is good at `now`, in seconds since 1970.
    fn open(&self, kind: Kind, tokens: &Tokens, value: &str, now: u64) -> Option<Caller> {
        if value.len() > LONGEST {
            return None;
        }
        let mut parts = value.split(BETWEEN);
        let (until, name, nonce, signature) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let until: u64 = until.parse().ok().filter(|until| *until > now)?;
        let caller = tokens.named(name)?;
        let expected = self.sign(kind, &[&until.to_be_bytes(), nonce.as_bytes(), &caller.fingerprint()]);
        is_hex_of(signature, &expected).then_some(caller)
    }

    fn session(&self, tokens: &Tokens, value: &str, now: u64) -> Option<Session> {
        let caller = self.open(Kind::Session, tokens, value, now)?;
        Some(Session { caller, csrf: hex(&self.sign(Kind::Csrf, &[value.as_bytes()])) })
    }

    fn sign(&self, kind: Kind, parts: &[&[u8]]) -> [u8; 32] {
        // A key of any length is taken, so there is nothing that could fail.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        for part in [kind.as_str().as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Whether a form or a header carries the CSRF token of the session.
pub(crate) fn is_csrf(session: &Session, given: &str) -> bool {
    let (expected, given): ([u8; 32], [u8; 32]) = (Sha256::digest(&session.csrf).into(), Sha256::digest(given).into());
    same(&expected, &given)
}

fn is_hex_of(text: &str, expected: &[u8; 32]) -> bool {
    let (expected, given): ([u8; 32], [u8; 32]) = (Sha256::digest(hex(expected)).into(), Sha256::digest(text).into());
    same(&expected, &given)
}

/// One cookie of a request. A name that stands twice is nobody's.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

fn digest(secret: &str) -> LinkDigest {
    Sha256::digest(secret).into()
}

fn random() -> Result<[u8; 32], StoreError> {
    let mut bytes = [0; 32];
    let drawn = getrandom::fill(&mut bytes);
    drawn.map_err(|error| StoreError::Permanent(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 by this machine's clock: a session ends at about its time, and no rule hangs on it.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Role, TokenConfig, TokenDigest};

    fn tokens(entries: &[(&str, &str, Role)]) -> Tokens {
        let entry = |(name, token, role): &(&str, &str, Role)| TokenConfig {
            name: (*name).into(),
            sha256: Some(TokenDigest(Sha256::digest(token).into())),
            certificate: None,
            role: *role,
            namespaces: None,
        };
        Tokens::configured(&entries.iter().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn a_session_is_good_until_its_end_and_as_long_as_its_token_stands() {
        let signer = Signer([7; 32]);
        let before = tokens(&[("ann", "open-sesame", Role::Operator), ("bob", "other", Role::Viewer)]);
        let value = signer.issue(Kind::Session, &before.named("ann").unwrap(), "", 100);
        let name = |tokens: &Tokens, value: &str, now| {
            signer.session(tokens, value, now).map(|session| session.caller.name().to_owned())
        };
        assert_eq!(name(&before, &value, 99).as_deref(), Some("ann"));
        assert_eq!(name(&before, &value, 100), None, "it has ended");
        for after in [
            tokens(&[("bob", "other", Role::Viewer)]),
            tokens(&[("ann", "new-token", Role::Operator)]),
            tokens(&[("ann", "open-sesame", Role::Admin)]),
        ] {
            assert_eq!(name(&after, &value, 99), None, "its token was removed or changed");
        }
        for forged in [
            value.replace("100~", "999~"),
            value.replace("ann", "bob"),
            value[..value.len() - 1].to_owned(),
            format!("{value}0"),
            format!("{value}~"),
            "x".repeat(5_000),
            String::new(),
            "~~~".into(),
        ] {
            assert_eq!(name(&before, &forged, 99), None, "{forged}");
        }
        let link = signer.issue(Kind::Link, &before.named("ann").unwrap(), "", 100);
        assert_eq!(name(&before, &link, 99), None, "a link is no session");
        assert!(Signer([8; 32]).session(&before, &value, 99).is_none(), "another key");
    }

    #[test]
    fn the_csrf_token_belongs_to_one_session() {
        let (signer, tokens) = (Signer([7; 32]), tokens(&[("ann", "open-sesame", Role::Operator)]));
        let session = |until| {
            let value = signer.issue(Kind::Session, &tokens.named("ann").unwrap(), "", until);
            signer.session(&tokens, &value, 0).unwrap()
        };
        let (one, other) = (session(100), session(101));
        assert!(is_csrf(&one, &one.csrf) && !is_csrf(&one, &other.csrf) && !is_csrf(&one, ""));
    }

    #[test]
    fn a_cookie_that_stands_twice_is_nobodys() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; carillon_session=x=y; b=2".parse().unwrap());
        assert_eq!(cookie(&headers, COOKIE_NAME), Some("x=y"));
        headers.append(COOKIE, "carillon_session=z".parse().unwrap());
        assert_eq!(cookie(&headers, COOKIE_NAME), None);
    }
}
