-- How the last run of a job ended (0 before the first), and since when the job is in trouble (0 while it is not).
ALTER TABLE job_state ADD COLUMN last_status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_state ADD COLUMN troubled_since INTEGER NOT NULL DEFAULT 0;
CREATE INDEX job_state_troubled ON job_state (troubled_since) WHERE troubled_since > 0;

-- What ended in each five minutes, of each namespace, and of all under the empty name. Rows are counted from history, so they cost a
-- firing no statement.
CREATE TABLE activity (
    namespace    TEXT    NOT NULL,
    begins_at    INTEGER NOT NULL,
    succeeded    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    timed_out    INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    lost         INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    lag_total_ms INTEGER NOT NULL,
    lag_max_ms   INTEGER NOT NULL,
    PRIMARY KEY (namespace, begins_at)
) WITHOUT ROWID;
CREATE INDEX activity_age ON activity (begins_at);

-- What became of a job's due times of one day, by the number of days since 1970 in UTC.
CREATE TABLE job_day (
    day       INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    timed_out INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    lost      INTEGER NOT NULL,
    skipped   INTEGER NOT NULL,
    PRIMARY KEY (day, job_id)
) WITHOUT ROWID;

-- How far history is counted into activity (1) and job_day (2).
CREATE TABLE history_count (
    id      INTEGER PRIMARY KEY,
    done    INTEGER NOT NULL,
    seen    INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
);
