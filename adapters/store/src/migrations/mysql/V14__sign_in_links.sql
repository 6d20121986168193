-- Links that sign somebody in at the page, each once: whoever deletes the row has used it. Only the digest of a link is kept.
CREATE TABLE IF NOT EXISTS sign_in_link (
    digest     BINARY(32) NOT NULL PRIMARY KEY,
    expires_at BIGINT     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
