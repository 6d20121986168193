-- Times are milliseconds since 1970 in UTC. Run ids are 16 bytes, high half first. Session ids are the bits of an unsigned
-- number in a signed column.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Definitions. A deleted job keeps its row, under its name, until the last of its history is purged.
CREATE TABLE job (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    anchor_at  INTEGER NOT NULL,
    document   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX job_name ON job (namespace, name) WHERE deleted_at IS NULL;
CREATE INDEX job_tombstone ON job (namespace, name) WHERE deleted_at IS NOT NULL;

-- Hot rows. claim_at is NULL exactly while the row is held.
CREATE TABLE job_state (
    id             INTEGER PRIMARY KEY REFERENCES job (id),
    partition_id   INTEGER NOT NULL,
    executor       TEXT    NOT NULL,
    claim_at       INTEGER,
    version        INTEGER NOT NULL,
    generation     INTEGER NOT NULL,
    anchor_at      INTEGER NOT NULL,
    cursor_at      INTEGER NOT NULL,
    armed          TEXT,
    manual         TEXT,
    manual_run     BLOB,
    last_manual_at INTEGER,
    catch_up_until INTEGER,
    held           TEXT,
    held_run       BLOB,
    held_session   INTEGER,
    started_at     INTEGER,
    fencing_token  INTEGER NOT NULL,
    pause_since    INTEGER,
    pause_until    INTEGER,
    pause_reason   TEXT,
    cancel         TEXT,
    deleted        INTEGER NOT NULL
);
CREATE INDEX job_state_due ON job_state (partition_id, claim_at, id, executor) WHERE claim_at IS NOT NULL;
CREATE INDEX job_state_held ON job_state (held_session, held_run) WHERE held_session IS NOT NULL;
CREATE INDEX job_state_manual ON job_state (manual_run) WHERE manual_run IS NOT NULL;
CREATE INDEX job_state_cancel ON job_state (held_session) WHERE cancel IS NOT NULL;

-- Runs beside the job's own. Their number is that of runs in flight.
CREATE TABLE concurrent_run (
    job_id        INTEGER NOT NULL REFERENCES job (id),
    due_at        INTEGER NOT NULL,
    trigger       TEXT    NOT NULL,
    claim_at      INTEGER,
    version       INTEGER NOT NULL,
    waiting       TEXT,
    waiting_run   BLOB,
    held          TEXT,
    held_run      BLOB,
    held_session  INTEGER,
    started_at    INTEGER,
    fencing_token INTEGER NOT NULL,
    cancel        TEXT,
    withdrawn     INTEGER NOT NULL,
    PRIMARY KEY (job_id, due_at, trigger)
) WITHOUT ROWID;
CREATE INDEX concurrent_run_due ON concurrent_run (claim_at) WHERE claim_at IS NOT NULL;
CREATE INDEX concurrent_run_held ON concurrent_run (held_session, held_run) WHERE held_session IS NOT NULL;
CREATE INDEX concurrent_run_waiting ON concurrent_run (waiting_run) WHERE waiting_run IS NOT NULL;

-- History, in the order in which it was written.
CREATE TABLE run (
    seq           INTEGER PRIMARY KEY,
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
CREATE INDEX run_due ON run (due_at);

CREATE TABLE output (
    run_seq   INTEGER PRIMARY KEY REFERENCES run (seq) ON DELETE CASCADE,
    truncated INTEGER NOT NULL,
    bytes     BLOB    NOT NULL CHECK (length(bytes) <= 1048576)
);

CREATE TABLE session (
    id           INTEGER PRIMARY KEY,
    node         TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
);

-- Sessions that are over and hold nothing, for a day: whoever wakes up later finds that its session ended, not that the
-- database has forgotten it.
CREATE TABLE spent_session (
    id       INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL,
    ended_at INTEGER NOT NULL
);

-- Times of which nobody knows what was committed in them. is_open is NULL from the moment at which somebody has accepted
-- that; the unique key does not count it then, so at most one is open.
CREATE TABLE loss_window (
    id          INTEGER PRIMARY KEY,
    is_open     INTEGER UNIQUE,
    session     INTEGER NOT NULL,
    node        TEXT,
    from_at     INTEGER NOT NULL,
    until_at    INTEGER NOT NULL,
    noticed_at  INTEGER NOT NULL,
    accepted_at INTEGER
);

-- Output of runs that somebody reads at another node while they run: empty most of the time. written and tail are
-- NULL until the node that runs it has answered.
CREATE TABLE live_output (
    run      BLOB    NOT NULL PRIMARY KEY,
    asked_at INTEGER NOT NULL,
    written  INTEGER,
    tail     BLOB
) WITHOUT ROWID;
