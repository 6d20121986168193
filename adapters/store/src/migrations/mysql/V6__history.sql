-- History, in the order in which it was written.
CREATE TABLE IF NOT EXISTS run (
    seq           BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id            BINARY(16)      NOT NULL,
    job_id        BIGINT UNSIGNED NOT NULL,
    due_at        BIGINT          NOT NULL,
    trigger_name  VARCHAR(16)     NOT NULL,
    attempt       INT UNSIGNED    NOT NULL,
    status        VARCHAR(16)     NOT NULL,
    reason        MEDIUMTEXT,
    exit_code     INT,
    signal_number INT,
    started_at    BIGINT,
    finished_at   BIGINT          NOT NULL,
    lag_ms        BIGINT,
    session       BIGINT UNSIGNED,
    node          VARCHAR(255),
    fencing_token BIGINT UNSIGNED,
    due_count     BIGINT UNSIGNED NOT NULL,
    first_due_at  BIGINT          NOT NULL,
    UNIQUE KEY run_id (id),
    UNIQUE KEY run_attempt (job_id, due_at, trigger_name, attempt),
    KEY run_due (due_at, attempt, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
