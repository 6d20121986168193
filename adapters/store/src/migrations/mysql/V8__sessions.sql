CREATE TABLE IF NOT EXISTS session (
    id           BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    node         VARCHAR(255)    NOT NULL,
    address      VARCHAR(255)    NOT NULL,
    version      VARCHAR(64)     NOT NULL,
    state        VARCHAR(16)     NOT NULL,
    seq          BIGINT UNSIGNED NOT NULL,
    started_at   BIGINT          NOT NULL,
    heartbeat_at BIGINT          NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
