//! Sessions: heartbeat, close, expire, sweep.

use carillon_domain::firing::Phase;
use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{BeatAnswer, ClaimRequest, Me};
use carillon_domain::store::{
    KnownSession, Need, NewSession, Rows, SPENT_KEPT, SessionBeat, SessionState, SessionWrite, Standing, claim, close,
    expire, heartbeat, open, sweep,
};

use super::rows::{
    at, claim_request, decided, executing, job, me, prepared, row, rows, session, standing, window, written,
};

fn asks() -> Me {
    Me { session: me(), acked: 5 }
}

/// The rows after the heartbeat was written and the sessions were read.
fn beaten(standing: Standing, sessions: Vec<KnownSession>) -> Rows {
    Rows { standing: Some(standing), sessions: Some(sessions), ..Rows::at(at(10), 10_000_000) }
}

#[test]
fn a_session_is_registered_once() {
    let new = NewSession { id: me(), node: "a".into(), address: "b".into(), version: "1".into() };
    let mut rows = Rows::at(at(1), 1_000_000);
    assert_eq!(open(&new, &rows).map(|_| ()), Err(Need::SessionState(me(), None)));
    rows.session_state = Some(None);
    assert_eq!(decided(open(&new, &rows)).write.sessions, [SessionWrite::Register(new.clone())]);
    rows.session_state = Some(Some(SessionState::Live));
    assert!(decided(open(&new, &rows)).write.sessions.is_empty(), "a repeated call changes nothing");
}

#[test]
fn a_heartbeat_is_written_before_the_sessions_are_read() {
    let rows = Rows { standing: Some(standing(SessionState::Live)), ..Rows::at(at(10), 10_000_000) };
    let beat = SessionWrite::Beat { session: me(), seq: 6, state: SessionState::Draining };
    assert_eq!(heartbeat(asks(), 6, true, &rows).map(|_| ()), Err(Need::Sessions(Some(beat))));
}

#[test]
fn a_heartbeat_tells_whether_the_session_lives_and_what_is_open() {
    let live = || vec![session(6, SessionState::Live)];
    let ended = || vec![session(5, SessionState::Ended)];
    let open = Standing { open: Some(window()), ..standing(SessionState::Live) };
    let behind = Standing { session: Some(session(3, SessionState::Live)), ..Standing::default() };
    let answer = |standing, sessions| decided(heartbeat(asks(), 6, false, &beaten(standing, sessions))).answer;
    assert!(matches!(answer(standing(SessionState::Live), live()), BeatAnswer::Alive { window: None, .. }));
    assert!(matches!(answer(open, live()), BeatAnswer::Alive { window: Some(_), .. }));
    assert!(matches!(answer(behind.clone(), live()), BeatAnswer::Alive { window: Some(_), .. }), "noticed now");
    assert_eq!(answer(standing(SessionState::Ended), ended()), BeatAnswer::Fenced);
    assert_eq!(answer(standing(SessionState::Live), Vec::new()), BeatAnswer::Fenced);
    assert_eq!(answer(behind.clone(), ended()), BeatAnswer::WentBack);
    let noticed = |standing| decided(heartbeat(asks(), 6, false, &beaten(standing, live()))).write.loss;
    assert!(noticed(behind).is_some() && noticed(standing(SessionState::Live)).is_none(), "it is recorded");
    for (state, claims, is_over) in
        [(SessionState::Live, true, false), (SessionState::Draining, false, false), (SessionState::Ended, false, true)]
    {
        let mut sessions = live();
        let other =
            KnownSession { beat: SessionBeat { id: SessionId::from_random(2), seq: 3, state }, ..sessions[0].clone() };
        sessions.push(other);
        let BeatAnswer::Alive { peers, .. } = answer(standing(SessionState::Live), sessions) else {
            panic!("{state:?}")
        };
        assert_eq!((peers[1].seq, peers[1].claims, peers[1].ended), (3, claims, is_over), "{state:?}");
    }
}

