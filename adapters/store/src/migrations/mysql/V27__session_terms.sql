-- When a session's node has ended its children after the last heartbeat, and when it takes over from others. Null where its binary does not tell.
ALTER TABLE session ADD COLUMN dead_after_ms BIGINT UNSIGNED, ADD COLUMN expire_after_ms BIGINT UNSIGNED;
