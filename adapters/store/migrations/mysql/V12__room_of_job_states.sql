-- Bytes that a row keeps free for what it has not got now: claim_at, or a run with its session and its start. So a row stays as
-- long as it is through all transitions; one that grows makes the server put its whole page together anew. Nobody reads it.
ALTER TABLE job_state ADD COLUMN room VARBINARY(32) NOT NULL DEFAULT '........................';
