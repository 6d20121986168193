-- How the last run of a job ended (0 before the first), and since when the job is in trouble (0 while it is not). Both have a fixed
-- length and change only when runs end in another way than before, so a healthy job writes neither, nor the index.
ALTER TABLE job_state
    ADD COLUMN last_status TINYINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN troubled_since BIGINT NOT NULL DEFAULT 0,
    ADD KEY job_state_troubled (troubled_since);
