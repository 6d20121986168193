//! Sessions: register, beat, end, sweep.

use std::time::Duration;

use carillon_domain::firing::Event;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::node::port::RowKey;

use super::lost_commits;
use crate::tables::Tables;
use crate::work::Work;
use crate::{Beat, Me, NewSession, Opened, SessionBeat, SessionState, StoreError};

/// How long a session that is over is remembered: nobody sleeps longer and wakes up as the same process.
pub(crate) const SPENT_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) async fn open<T: Tables>(tables: &mut T, session: &NewSession) -> Result<Opened, StoreError> {
    if tables.session_state(session.id).await?.is_none() {
        tables.insert_session(session).await?;
    }
    Ok(Opened { now: tables.now(), partitions: tables.partitions() })
}

/// The sessions are read after the write: whoever ends this one waits for it, or came before and is seen there.
pub(crate) async fn heartbeat<T: Tables>(tables: &mut T, me: Me, seq: u64, draining: bool) -> Result<Beat, StoreError> {
    let standing = tables.standing(me.session).await?;
    let lost = match enabled(Guard::HeartbeatDetectsLoss) {
        true => lost_commits::notice(tables, me, &standing).await?,
        false => None,
    };
    let state = if draining { SessionState::Draining } else { SessionState::Live };
    tables.beat(me.session, seq, state).await?;
    let sessions: Vec<_> = tables.sessions(false).await?.into_iter().map(|session| session.beat).collect();
    let lives = |beat: &SessionBeat| beat.id == me.session && beat.state != SessionState::Ended;
    Ok(match (sessions.iter().any(lives), lost) {
        (true, lost) => Beat::Alive { now: tables.now(), sessions, window: lost.or(standing.open) },
        (false, Some(_)) => Beat::WentBack,
        (false, None) => Beat::Fenced,
    })
}

/// Ends the session, under the locks of all partitions: a claim of it has committed and is seen here, or finds it ended.
/// What it still holds keeps the tombstone, which tells the others to sweep.
pub(crate) async fn close<T: Tables>(tables: &mut T, session: SessionId) -> Result<(), StoreError> {
    lock_all(tables).await?;
    let sessions = tables.sessions(false).await?;
    let Some(mine) = sessions.into_iter().find(|view| view.beat.id == session) else { return Ok(()) };
    let jobs = tables.held_jobs(session, 1).await?.len();
    let concurrent = tables.held_concurrent(session, 1).await?.len();
    if jobs + concurrent == 0 || !enabled(Guard::CloseLeavesTombstone) {
        return tables.spend_session(session).await;
    }
    tables.end_session(session, mine.beat.seq).await?;
    match tables.session_state(session).await? {
        None | Some(SessionState::Ended) => Ok(()),
        Some(SessionState::Live | SessionState::Draining) => {
            Err(StoreError::Retryable(format!("a heartbeat of session {session} came between")))
        }
    }
}

/// Nobody is ended by a sequence that was seen before commits were lost: it may have come back, while its session went on.
pub(crate) async fn expire<T: Tables>(
    tables: &mut T,
    by: Option<Me>,
    session: SessionId,
    seen_seq: u64,
) -> Result<bool, StoreError> {
    if let Some(me) = by
        && enabled(Guard::ExpireSeenSinceLoss)
    {
        let standing = tables.standing(me.session).await?;
        if lost_commits::notice(tables, me, &standing).await?.is_some() || standing.open.is_some() {
            return Ok(false);
        }
    }
    tables.end_session(session, seen_seq).await?;
    Ok(matches!(tables.session_state(session).await?, None | Some(SessionState::Ended)))
}

/// Under the locks of all partitions, so that no claim of the dead is half way.
pub(crate) async fn sweep<T: Tables>(tables: &mut T, session: SessionId, limit: usize) -> Result<usize, StoreError> {
    if enabled(Guard::SweepLocks) {
        lock_all(tables).await?;
    }
    let state = tables.session_state(session).await?;
    if matches!(state, Some(SessionState::Live | SessionState::Draining)) && enabled(Guard::SweepEnded) {
        return Ok(0);
    }
    let mut work = Work::new(tables.now());
    let mut rows = Vec::new();
    for row in tables.held_jobs(session, limit).await? {
        rows.push(RowKey::Job(work.add_job(row)));
    }
    for row in tables.held_concurrent(session, limit.saturating_sub(rows.len())).await? {
        rows.push(RowKey::Concurrent(work.add_concurrent(row)));
    }
    let swept = rows.iter().filter(|row| work.apply_to(row, &Event::Sweep { session }).is_ok()).count();
    tables.write(work.into_changes()).await?;
    // A row that would not move keeps the tombstone, and with it the next sweep.
    let all = rows.len() < limit && swept == rows.len() || !enabled(Guard::TombstoneStays);
    if all && state.is_some() {
        tables.spend_session(session).await?;
    }
    Ok(swept)
}

async fn lock_all<T: Tables>(tables: &mut T) -> Result<(), StoreError> {
    let all: Vec<u16> = (0..tables.partitions()).collect();
    tables.lock_partitions(&all).await
}
