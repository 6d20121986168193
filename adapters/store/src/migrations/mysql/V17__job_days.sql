-- What became of a job's due times of one day, by the number of days since 1970 in UTC. The day comes first, so that a step writes to
-- the end of the table and the oldest days are its beginning.
CREATE TABLE IF NOT EXISTS job_day (
    day       INT UNSIGNED    NOT NULL,
    job_id    BIGINT UNSIGNED NOT NULL,
    succeeded INT UNSIGNED    NOT NULL,
    failed    INT UNSIGNED    NOT NULL,
    timed_out INT UNSIGNED    NOT NULL,
    cancelled INT UNSIGNED    NOT NULL,
    lost      INT UNSIGNED    NOT NULL,
    skipped   BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (day, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
