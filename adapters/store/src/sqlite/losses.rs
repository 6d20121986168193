//! Kept for a database that goes back in time: loss windows, and sessions that are over.

use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::codec::named;
use crate::sqlite::change::execute;
use crate::sqlite::client::error::{statement, unreadable};
use crate::sqlite::rows::signed;
use crate::sqlite::select::{all, column, first};
use crate::tables::{KnownSession, Standing};
use crate::{RecordedLoss, SessionBeat, SessionState, StoreResult};
use carillon_domain::store::SPENT_KEPT;

/// The session that asks, the open window and the end of the newest one.
const STANDING: &str = "SELECT s.state, s.seq, s.node, s.heartbeat_at, w.from_at, w.until_at, w.noticed_at, \
     (SELECT max(until_at) FROM loss_window) FROM (SELECT 1) one LEFT JOIN session s ON s.id = ?1 \
     LEFT JOIN loss_window w ON w.is_open = 1";

pub(in crate::sqlite) fn standing(conn: &Connection, session: SessionId) -> StoreResult<Standing> {
    Ok(first(conn, STANDING, [signed(session.as_u64())], |row| read_standing(row, session))?.unwrap_or_default())
}

fn read_standing(row: &Row<'_>, id: SessionId) -> StoreResult<Standing> {
    let state: Option<String> = row.get(0).map_err(statement)?;
    let state = state.map(|state| named(&SessionState::ALL, SessionState::as_str, &state)).transpose();
    let own = |state| -> rusqlite::Result<KnownSession> {
        let beat = SessionBeat { id, seq: row.get::<_, i64>(1)? as u64, state };
        Ok(KnownSession { beat, node: row.get(2)?, heartbeat_at: Timestamp::from_ms(row.get(3)?) })
    };
    let session = state.map_err(unreadable)?.map(own).transpose().map_err(statement)?;
    let open = if row.get::<_, Option<i64>>(4).map_err(statement)?.is_some() { Some(window(row, 4)?) } else { None };
    let newest: Option<i64> = row.get(7).map_err(statement)?;
    Ok(Standing { session, open, losses_until: newest.map(Timestamp::from_ms) })
}

fn window(row: &Row<'_>, from: usize) -> StoreResult<LossWindow> {
    let time = |column| row.get(column).map(Timestamp::from_ms).map_err(statement);
    Ok(LossWindow { from_at: time(from)?, until_at: time(from + 1)?, noticed_at: time(from + 2)? })
}

pub(in crate::sqlite) fn note(conn: &Connection, noticed: &RecordedLoss) -> StoreResult<()> {
    let sql = "INSERT INTO loss_window (is_open, session, node, from_at, until_at, noticed_at) \
               VALUES (1, ?1, ?2, ?3, ?4, ?5) ON CONFLICT (is_open) DO UPDATE SET \
               from_at = min(from_at, excluded.from_at), until_at = max(until_at, excluded.until_at)";
    let RecordedLoss { window, session, node, .. } = noticed;
    let [from, until, at] = [window.from_at, window.until_at, window.noticed_at].map(Timestamp::as_ms);
    execute(conn, sql, params![signed(session.as_u64()), node, from, until, at]).map(|_| ())
}

pub(in crate::sqlite) fn windows(conn: &Connection, accepted_since: Timestamp) -> StoreResult<Vec<RecordedLoss>> {
    let sql = "SELECT from_at, until_at, noticed_at, session, node, accepted_at FROM loss_window \
               WHERE is_open = 1 OR accepted_at >= ?1 ORDER BY id";
    let about = |row: &Row<'_>| -> rusqlite::Result<_> {
        let session = SessionId::from_random(row.get::<_, i64>(3)? as u64);
        Ok((session, row.get(4)?, row.get::<_, Option<i64>>(5)?.map(Timestamp::from_ms)))
    };
    all(conn, sql, [accepted_since.as_ms()], |row| {
        let (session, node, accepted_at) = about(row).map_err(statement)?;
        Ok(RecordedLoss { window: window(row, 0)?, session, node, accepted_at })
    })
}

pub(in crate::sqlite) fn spend(conn: &Connection, session: SessionId, now: Timestamp) -> StoreResult<()> {
    let keep = "REPLACE INTO spent_session (id, seq, ended_at) SELECT id, seq, ?2 FROM session WHERE id = ?1";
    let id = signed(session.as_u64());
    execute(conn, keep, params![id, now.as_ms()])?;
    execute(conn, "DELETE FROM session WHERE id = ?1", [id]).map(|_| ())
}

pub(in crate::sqlite) fn spent_seq(conn: &Connection, session: SessionId) -> StoreResult<Option<u64>> {
    let sql = "SELECT seq FROM spent_session WHERE id = ?1";
    Ok(first(conn, sql, [signed(session.as_u64())], column::<i64>)?.map(|seq| seq as u64))
}

pub(in crate::sqlite) fn last_spent_at(conn: &Connection) -> StoreResult<Option<Timestamp>> {
    let newest = first(conn, "SELECT max(ended_at) FROM spent_session", [], column::<Option<i64>>)?;
    Ok(newest.flatten().map(Timestamp::from_ms))
}

/// Forgets sessions that ended long ago.
pub(in crate::sqlite) fn purge(conn: &Connection, now: Timestamp) -> StoreResult<()> {
    execute(conn, "DELETE FROM spent_session WHERE ended_at < ?1", [(now - SPENT_KEPT).as_ms()]).map(|_| ())
}
