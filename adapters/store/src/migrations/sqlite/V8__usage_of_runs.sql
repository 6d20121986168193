-- How long a run was prepared before it started, and the machine that it used. All are NULL where nobody knows.
ALTER TABLE run ADD COLUMN prepared_ms INTEGER;
ALTER TABLE run ADD COLUMN cpu_ms INTEGER;
ALTER TABLE run ADD COLUMN peak_memory_kib INTEGER;
