-- How far the journals of facts are judged, and the storms of all routes: one row, which a step locks by writing it.
CREATE TABLE IF NOT EXISTS alert_cursor (
    id       TINYINT    NOT NULL PRIMARY KEY,
    epoch    BIGINT     NOT NULL,
    document MEDIUMTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
