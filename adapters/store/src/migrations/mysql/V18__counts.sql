-- How far history is counted into activity (1) and job_day (2): up to the record done. The newest one that was seen, and when, is
-- counted once no lower number can appear any more.
CREATE TABLE IF NOT EXISTS history_count (
    id      TINYINT UNSIGNED NOT NULL PRIMARY KEY,
    done    BIGINT UNSIGNED  NOT NULL,
    seen    BIGINT UNSIGNED  NOT NULL,
    seen_at BIGINT           NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
