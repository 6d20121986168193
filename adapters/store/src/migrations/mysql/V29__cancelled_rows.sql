-- A node asks for its cancelled runs many times a second. Without this key it reads all rows that it holds. The key has no other column, so
-- a claim and a finish leave it alone.
ALTER TABLE job_state ADD KEY job_state_cancelled (cancel);
