-- The audit log, only ever added to. An id is never used again. The documents hold no value of a secret.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    who        TEXT NOT NULL,
    origin     TEXT NOT NULL,
    action     TEXT NOT NULL,
    namespace  TEXT,
    job        TEXT,
    job_id     INTEGER,
    generation INTEGER,
    run        BLOB,
    before_doc TEXT,
    after_doc  TEXT
);
CREATE INDEX audit_namespace ON audit (namespace);
CREATE INDEX audit_job ON audit (namespace, job);
CREATE INDEX audit_at ON audit (at);
