-- Links that sign somebody in at the page, each once: whoever deletes the row has used it. Only the digest of a link is kept.
CREATE TABLE sign_in_link (
    digest     BLOB    NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
