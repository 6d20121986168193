//! Signing in at the page: the signing key and links that are good once.

use carillon_domain::time::Timestamp;

use crate::calls::sign_in::{KEY_NAME, LinkDigest, SigningKey, from_text, to_text};
use crate::cluster::port::SignIn;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::{StoreError, StoreResult};

impl SignIn for MySqlConnection {
    async fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey> {
        let insert = "INSERT IGNORE INTO meta (name, value) VALUES (?, ?)";
        self.exec(insert, (KEY_NAME, to_text(&offered))).await?;
        // A plain read may show a state from before another node's insert.
        let rows = self.select("SELECT value FROM meta WHERE name = ? FOR UPDATE", (KEY_NAME,)).await?;
        let stored: Option<String> = rows.into_iter().next().map(|row| Columns::of(row).next()).transpose()?;
        let key = stored.as_deref().and_then(from_text);
        key.ok_or_else(|| StoreError::Permanent(format!("{KEY_NAME} in table meta is not a key")))
    }

    async fn insert_link(&mut self, link: LinkDigest, now: Timestamp, expires_at: Timestamp) -> StoreResult<()> {
        self.exec("DELETE FROM sign_in_link WHERE expires_at <= ?", (now.as_ms(),)).await?;
        let sql = "INSERT INTO sign_in_link (digest, expires_at) VALUES (?, ?)";
        self.exec(sql, (link.to_vec(), expires_at.as_ms())).await.map(|_| ())
    }

    async fn has_link(&mut self, link: LinkDigest, now: Timestamp) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM sign_in_link WHERE digest = ? AND expires_at > ?";
        Ok(!self.select(sql, (link.to_vec(), now.as_ms())).await?.is_empty())
    }

    async fn delete_link(&mut self, link: LinkDigest, now: Timestamp) -> StoreResult<bool> {
        let sql = "DELETE FROM sign_in_link WHERE digest = ? AND expires_at > ?";
        Ok(self.exec(sql, (link.to_vec(), now.as_ms())).await?.matched == 1)
    }
}
