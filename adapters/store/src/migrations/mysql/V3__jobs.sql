-- Definitions. A deleted job keeps its row, under its name, until the last of its history is purged: living is NULL
-- from then on, and the unique key does not count it.
CREATE TABLE IF NOT EXISTS job (
    id         BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT PRIMARY KEY,
    namespace  VARCHAR(128)     NOT NULL,
    name       VARCHAR(128)     NOT NULL,
    living     TINYINT UNSIGNED,
    generation BIGINT UNSIGNED  NOT NULL,
    anchor_at  BIGINT           NOT NULL,
    document   MEDIUMTEXT       NOT NULL,
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,
    deleted_at BIGINT,
    UNIQUE KEY job_name (namespace, name, living),
    KEY job_tombstone (deleted_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
