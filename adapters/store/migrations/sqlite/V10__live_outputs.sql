-- What runs print while they run, as far as somebody reads it at another node: empty most of the time. written and tail are
-- NULL until the node that runs it has answered.
CREATE TABLE live_output (
    run      BLOB    NOT NULL PRIMARY KEY,
    asked_at INTEGER NOT NULL,
    written  INTEGER,
    tail     BLOB
) WITHOUT ROWID;
