-- Sessions that are over and hold nothing, for a day: whoever wakes up later finds that its session ended, not that the
-- database has forgotten it.
CREATE TABLE IF NOT EXISTS spent_session (
    id       BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    seq      BIGINT UNSIGNED NOT NULL,
    ended_at BIGINT          NOT NULL,
    KEY spent_session_ended (ended_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
