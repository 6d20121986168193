-- The end of the newest loss window for which the session has written back every run that its node knows. Null where its binary cannot.
ALTER TABLE session ADD COLUMN wrote_back BIGINT;
