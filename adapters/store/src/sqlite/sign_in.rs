//! Signing in at the page: the signing key and links that are good once.

use carillon_domain::time::Timestamp;
use rusqlite::{Connection, params};

use crate::calls::sign_in::{KEY_NAME, LinkDigest, SigningKey, from_text, to_text};
use crate::sqlite::change::execute;
use crate::sqlite::select::{column, first};
use crate::{StoreError, StoreResult};

pub(in crate::sqlite) fn key(conn: &Connection, offered: SigningKey) -> StoreResult<SigningKey> {
    execute(conn, "INSERT OR IGNORE INTO meta (name, value) VALUES (?1, ?2)", params![KEY_NAME, to_text(&offered)])?;
    let stored: Option<String> = first(conn, "SELECT value FROM meta WHERE name = ?1", [KEY_NAME], column)?;
    let key = stored.as_deref().and_then(from_text);
    key.ok_or_else(|| StoreError::Permanent(format!("{KEY_NAME} in table meta is not a key")))
}

pub(in crate::sqlite) fn insert_link(
    conn: &Connection,
    link: LinkDigest,
    now: Timestamp,
    expires_at: Timestamp,
) -> StoreResult<()> {
    execute(conn, "DELETE FROM sign_in_link WHERE expires_at <= ?1", [now.as_ms()])?;
    let sql = "INSERT INTO sign_in_link (digest, expires_at) VALUES (?1, ?2)";
    execute(conn, sql, params![link, expires_at.as_ms()]).map(|_| ())
}

pub(in crate::sqlite) fn has_link(conn: &Connection, link: LinkDigest, now: Timestamp) -> StoreResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sign_in_link WHERE digest = ?1 AND expires_at > ?2)";
    Ok(first(conn, sql, params![link, now.as_ms()], column)?.unwrap_or(false))
}

pub(in crate::sqlite) fn delete_link(conn: &Connection, link: LinkDigest, now: Timestamp) -> StoreResult<bool> {
    let sql = "DELETE FROM sign_in_link WHERE digest = ?1 AND expires_at > ?2";
    Ok(execute(conn, sql, params![link, now.as_ms()])? == 1)
}