/// The row was deleted when the session ended, or it is lost with the commits that wrote it.
#[test]
fn a_session_without_a_row_has_lost_commits_unless_its_last_sequence_was_kept() {
    let noticed = |acked, spent_seq, last_heard| {
        let standing = Some(Standing::default());
        let rows = Rows { standing, spent_seq, last_heard, ..rows(row(&job())) };
        let request = ClaimRequest { me: Me { acked, ..asks() }, ..claim_request() };
        claim(&request, &rows).map(|done| done.write.loss.map(|loss| loss.window))
    };
    assert_eq!(noticed(0, None, None), Ok(None), "nothing was acknowledged to it");
    assert_eq!(noticed(5, None, None), Err(Need::SpentSeq(me())));
    assert_eq!(noticed(5, Some(Some(5)), None), Ok(None), "it ended in order");
    for known in [Some(4), None] {
        assert_eq!(noticed(5, Some(known), None), Err(Need::LastHeard), "known: {known:?}");
        for (last_heard, from) in [(Some(at(7)), 7), (None, 10), (Some(at(12)), 10)] {
            let window = LossWindow { from_at: at(from), until_at: at(10), noticed_at: at(10) };
            assert_eq!(noticed(5, Some(known), Some(last_heard)), Ok(Some(window)), "{known:?}, {last_heard:?}");
        }
    }
}

#[test]
fn a_session_that_closes_while_it_holds_a_row_leaves_a_tombstone() {
    let mut holds = rows(prepared(&job()));
    holds.sessions = Some(vec![session(5, SessionState::Draining)]);
    let mut free = holds.clone();
    holds.held = holds.due.clone();
    free.held = Some(Vec::new());
    assert_eq!(decided(close(me(), &free)).write.sessions, [SessionWrite::Spend(me())]);
    let end = SessionWrite::End { session: me(), seen_seq: 5 };
    assert_eq!(close(me(), &holds).map(|_| ()), Err(Need::SessionState(me(), Some(end))));
    for (state, closed) in [(SessionState::Ended, true), (SessionState::Draining, false)] {
        holds.session_state = Some(Some(state));
        assert_eq!(decided(close(me(), &holds)).answer, closed, "{state:?}: a heartbeat may come between");
    }
}

#[test]
fn nobody_is_ended_by_a_sequence_from_before_a_loss() {
    let other = SessionId::from_random(2);
    let end = SessionWrite::End { session: other, seen_seq: 9 };
    let calm = Rows { standing: Some(standing(SessionState::Live)), ..Rows::at(at(10), 0) };
    let asked = expire(Some(asks()), other, 9, &calm).map(|_| ());
    assert_eq!(asked, Err(Need::SessionState(other, Some(end))), "the tombstone is written, guarded by the sequence");
    let open = Standing { open: Some(window()), ..standing(SessionState::Live) };
    let behind = Standing { session: Some(session(3, SessionState::Live)), ..Standing::default() };
    for (standing, noticed) in [(open, false), (behind, true)] {
        let suspended = Rows { standing: Some(standing), ..Rows::at(at(10), 0) };
        let expired = decided(expire(Some(asks()), other, 9, &suspended));
        assert_eq!((expired.answer, expired.write.loss.is_some()), (false, noticed));
    }
}

#[test]
fn a_sweep_moves_the_rows_of_an_ended_session_and_then_its_tombstone() {
    for (row, live, idle) in
        [(prepared(&job()), false, true), (executing(&job()), false, true), (prepared(&job()), true, false)]
    {
        let mut rows = rows(row);
        rows.held = rows.due.clone();
        rows.session_state = Some(Some(if live { SessionState::Live } else { SessionState::Ended }));
        let swept = decided(sweep(me(), 10, &rows));
        assert_eq!((swept.answer, written(&swept) == Some(Phase::Idle)), (usize::from(idle), idle));
        assert_eq!(swept.write.sessions.len(), usize::from(idle), "a session that lives is left alone");
    }
    let mut full = rows(prepared(&job()));
    full.held = full.due.clone();
    full.session_state = Some(Some(SessionState::Ended));
    assert!(decided(sweep(me(), 1, &full)).write.sessions.is_empty(), "there may be more: the tombstone stays");
    let mut nothing = rows(row(&job()));
    nothing.held = Some(Vec::new());
    nothing.session_state = Some(Some(SessionState::Ended));
    assert_eq!(decided(sweep(me(), 10, &nothing)).write.sessions, [SessionWrite::Spend(me())]);
    assert_eq!(SPENT_KEPT.as_secs(), 86_400, "a process that sleeps for less than a day finds its last sequence");
}
