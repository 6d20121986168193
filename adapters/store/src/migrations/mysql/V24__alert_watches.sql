-- Jobs with expectations or a monitor. Due times up to starts and ends are judged; look_at is NULL where nothing is expected.
CREATE TABLE IF NOT EXISTS alert_watch (
    job_id  BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    starts  BIGINT          NOT NULL,
    ends    BIGINT          NOT NULL,
    look_at BIGINT,
    pings   TINYINT         NOT NULL,
    KEY alert_watch_look (look_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
