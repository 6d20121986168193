-- Open troubles, each of one subject on one route. The id follows from route, subject and class.
CREATE TABLE IF NOT EXISTS alert_incident (
    id        CHAR(32)     NOT NULL PRIMARY KEY,
    route     VARCHAR(128) NOT NULL,
    job_id    BIGINT UNSIGNED,
    namespace VARCHAR(128),
    since     BIGINT       NOT NULL,
    next_look BIGINT,
    document  MEDIUMTEXT   NOT NULL,
    KEY alert_incident_route (route),
    KEY alert_incident_job (job_id),
    KEY alert_incident_since (since),
    KEY alert_incident_look (next_look)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
