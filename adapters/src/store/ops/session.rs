//! Sessions: register, beat, end, sweep.

use carillon_domain::firing::Event;
use carillon_domain::id::SessionId;
use carillon_domain::node::port::RowKey;

use crate::store::tables::Tables;
use crate::store::work::Work;
use crate::store::{Beat, NewSession, Opened, SessionState, StoreError};

pub(in crate::store) async fn open<T: Tables>(tables: &mut T, session: &NewSession) -> Result<Opened, StoreError> {
    if tables.session_state(session.id).await?.is_none() {
        tables.insert_session(session).await?;
    }
    Ok(Opened { now: tables.now(), partitions: tables.partitions() })
}

pub(in crate::store) async fn heartbeat<T: Tables>(
    tables: &mut T,
    session: SessionId,
    seq: u64,
    draining: bool,
) -> Result<Beat, StoreError> {
    let state = if draining { SessionState::Draining } else { SessionState::Live };
    tables.beat(session, seq, state).await?;
    match tables.session_state(session).await? {
        None | Some(SessionState::Ended) => Ok(Beat::Fenced),
        Some(SessionState::Live | SessionState::Draining) => {
            let sessions = tables.sessions(false).await?.into_iter().map(|session| session.beat).collect();
            Ok(Beat::Alive { now: tables.now(), sessions })
        }
    }
}

/// Ends the session, under the locks of all partitions: a claim of it has committed and is seen here, or finds it ended.
/// What it still holds keeps the tombstone, which tells the others to sweep.
pub(in crate::store) async fn close<T: Tables>(tables: &mut T, session: SessionId) -> Result<(), StoreError> {
    lock_all(tables).await?;
    let sessions = tables.sessions(false).await?;
    let Some(mine) = sessions.into_iter().find(|view| view.beat.id == session) else { return Ok(()) };
    let jobs = tables.held_jobs(session, 1).await?.len();
    let active = tables.held_active(session, 1).await?.len();
    if jobs + active == 0 {
        return tables.remove_session(session).await;
    }
    tables.end_session(session, mine.beat.seq).await?;
    match tables.session_state(session).await? {
        None | Some(SessionState::Ended) => Ok(()),
        Some(SessionState::Live | SessionState::Draining) => {
            Err(StoreError::Retryable(format!("a heartbeat of session {session} came between")))
        }
    }
}

pub(in crate::store) async fn expire<T: Tables>(
    tables: &mut T,
    session: SessionId,
    seen_seq: u64,
) -> Result<bool, StoreError> {
    tables.end_session(session, seen_seq).await?;
    Ok(matches!(tables.session_state(session).await?, None | Some(SessionState::Ended)))
}

/// Under the locks of all partitions, so that no claim of the dead is half way.
pub(in crate::store) async fn sweep<T: Tables>(
    tables: &mut T,
    session: SessionId,
    limit: usize,
) -> Result<usize, StoreError> {
    lock_all(tables).await?;
    let state = tables.session_state(session).await?;
    if matches!(state, Some(SessionState::Live | SessionState::Draining)) {
        return Ok(0);
    }
    let mut work = Work::new(tables.now());
    let mut rows = Vec::new();
    for row in tables.held_jobs(session, limit).await? {
        rows.push(RowKey::Job(work.add_job(row)));
    }
    for row in tables.held_active(session, limit.saturating_sub(rows.len())).await? {
        rows.push(RowKey::Active(work.add_active(row)));
    }
    let swept = rows.iter().filter(|row| work.apply_to(row, &Event::Sweep { session }).is_ok()).count();
    tables.write(work.into_changes()).await?;
    // A row that would not move keeps the tombstone, and with it the next sweep.
    if rows.len() < limit && swept == rows.len() && state.is_some() {
        tables.remove_session(session).await?;
    }
    Ok(swept)
}

async fn lock_all<T: Tables>(tables: &mut T) -> Result<(), StoreError> {
    let all: Vec<u16> = (0..tables.partitions()).collect();
    tables.lock_partitions(&all).await
}
