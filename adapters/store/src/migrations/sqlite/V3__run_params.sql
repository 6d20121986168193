-- Params that a person gave for one manual run, laid over those of its job. All attempts of the firing use them.
CREATE TABLE run_params (
    job_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    params TEXT    NOT NULL,
    PRIMARY KEY (job_id, due_at)
) WITHOUT ROWID;
