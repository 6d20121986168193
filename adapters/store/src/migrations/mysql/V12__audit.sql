-- The audit log, only ever added to. An entry is inserted after the rows of its job, in their transaction: the ids of one
-- job's entries ascend as its changes were committed. The documents hold no value of a secret.
CREATE TABLE IF NOT EXISTS audit (
    id         BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at         BIGINT       NOT NULL,
    who        VARCHAR(255) NOT NULL,
    origin     VARCHAR(512) NOT NULL,
    action     VARCHAR(32)  NOT NULL,
    namespace  VARCHAR(128),
    job        VARCHAR(128),
    job_id     BIGINT UNSIGNED,
    generation BIGINT UNSIGNED,
    run        BINARY(16),
    before_doc MEDIUMTEXT,
    after_doc  MEDIUMTEXT,
    KEY audit_namespace (namespace),
    KEY audit_job (namespace, job),
    KEY audit_at (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
