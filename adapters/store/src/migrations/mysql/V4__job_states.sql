-- Hot rows. claim_at is NULL exactly while the row is held. Times are milliseconds since 1970 in UTC.
-- room is padding that nobody reads: it is as long as claim_at, or a run with its session, when the row has none. So a row keeps its
-- length through all transitions; one that grows makes the server reorganize its page.
CREATE TABLE IF NOT EXISTS job_state (
    id             BIGINT UNSIGNED   NOT NULL PRIMARY KEY,
    partition_id   SMALLINT UNSIGNED NOT NULL,
    executor       VARCHAR(128)      NOT NULL,
    claim_at       BIGINT,
    version        BIGINT UNSIGNED   NOT NULL,
    generation     BIGINT UNSIGNED   NOT NULL,
    anchor_at      BIGINT            NOT NULL,
    cursor_at      BIGINT            NOT NULL,
    armed          VARCHAR(100),
    manual         VARCHAR(100),
    manual_run     BINARY(16),
    last_manual_at BIGINT,
    catch_up_until BIGINT,
    held           VARCHAR(100),
    held_run       BINARY(16),
    held_session   BIGINT UNSIGNED,
    started_at     BIGINT,
    fencing_token  BIGINT UNSIGNED   NOT NULL,
    pause_since    BIGINT,
    pause_until    BIGINT,
    pause_reason   MEDIUMTEXT,
    cancel         VARCHAR(16),
    deleted        TINYINT UNSIGNED  NOT NULL,
    room           VARBINARY(32)     NOT NULL DEFAULT '........................',
    KEY job_state_due (partition_id, claim_at, id, executor),
    KEY job_state_held (held_session, held_run, cancel),
    KEY job_state_manual (manual_run)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
