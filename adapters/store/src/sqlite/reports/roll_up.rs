//! Counting history: a step goes over a bounded part of it, and moves the cursor in the same transaction.

use std::collections::BTreeMap;

use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::codec::named;
use crate::reports::counting::{BUCKET, BUCKETS_KEPT, Count, Counted, DAY, DAYS_KEPT, Step, day_of};
use crate::reports::tally::{Ended, Tally};
use crate::sqlite::change::execute;
use crate::sqlite::client::error::{statement, unreadable};
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, column};
use crate::{RolledUp, StoreResult};

/// How far each count has come, and the newest record.
fn counted(conn: &Connection) -> StoreResult<(BTreeMap<u8, Counted>, u64)> {
    let read = |row: &Row<'_>| -> rusqlite::Result<_> {
        let (done, seen) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
        Ok((row.get(0)?, Counted { done, seen, seen_at: Timestamp::from_ms(row.get(3)?) }))
    };
    let counts =
        all(conn, "SELECT id, done, seen, seen_at FROM history_count", [], |row| read(row).map_err(statement))?;
    let newest = all(conn, "SELECT coalesce(max(seq), 0) FROM run", [], column::<i64>)?;
    Ok((counts.into_iter().collect(), newest.first().map_or(0, |newest| *newest as u64)))
}

pub(in crate::sqlite) fn has_to_count(conn: &Connection, now: Timestamp) -> StoreResult<bool> {
    let (counts, newest) = counted(conn)?;
    let counted = |count: &Count| counts.get(&count.id()).copied().unwrap_or_default();
    Ok(Count::ALL.iter().any(|count| counted(count).step(count.settles_after(), newest, now, u64::MAX).is_some()))
}

pub(in crate::sqlite) fn count_history(conn: &Connection, limit: usize, now: Timestamp) -> StoreResult<RolledUp> {
    let (counts, newest) = counted(conn)?;
    let mut done = RolledUp::default();
    for count in Count::ALL {
        let from = counts.get(&count.id()).copied().unwrap_or_default();
        let Some(step) = from.step(count.settles_after(), newest, now, u64::try_from(limit).unwrap_or(u64::MAX)) else {
            continue;
        };
        let sql = "INSERT INTO history_count (id, done, seen, seen_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) \
                   DO UPDATE SET done = excluded.done, seen = excluded.seen, seen_at = excluded.seen_at";
        let Counted { done: counted, seen, seen_at } = step.next;
        execute(conn, sql, params![count.id(), signed(counted), signed(seen), seen_at.as_ms()])?;
        if step.up_to > step.after {
            match count {
                Count::Activity => count_activity(conn, &step, now)?,
                Count::JobDays => count_job_days(conn, &step, now)?,
            }
        }
        done.passed += step.up_to - step.after;
        done.more |= step.has_more();
    }
    Ok(done)
}

fn count_activity(conn: &Connection, step: &Step, now: Timestamp) -> StoreResult<()> {
    let sql = "INSERT INTO activity (namespace, begins_at, succeeded, failed, timed_out, cancelled, lost, skipped, started, \
               lag_total_ms, lag_max_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
               ON CONFLICT (namespace, begins_at) DO UPDATE SET succeeded = succeeded + excluded.succeeded, \
               failed = failed + excluded.failed, timed_out = timed_out + excluded.timed_out, \
               cancelled = cancelled + excluded.cancelled, lost = lost + excluded.lost, \
               skipped = skipped + excluded.skipped, started = started + excluded.started, \
               lag_total_ms = lag_total_ms + excluded.lag_total_ms, lag_max_ms = max(lag_max_ms, excluded.lag_max_ms)";
    for (namespace, bucket) in tally(conn, step)?.rows() {
        let outcomes = &bucket.outcomes;
        let params = params![
            namespace,
            bucket.begins_at.as_ms(),
            signed(outcomes.succeeded),
            signed(outcomes.failed),
            signed(outcomes.timed_out),
            signed(outcomes.cancelled),
            signed(outcomes.lost),
            signed(outcomes.skipped),
            signed(bucket.started),
            signed(bucket.lag_total_ms),
            signed(bucket.lag_max_ms)
        ];
        execute(conn, sql, params)?;
    }
    execute(conn, "DELETE FROM activity WHERE begins_at < ?1", [(now - BUCKETS_KEPT).as_ms()]).map(|_| ())
}

fn tally(conn: &Connection, step: &Step) -> StoreResult<Tally> {
    let sql = format!(
        "SELECT j.namespace, min(r.finished_at), r.status, sum(r.count), count(r.lag_ms), sum(max(coalesce(r.lag_ms, 0), 0)), \
         max(max(coalesce(r.lag_ms, 0), 0)) FROM run r LEFT JOIN job j ON j.id = r.job_id WHERE r.seq > ?1 AND r.seq <= ?2 \
         GROUP BY j.namespace, r.finished_at / {}, r.status",
        BUCKET.as_millis()
    );
    let read = |row: &Row<'_>| -> rusqlite::Result<_> {
        let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
        let ended = Ended {
            finished_at: Timestamp::from_ms(row.get(1)?),
            status: Status::Running,
            count: number(3)?,
            started: number(4)?,
            lag_total_ms: number(5)?,
            lag_max_ms: number(6)?,
        };
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(2)?, ended))
    };
    let mut tally = Tally::default();
    for (namespace, status, ended) in
        all(conn, &sql, [signed(step.after), signed(step.up_to)], |row| read(row).map_err(statement))?
    {
        let status = named(&Status::ALL, Status::as_str, &status).map_err(unreadable)?;
        tally.add(namespace.as_deref(), &Ended { status, ..ended });
    }
    Ok(tally)
}

fn count_job_days(conn: &Connection, step: &Step, now: Timestamp) -> StoreResult<()> {
    let count = |status: &str| format!("sum(iif(status = '{status}', count, 0))");
    let columns = ["succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"];
    let sums = columns.map(count).join(", ");
    let add = columns.map(|column| format!("{column} = {column} + excluded.{column}")).join(", ");
    let sql = format!(
        "INSERT INTO job_day (day, job_id, {}) SELECT max(due_at, 0) / {} AS day, job_id, {sums} FROM run \
         WHERE seq > ?1 AND seq <= ?2 GROUP BY 1, 2 ON CONFLICT (day, job_id) DO UPDATE SET {add}",
        columns.join(", "),
        DAY.as_millis()
    );
    execute(conn, &sql, [signed(step.after), signed(step.up_to)])?;
    execute(conn, "DELETE FROM job_day WHERE day < ?1", [day_of(now - DAYS_KEPT)]).map(|_| ())
}
