//! The signature of a webhook.

use std::fmt::Write as _;

use carillon_domain::time::Timestamp;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The header's name.
pub const SIGNATURE_HEADER: &str = "Carillon-Signature";

/// `t=<unix seconds>,v1=<hex of HMAC-SHA256 over "t.body">`.
///
/// The time is part of it, so that a receiver may refuse a call that somebody recorded long ago.
pub fn signature(secret: &str, at: Timestamp, body: &str) -> String {
    let t = at.as_ms().div_euclid(1_000);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of every length");
    mac.update(format!("{t}.{body}").as_bytes());
    let mut header = format!("t={t},v1=");
    for byte in mac.finalize().into_bytes() {
        let _infallible = write!(header, "{byte:02x}");
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '1764000000.{"a":1}' | openssl dgst -sha256 -hmac 'a secret'`
    #[test]
    fn the_signature_is_that_of_openssl() {
        assert_eq!(
            signature("a secret", Timestamp::from_ms(1_764_000_000_999), "{\"a\":1}"),
            "t=1764000000,v1=7ca5ad61ed736aaf2c033597afa618b059978c886e32785b39bcf6ae04e9dd56"
        );
    }
}
