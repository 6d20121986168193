//! Databases with very many jobs and records, quickly: copies of rows that a server has written itself.

use crate::numbers;
use crate::site::Site;

/// The number of the first copy of a job; the next ones follow it.
pub const FIRST_JOB: u64 = 1_000_000;
/// Of a new database.
pub const PARTITIONS: u16 = 16;

/// Copies of the rows of the job `template`, for the numbers from `from` to below `until`. They come up one millisecond after
/// another. Only those that are `defined` are jobs with a name; the others are rows of the hot table alone.
pub fn jobs(site: &Site<'_>, template: &str, defined: bool, (from, until): (u64, u64)) {
    let scratch = &site.scratch;
    let (id, partition) = (format!("({FIRST_JOB} + {{n}})"), format!("{{n}} % {PARTITIONS}"));
    if defined {
        let computed = [("id", id.as_str()), ("name", "CONCAT('stored-', LPAD({n}, 8, '0'))")];
        numbers::copies(scratch, "job", &format!("t.name = '{template}'"), &computed, from, until);
    }
    let of_template = format!("t.id = (SELECT id FROM job WHERE name = '{template}')");
    let computed = [("id", id.as_str()), ("partition_id", partition.as_str()), ("claim_at", "t.claim_at + {n}")];
    numbers::copies(scratch, "job_state", &of_template, &computed, from, until);
    scratch.fill(&["ANALYZE TABLE job_state".to_owned(), "ANALYZE TABLE job".to_owned()]);
}

/// Copies of the first record that is stored, in turn of each of the `jobs` from [`FIRST_JOB`] on, one each millisecond from `since_ms`
/// on. All other records are deleted.
pub fn records(site: &Site<'_>, jobs: u64, since_ms: i64, count: u64) {
    let (at, job) = (format!("{since_ms} + {{n}}"), format!("{FIRST_JOB} + {{n}} % {jobs}"));
    let computed = [
        ("seq", "NULL"),
        ("id", "UNHEX(LPAD(HEX(1000000 + {n}), 32, '0'))"),
        ("job_id", job.as_str()),
        ("due_at", at.as_str()),
        ("first_due_at", at.as_str()),
        ("started_at", at.as_str()),
        ("finished_at", at.as_str()),
    ];
    site.scratch.fill(&["DELETE FROM run WHERE seq > (SELECT * FROM (SELECT MIN(seq) FROM run) first)".to_owned()]);
    numbers::copies(&site.scratch, "run", "t.seq = (SELECT MIN(seq) FROM run)", &computed, 0, count);
}
