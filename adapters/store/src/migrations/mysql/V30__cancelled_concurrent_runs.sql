-- As the key of the step before, for runs beside the job's own.
ALTER TABLE concurrent_run ADD KEY concurrent_run_cancelled (cancel);
