//! The output of runs that run, between whoever runs them and readers elsewhere.

use carillon_domain::guard::Guard;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::WantedOutput;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::codec::{run_bytes, run_from};
use crate::guarded::guarded;
use crate::live_output::{LiveRow, kept_since, wanted_since};
use crate::sqlite::change::execute;
use crate::sqlite::client::error::statement;
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, first};
use crate::{LivePart, StoreResult};

pub(in crate::sqlite) fn select(conn: &Connection, run: RunId) -> StoreResult<Option<LiveRow>> {
    let read = |row: &Row<'_>| -> rusqlite::Result<LiveRow> {
        let (written, tail): (Option<i64>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
        let published = written.zip(tail).map(|(written, tail)| LivePart { written: written as u64, tail });
        Ok(LiveRow { asked_at: Timestamp::from_ms(row.get(0)?), published })
    };
    let sql = "SELECT asked_at, written, tail FROM live_output WHERE run = ?1";
    first(conn, sql, [run_bytes(run)], |row| read(row).map_err(statement))
}

/// Writes down that somebody reads; what was published for readers who have long gone goes.
pub(in crate::sqlite) fn ask(conn: &Connection, run: RunId, now: Timestamp) -> StoreResult<()> {
    let sql = "INSERT INTO live_output (run, asked_at) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET asked_at = ?2, \
               written = iif(asked_at < ?3, NULL, written), tail = iif(asked_at < ?3, NULL, tail)";
    execute(conn, sql, params![run_bytes(run), now.as_ms(), wanted_since(now).as_ms()]).map(|_| ())
}

/// The table is nearly always empty: it is read first.
pub(in crate::sqlite) fn wanted(
    conn: &Connection,
    session: SessionId,
    now: Timestamp,
) -> StoreResult<Vec<WantedOutput>> {
    let sql = "SELECT l.run, l.written FROM live_output l WHERE l.asked_at >= ?2 AND (\
               EXISTS (SELECT 1 FROM job_state s WHERE s.held_session = ?1 AND s.held_run = l.run) OR \
               EXISTS (SELECT 1 FROM concurrent_run a WHERE a.held_session = ?1 AND a.held_run = l.run))";
    let read = |row: &Row<'_>| -> rusqlite::Result<WantedOutput> {
        let published: Option<i64> = row.get(1)?;
        Ok(WantedOutput { run: run_from(row.get(0)?), published: published.map(|written| written as u64) })
    };
    let params = params![signed(session.as_u64()), wanted_since(now).as_ms()];
    all(conn, sql, params, |row| read(row).map_err(statement))
}

/// Only where it is asked for, and never back to an older state.
pub(in crate::sqlite) fn write(conn: &Connection, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
    let sql = "UPDATE live_output SET written = ?2, tail = ?3 WHERE run = ?1 AND (written IS NULL OR written < ?2)";
    let sql = guarded(Guard::LiveForward, sql, "written < ?2", "TRUE");
    for (run, LivePart { written, tail }) in outputs {
        execute(conn, &sql, params![run_bytes(*run), signed(*written), tail])?;
    }
    Ok(())
}

pub(in crate::sqlite) fn purge(conn: &Connection, now: Timestamp) -> StoreResult<()> {
    execute(conn, "DELETE FROM live_output WHERE asked_at < ?1", [kept_since(now).as_ms()]).map(|_| ())
}
