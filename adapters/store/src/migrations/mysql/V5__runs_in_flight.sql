-- Runs beside the job's own. Their number is that of runs in flight.
CREATE TABLE IF NOT EXISTS concurrent_run (
    job_id        BIGINT UNSIGNED  NOT NULL,
    due_at        BIGINT           NOT NULL,
    trigger_name  VARCHAR(16)      NOT NULL,
    claim_at      BIGINT,
    version       BIGINT UNSIGNED  NOT NULL,
    waiting       VARCHAR(100),
    waiting_run   BINARY(16),
    held          VARCHAR(100),
    held_run      BINARY(16),
    held_session  BIGINT UNSIGNED,
    started_at    BIGINT,
    fencing_token BIGINT UNSIGNED  NOT NULL,
    cancel        VARCHAR(16),
    withdrawn     TINYINT UNSIGNED NOT NULL,
    PRIMARY KEY (job_id, due_at, trigger_name),
    KEY concurrent_run_due (claim_at),
    KEY concurrent_run_held (held_session, held_run, cancel),
    KEY concurrent_run_waiting (waiting_run)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
