//! Signing in at the page: the key that all nodes sign with, and links that are good once.
//!
//! A link is used by deleting its row, so of two who try at once one gets in, at whichever node they are.

use std::time::Duration;

use carillon_domain::time::Timestamp;

/// The key that signs sessions of the page.
pub type SigningKey = [u8; 32];

/// The digest of a link's secret.
pub type LinkDigest = [u8; 32];

/// The name of the key in table `meta`.
pub(crate) const KEY_NAME: &str = "signing_key";

/// The last moment of a link that is made now.
pub(crate) fn expires_at(now: Timestamp, lives_for: Duration) -> Timestamp {
    now + lives_for
}

/// The key as the database keeps it.
pub(crate) fn to_text(key: &SigningKey) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key of such a text; `None` where it is none.
pub(crate) fn from_text(text: &str) -> Option<SigningKey> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(bytes.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_text() {
        let key: SigningKey = std::array::from_fn(|n| (n * 9) as u8);
        assert_eq!(from_text(&to_text(&key)), Some(key));
        assert_eq!(from_text("00"), None);
        assert_eq!(from_text(&"zz".repeat(32)), None);
    }
}
