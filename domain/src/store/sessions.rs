//! Sessions: register, heartbeat, close, expire, sweep.

use std::time::Duration;

use super::unit_of_work::UnitOfWork;
use super::{Decided, Decision, Need, NewSession, Rows, SessionBeat, SessionState, SessionWrite, WriteSet, losses};
use crate::firing::Event;
use crate::guard::{Guard, enabled};
use crate::id::SessionId;
use crate::node::call::{BeatAnswer, Me, Peer};

/// How long a session that is over is remembered: nobody sleeps longer and wakes up as the same process.
pub const SPENT_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Registers a session. A repeated call changes nothing.
pub fn open(new: &NewSession, rows: &Rows) -> Decision<()> {
    let known = rows.session_state.ok_or(Need::SessionState(new.id, None))?.is_some();
    let sessions = if known { Vec::new() } else { vec![SessionWrite::Register(new.clone())] };
    Ok(Decided { write: WriteSet { sessions, ..WriteSet::default() }, answer: () })
}

/// Writes a heartbeat, then reads the sessions: whoever ends this one waits for the write, or came before it and is seen.
pub fn heartbeat(me: Me, seq: u64, draining: bool, rows: &Rows) -> Decision<BeatAnswer> {
    let standing = rows.standing.as_ref().ok_or(Need::Standing(me.session))?;
    let loss = if enabled(Guard::HeartbeatDetectsLoss) { losses::notice(me, standing, rows)? } else { None };
    let state = if draining { SessionState::Draining } else { SessionState::Live };
    let beat = SessionWrite::Beat { session: me.session, seq, state };
    let sessions = rows.sessions.as_ref().ok_or(Need::Sessions(Some(beat)))?;
    let lives = sessions.iter().any(|one| one.beat.id == me.session && one.beat.state != SessionState::Ended);
    let lost = loss.as_ref().map(|loss| losses::open_window(loss, standing));
    let answer = match (lives, lost) {
        (true, lost) => BeatAnswer::Alive {
            utc: rows.now,
            peers: sessions.iter().map(|one| peer(one.beat)).collect(),
            window: lost.or(standing.open),
        },
        (false, Some(_)) => BeatAnswer::WentBack,
        (false, None) => BeatAnswer::Fenced,
    };
    Ok(Decided { write: WriteSet { loss, ..WriteSet::default() }, answer })
}

fn peer(beat: SessionBeat) -> Peer {
    let SessionBeat { id, seq, state } = beat;
    Peer { session: id, seq, claims: state == SessionState::Live, ended: state == SessionState::Ended }
}

/// Ends the caller's session, under the locks of all partitions: a claim of it has committed and is seen here, or finds it
/// ended. If it still holds rows, its tombstone tells the others to sweep. `false` where a heartbeat came between: try again.
pub fn close(session: SessionId, rows: &Rows) -> Decision<bool> {
    let sessions = rows.sessions.as_ref().ok_or(Need::Sessions(None))?;
    let Some(mine) = sessions.iter().find(|one| one.beat.id == session) else { return Ok(Decided::answer(true)) };
    let held = rows.held.as_ref().ok_or(Need::HeldBy(session, 1))?;
    if held.is_empty() || !enabled(Guard::CloseLeavesTombstone) {
        let sessions = vec![SessionWrite::Spend(session)];
        return Ok(Decided { write: WriteSet { sessions, ..WriteSet::default() }, answer: true });
    }
    let end = SessionWrite::End { session, seen_seq: mine.beat.seq };
    Ok(Decided::answer(is_over(rows.session_state.ok_or(Need::SessionState(session, Some(end)))?)))
}

/// Ends a silent session; answers whether it is ended now. A sequence that was read before commits were lost proves nothing,
/// as it may have come back while its session went on beating. `by` is `None` where something else proves that it is dead.
pub fn expire(by: Option<Me>, session: SessionId, seen_seq: u64, rows: &Rows) -> Decision<bool> {
    if let Some(me) = by
        && enabled(Guard::ExpireSeenSinceLoss)
    {
        let standing = rows.standing.as_ref().ok_or(Need::Standing(me.session))?;
        let loss = losses::notice(me, standing, rows)?;
        if loss.is_some() || standing.open.is_some() {
            return Ok(Decided { write: WriteSet { loss, ..WriteSet::default() }, answer: false });
        }
    }
    let end = SessionWrite::End { session, seen_seq };
    Ok(Decided::answer(is_over(rows.session_state.ok_or(Need::SessionState(session, Some(end)))?)))
}

fn is_over(state: Option<SessionState>) -> bool {
    matches!(state, None | Some(SessionState::Ended))
}

/// Moves up to `limit` rows of an ended session to Idle; answers how many. It runs under the locks of all partitions, so no claim of
/// that session is half done.
pub fn sweep(session: SessionId, limit: usize, rows: &Rows) -> Decision<usize> {
    let state = rows.session_state.ok_or(Need::SessionState(session, None))?;
    if matches!(state, Some(SessionState::Live | SessionState::Draining)) && enabled(Guard::SweepEnded) {
        return Ok(Decided::answer(0));
    }
    let held = rows.held.as_ref().ok_or(Need::HeldBy(session, limit))?;
    rows.require_jobs_of_concurrent(held.iter())?;
    let mut work = UnitOfWork::of(rows);
    let swept = held.iter().filter(|row| work.apply_to(row, &Event::Sweep { session }).is_ok()).count();
    // A row that would not move keeps the tombstone, and with it the next sweep.
    let all = held.len() < limit && swept == held.len() || !enabled(Guard::TombstoneStays);
    if all && state.is_some() {
        work.write_session(SessionWrite::Spend(session));
    }
    Ok(work.decided(swept))
}
