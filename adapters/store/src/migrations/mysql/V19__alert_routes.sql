-- Who is told of which facts. The document holds the rest of a route, with the secrets of its targets.
CREATE TABLE IF NOT EXISTS alert_route (
    name       VARCHAR(128) NOT NULL PRIMARY KEY,
    version    BIGINT       NOT NULL,
    created_at BIGINT       NOT NULL,
    updated_at BIGINT       NOT NULL,
    document   MEDIUMTEXT   NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
