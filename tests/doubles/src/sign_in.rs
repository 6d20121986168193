//! Signing in at the page: the signing key and links that are good once.

use carillon_domain::time::Timestamp;
use carillon_store::{LinkDigest, SigningKey};

use super::data::Data;

impl Data {
    pub fn signing_key(&mut self, offered: SigningKey) -> SigningKey {
        *self.signing_key.get_or_insert(offered)
    }

    pub fn insert_link(&mut self, link: LinkDigest, expires_at: Timestamp) {
        let now = self.clock.now();
        self.links.retain(|_, expires_at| *expires_at > now);
        self.links.insert(link, expires_at);
    }

    pub fn has_link(&self, link: LinkDigest) -> bool {
        let now = self.clock.now();
        self.links.get(&link).is_some_and(|expires_at| *expires_at > now)
    }

    pub fn delete_link(&mut self, link: LinkDigest) -> bool {
        let now = self.clock.now();
        self.links.remove(&link).is_some_and(|expires_at| expires_at > now)
    }
}
