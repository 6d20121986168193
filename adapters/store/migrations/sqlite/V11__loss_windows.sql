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

-- Sessions that are over and hold nothing, for a day: whoever wakes up later finds that its session ended, not that the
-- database has forgotten it.
CREATE TABLE spent_session (
    id       INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL,
    ended_at INTEGER NOT NULL
);
