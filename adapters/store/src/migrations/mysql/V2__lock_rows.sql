-- One row for the sessions (0) and one for each partition (its number and 1). A lock is taken by writing its row.
CREATE TABLE IF NOT EXISTS lock_row (
    id    INT UNSIGNED    NOT NULL PRIMARY KEY,
    name  VARCHAR(64)     NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
