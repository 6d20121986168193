-- Notices and calls of monitors on their ways to their targets. A delivery that was sent or given up has no claim_at. The first delivery
-- of a notice (place 0) is its place in the journal of notices.
CREATE TABLE IF NOT EXISTS alert_delivery (
    id           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    version      BIGINT       NOT NULL,
    message      CHAR(32)     NOT NULL,
    route        VARCHAR(128),
    job_id       BIGINT UNSIGNED,
    place        INT          NOT NULL,
    kind         VARCHAR(16)  NOT NULL,
    host         TEXT         NOT NULL,
    made_at      BIGINT       NOT NULL,
    state        VARCHAR(16)  NOT NULL,
    claim_at     BIGINT,
    session      BIGINT,
    tries        INT          NOT NULL,
    refusals     INT          NOT NULL,
    first_try_at BIGINT,
    settled_at   BIGINT,
    answer       TEXT,
    document     MEDIUMTEXT   NOT NULL,
    KEY alert_delivery_message (message),
    KEY alert_delivery_route (route, state),
    KEY alert_delivery_job (job_id),
    KEY alert_delivery_state (state),
    KEY alert_delivery_claim (claim_at),
    KEY alert_delivery_age (settled_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
