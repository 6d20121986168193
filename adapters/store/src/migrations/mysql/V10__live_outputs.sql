-- Output of runs that somebody reads at another node while they run: empty most of the time. written and tail are
-- NULL until the node that runs it has answered.
CREATE TABLE IF NOT EXISTS live_output (
    run      BINARY(16)      NOT NULL PRIMARY KEY,
    asked_at BIGINT          NOT NULL,
    written  BIGINT UNSIGNED,
    tail     MEDIUMBLOB
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
