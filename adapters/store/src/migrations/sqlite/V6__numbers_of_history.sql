-- A number of history is never used again, even where all records are deleted: readers of events go on behind the one that they know.
CREATE TABLE run_numbered (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            BLOB    NOT NULL UNIQUE,
    job_id        INTEGER NOT NULL REFERENCES job (id),
    due_at        INTEGER NOT NULL,
    trigger       TEXT    NOT NULL,
    attempt       INTEGER NOT NULL,
    status        TEXT    NOT NULL,
    reason        TEXT,
    exit_code     INTEGER,
    signal        INTEGER,
    started_at    INTEGER,
    finished_at   INTEGER NOT NULL,
    lag_ms        INTEGER,
    session       INTEGER,
    node          TEXT,
    fencing_token INTEGER,
    count         INTEGER NOT NULL,
    first_due_at  INTEGER NOT NULL,
    UNIQUE (job_id, due_at, trigger, attempt)
);
INSERT INTO run_numbered SELECT * FROM run;

CREATE TABLE output_numbered (
    run_seq   INTEGER PRIMARY KEY REFERENCES run_numbered (seq) ON DELETE CASCADE,
    truncated INTEGER NOT NULL,
    bytes     BLOB    NOT NULL CHECK (length(bytes) <= 1048576)
);
INSERT INTO output_numbered SELECT * FROM output;

DROP TABLE output;
DROP TABLE run;
ALTER TABLE run_numbered RENAME TO run;
ALTER TABLE output_numbered RENAME TO output;
CREATE INDEX run_due ON run (due_at);
