-- Params that a person gave for one manual run, laid over those of its job. All attempts of the firing use them.
CREATE TABLE IF NOT EXISTS run_params (
    job_id BIGINT UNSIGNED NOT NULL,
    due_at BIGINT          NOT NULL,
    params MEDIUMTEXT      NOT NULL,
    PRIMARY KEY (job_id, due_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
