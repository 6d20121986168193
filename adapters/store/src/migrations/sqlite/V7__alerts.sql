-- Who is told of which facts. The document holds the rest of a route, with the secrets of its targets.
CREATE TABLE alert_route (
    name       TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    document   TEXT    NOT NULL
) WITHOUT ROWID;

-- Facts that history does not tell: judged expectations, and troubles of the cluster. A second fact of one key is the same fact. An open
-- one keeps its key until it is over. A number is never used again.
CREATE TABLE alert_fact (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    fact_key TEXT UNIQUE,
    is_open  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    document TEXT    NOT NULL
);
CREATE INDEX alert_fact_age ON alert_fact (is_open, at);

-- Open troubles, each of one subject on one route. The id follows from route, subject and class.
CREATE TABLE alert_incident (
    id        TEXT    NOT NULL PRIMARY KEY,
    route     TEXT    NOT NULL,
    job_id    INTEGER,
    namespace TEXT,
    since     INTEGER NOT NULL,
    next_look INTEGER,
    document  TEXT    NOT NULL
);
CREATE INDEX alert_incident_route ON alert_incident (route);
CREATE INDEX alert_incident_job ON alert_incident (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX alert_incident_since ON alert_incident (since);
CREATE INDEX alert_incident_look ON alert_incident (next_look) WHERE next_look IS NOT NULL;

-- Notices and calls of monitors on their ways to their targets. A delivery that was sent or given up has no claim_at. The first delivery
-- of a notice (place 0) is its place in the journal of notices.
CREATE TABLE alert_delivery (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    version      INTEGER NOT NULL,
    message      TEXT    NOT NULL,
    route        TEXT,
    job_id       INTEGER,
    place        INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    host         TEXT    NOT NULL,
    made_at      INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    claim_at     INTEGER,
    session      INTEGER,
    tries        INTEGER NOT NULL,
    refusals     INTEGER NOT NULL,
    first_try_at INTEGER,
    settled_at   INTEGER,
    answer       TEXT,
    document     TEXT    NOT NULL
);
CREATE INDEX alert_delivery_message ON alert_delivery (message);
CREATE INDEX alert_delivery_route ON alert_delivery (route, state);
CREATE INDEX alert_delivery_job ON alert_delivery (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX alert_delivery_state ON alert_delivery (state);
CREATE INDEX alert_delivery_claim ON alert_delivery (claim_at) WHERE claim_at IS NOT NULL;
CREATE INDEX alert_delivery_age ON alert_delivery (settled_at) WHERE settled_at IS NOT NULL;

-- How far the journals of facts are judged, and the storms of all routes: one row.
CREATE TABLE alert_cursor (
    id       INTEGER PRIMARY KEY,
    epoch    INTEGER NOT NULL,
    document TEXT    NOT NULL
);

-- Jobs with expectations or a monitor. Due times up to starts and ends are judged; look_at is NULL where nothing is expected.
CREATE TABLE alert_watch (
    job_id  INTEGER PRIMARY KEY,
    starts  INTEGER NOT NULL,
    ends    INTEGER NOT NULL,
    look_at INTEGER,
    pings   INTEGER NOT NULL
);
CREATE INDEX alert_watch_look ON alert_watch (look_at) WHERE look_at IS NOT NULL;
