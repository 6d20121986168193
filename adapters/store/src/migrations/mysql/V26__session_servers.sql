-- The database server through which a session writes, by that server's name for itself. Null where its binary does not tell.
ALTER TABLE session ADD COLUMN server VARCHAR(512);
