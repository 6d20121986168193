-- How long a run was prepared before it started, and the machine that it used. All are NULL where nobody knows.
ALTER TABLE run
    ADD COLUMN prepared_ms BIGINT UNSIGNED,
    ADD COLUMN cpu_ms BIGINT UNSIGNED,
    ADD COLUMN peak_memory_kib BIGINT UNSIGNED;
