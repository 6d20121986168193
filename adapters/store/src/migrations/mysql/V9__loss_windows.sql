-- Times of which nobody knows what was committed in them. is_open is NULL from the moment at which somebody has accepted
-- that; the unique key does not count it then, so at most one is open.
CREATE TABLE IF NOT EXISTS loss_window (
    id          BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    is_open     TINYINT UNSIGNED,
    session     BIGINT UNSIGNED NOT NULL,
    node        VARCHAR(255),
    from_at     BIGINT          NOT NULL,
    until_at    BIGINT          NOT NULL,
    noticed_at  BIGINT          NOT NULL,
    accepted_at BIGINT,
    UNIQUE KEY loss_window_open (is_open),
    KEY loss_window_until (until_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
