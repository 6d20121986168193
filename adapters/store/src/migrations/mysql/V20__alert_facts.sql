-- Facts that history does not tell: judged expectations, and troubles of the cluster. A second fact of one key is the same fact. An open
-- one keeps its key until it is over.
CREATE TABLE IF NOT EXISTS alert_fact (
    seq      BIGINT   NOT NULL AUTO_INCREMENT PRIMARY KEY,
    fact_key CHAR(32),
    is_open  TINYINT  NOT NULL,
    at       BIGINT   NOT NULL,
    document MEDIUMTEXT NOT NULL,
    UNIQUE KEY alert_fact_key (fact_key),
    KEY alert_fact_age (is_open, at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
