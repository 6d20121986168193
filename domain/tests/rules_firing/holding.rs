//! Whose word moves a row: its holder's, of that very run, and not before its time.

use carillon_domain::firing::{Event, FiringKey, Rejected, TransitionKind};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::{Misfire, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, ending, every, me, overlap, retrying, secs};

/// Everything that a holder says of its run.
fn words(session: SessionId, run: RunId) -> [Event; 4] {
    let finish = Event::Finish { session, run, ending: ending(Status::Succeeded, at(60)) };
    [Event::Start { session, run }, Event::Defer { session, run }, finish, Event::Reset { session, run }]
}

/// Another session that names the run, and the holder that names another run.
fn strangers(run: RunId) -> [(SessionId, RunId); 2] {
    [(SessionId::from_random(2), run), (me(), RunId::drawn(me(), 999))]
}

/// A run of second 60 beside its row, prepared again after its start was given back.
fn prepared_beside() -> (Desk, FiringKey, RunId) {
    let mut desk = Desk::new(overlap(Overlap::Allow));
    let (_, run) = desk.trigger(60).unwrap();
    let key = *desk.concurrent.keys().next().unwrap();
    desk.apply_concurrent(key, &Event::Claim { session: me(), run, until: at(60), losses_until: None }).unwrap();
    (desk, key, run)
}

#[test]
fn nobody_but_the_holder_moves_a_row_and_only_with_the_run_that_it_holds() {
    let mut prepared = Desk::new(every(60));
    prepared.claim(60).unwrap();
    let mut executing = Desk::new(every(60));
    executing.run(60);
    for mut desk in [prepared, executing] {
        let before = desk.row().clone();
        for (session, run) in strangers(desk.held().run) {
            for word in words(session, run) {
                assert_eq!(desk.apply(&word), Err(Rejected::NotHeld(run)), "{word:?}");
            }
        }
        let stranger = SessionId::from_random(2);
        assert_eq!(desk.apply(&Event::Sweep { session: stranger }), Err(Rejected::NotHeld(desk.held().run)));
        assert_eq!(*desk.row(), before);
    }
}

#[test]
fn nor_a_row_beside_it() {
    let (prepared, key, run) = prepared_beside();
    let mut executing = prepared.clone();
    executing.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    for mut desk in [prepared, executing] {
        let before = desk.concurrent.clone();
        for (session, other) in strangers(run) {
            for word in words(session, other) {
                assert_eq!(desk.apply_concurrent(key, &word), Err(Rejected::NotHeld(other)), "{word:?}");
            }
        }
        let sweep = Event::Sweep { session: SessionId::from_random(2) };
        assert_eq!(desk.apply_concurrent(key, &sweep), Err(Rejected::NotHeld(run)));
        assert_eq!(desk.concurrent, before);
    }
}

#[test]
fn a_cancel_of_another_run_leaves_every_row_as_it_is() {
    let mut waiting = Desk::new(overlap(Overlap::Allow));
    waiting.trigger(60).unwrap();
    let (prepared, key, run) = prepared_beside();
    let mut executing = prepared.clone();
    executing.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    let mut own = Desk::new(every(60));
    own.trigger(1).unwrap();
    let mut own_prepared = own.clone();
    own_prepared.claim(1).unwrap();
    let mut own_executing = own.clone();
    own_executing.run(1);
    for mut desk in [waiting, prepared, executing, own, own_prepared, own_executing] {
        let before = (desk.state.clone(), desk.concurrent.clone());
        let another = RunId::drawn(me(), 999);
        assert_eq!(desk.cancel(61, another), Err(Rejected::NotHeld(another)));
        assert_eq!((desk.state, desk.concurrent), before);
    }
}

#[test]
fn a_run_beside_its_row_starts_at_its_time_and_not_a_moment_before() {
    let (mut desk, key, run) = prepared_beside();
    let start = Event::Start { session: me(), run };
    let defer = Event::Defer { session: me(), run };
    desk.now = at(60) - secs(1);
    assert_eq!(desk.apply_concurrent(key, &start), Err(Rejected::Early(at(60))));
    assert_eq!(desk.apply_concurrent(key, &defer), Err(Rejected::Early(at(60))));
    desk.now = at(60);
    assert_eq!(desk.apply_concurrent(key, &start), Ok(TransitionKind::Started));
}

#[test]
fn an_event_that_does_not_apply_writes_nothing_though_a_pause_has_lapsed() {
    let mut desk = Desk::new(every(60));
    desk.pause(10, Some(100)).unwrap();
    let before = desk.row().clone();
    desk.now = at(110);
    for event in [Event::Sweep { session: me() }, Event::Supersede] {
        assert_eq!(desk.apply(&event), Err(Rejected::NothingDue), "{event:?}");
    }
    assert_eq!((desk.row(), desk.records.len()), (&before, 0));
    assert_eq!(desk.claim(110), Ok(TransitionKind::Rearmed), "whoever claims finds the pause over");
    assert_eq!((desk.row().claim_at(), desk.history()), (Some(at(120)), vec!["schedule 60 skipped(paused)".into()]));
}

#[test]
fn the_one_firing_that_is_made_good_is_no_backlog() {
    let fire_once = Misfire { policy: MisfirePolicy::FireOnce, grace: secs(0) };
    let mut desk = Desk::new(carillon_domain::job::Job { misfire: fire_once, ..overlap(Overlap::Allow) });
    desk.claim(130).unwrap();
    assert_eq!(desk.row().catch_up_until, None);
    assert_eq!(desk.start(130), Ok(TransitionKind::StartedConcurrently), "nothing follows that it would hold up");
}

#[test]
fn a_pause_drops_a_further_attempt_however_short_it_is() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 30));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    desk.pause(62, None).unwrap();
    desk.resume(63).unwrap();
    assert_eq!((desk.armed().due_at, desk.armed().attempt), (at(120), 1));
}

#[test]
fn a_start_given_back_after_the_clock_was_set_back_outlives_a_pause() {
    let mut desk = Desk::new(every(60));
    desk.run(60);
    desk.reset(50).unwrap();
    desk.pause(50, None).unwrap();
    desk.resume(52).unwrap();
    assert_eq!((desk.armed().due_at, desk.history()), (at(60), vec![]), "it was not due in the pause");
}
