-- What ended in each five minutes, of each namespace, and of all under the empty name. Rows are counted from history, so they cost a
-- firing no statement.
CREATE TABLE IF NOT EXISTS activity (
    namespace    VARCHAR(128)    NOT NULL,
    begins_at    BIGINT          NOT NULL,
    succeeded    BIGINT UNSIGNED NOT NULL,
    failed       BIGINT UNSIGNED NOT NULL,
    timed_out    BIGINT UNSIGNED NOT NULL,
    cancelled    BIGINT UNSIGNED NOT NULL,
    lost         BIGINT UNSIGNED NOT NULL,
    skipped      BIGINT UNSIGNED NOT NULL,
    started      BIGINT UNSIGNED NOT NULL,
    lag_total_ms BIGINT UNSIGNED NOT NULL,
    lag_max_ms   BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (namespace, begins_at),
    KEY activity_age (begins_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
