CREATE TABLE IF NOT EXISTS output (
    run       BINARY(16)       NOT NULL PRIMARY KEY,
    truncated TINYINT UNSIGNED NOT NULL,
    bytes     MEDIUMBLOB       NOT NULL,
    CONSTRAINT output_is_bounded CHECK (LENGTH(bytes) <= 1048576)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
