//! The counts of history.

use std::collections::BTreeMap;

use carillon_domain::id::JobId;
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::reports::counting::{BUCKET, Count, DAY, begin_of, begin_of_day, day_of};
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, names_of};
use crate::{ActivityBucket, JobDay, NamespaceScope, OutcomeCounts, StoreResult};

/// How many of a job's newest records are looked at for those that are not counted yet.
const NOT_COUNTED: usize = 5_000;

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

fn outcomes(row: &Row<'_>, from: usize) -> rusqlite::Result<OutcomeCounts> {
    Ok(OutcomeCounts {
        succeeded: unsigned(row, from)?,
        failed: unsigned(row, from + 1)?,
        timed_out: unsigned(row, from + 2)?,
        cancelled: unsigned(row, from + 3)?,
        lost: unsigned(row, from + 4)?,
        skipped: unsigned(row, from + 5)?,
    })
}

fn bucket(row: &Row<'_>) -> rusqlite::Result<ActivityBucket> {
    Ok(ActivityBucket {
        begins_at: Timestamp::from_ms(row.get(0)?),
        outcomes: outcomes(row, 1)?,
        started: unsigned(row, 7)?,
        lag_total_ms: unsigned(row, 8)?,
        lag_max_ms: unsigned(row, 9)?,
    })
}

pub(in crate::sqlite) fn activity(
    conn: &Connection,
    scope: &NamespaceScope,
    since: Timestamp,
) -> StoreResult<Vec<ActivityBucket>> {
    let names = names_of(scope)?.unwrap_or_else(|| "[\"\"]".to_owned());
    let sql = "SELECT begins_at, sum(succeeded), sum(failed), sum(timed_out), sum(cancelled), sum(lost), sum(skipped), \
               sum(started), sum(lag_total_ms), max(lag_max_ms) FROM activity \
               WHERE namespace IN (SELECT value FROM json_each(?1)) AND begins_at >= ?2 GROUP BY begins_at ORDER BY begins_at";
    all(conn, sql, params![names, begin_of(since, BUCKET).as_ms()], |row| bucket(row).map_err(statement))
}

/// Days that are counted, and the job's records that are not.
pub(in crate::sqlite) fn days_of_job(conn: &Connection, job: JobId, since: Timestamp) -> StoreResult<Vec<JobDay>> {
    let first = begin_of(since, DAY);
    let mut found: BTreeMap<i64, OutcomeCounts> = BTreeMap::new();
    let days = "WITH RECURSIVE days (day) AS (SELECT ?1 UNION ALL SELECT day + 1 FROM days WHERE day < ?2) \
                SELECT d.day, d.succeeded, d.failed, d.timed_out, d.cancelled, d.lost, d.skipped FROM days \
                CROSS JOIN job_day d ON d.day = days.day AND d.job_id = ?3";
    let range = crate::reports::counting::days_from(first);
    let day = |row: &Row<'_>| -> rusqlite::Result<_> { Ok((row.get::<_, i64>(0)?, outcomes(row, 1)?)) };
    found.extend(all(conn, days, params![range.start, range.end, signed(job.0)], |row| day(row).map_err(statement))?);
    let newer = format!(
        "SELECT r.due_at, r.status, r.count FROM (SELECT seq FROM run WHERE job_id = ?1 ORDER BY due_at DESC \
         LIMIT {NOT_COUNTED}) newest CROSS JOIN run r ON r.seq = newest.seq \
         WHERE newest.seq > coalesce((SELECT done FROM history_count WHERE id = ?2), 0) AND r.due_at >= ?3"
    );
    let record = |row: &Row<'_>| -> rusqlite::Result<_> {
        Ok((Timestamp::from_ms(row.get(0)?), row.get::<_, String>(1)?, unsigned(row, 2)?))
    };
    let params = params![signed(job.0), Count::JobDays.id(), first.as_ms()];
    for (due_at, status, count) in all(conn, &newer, params, |row| record(row).map_err(statement))? {
        if let Some(status) = Status::ALL.into_iter().find(|known| known.as_str() == status) {
            found.entry(day_of(due_at)).or_default().add(status, count);
        }
    }
    Ok(found.into_iter().map(|(day, outcomes)| JobDay { begins_at: begin_of_day(day), outcomes }).collect())
}
