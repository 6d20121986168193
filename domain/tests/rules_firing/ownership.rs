//! Only the holder moves a row, only with the run that it holds, and not before the run's time.

use carillon_domain::firing::{Event, FiringKey, Rejected, TransitionKind};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::{Misfire, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, ending, every, me, overlap, retrying, secs};

/// All events that a holder sends about its run.
fn holder_events(session: SessionId, run: RunId) -> [Event; 4] {
    let finish = Event::Finish { session, run, ending: ending(Status::Succeeded, at(60)) };
    [Event::Start { session, run }, Event::Defer { session, run }, finish, Event::Reset { session, run }]
}

/// Another session with this run, and the holder with another run.
fn strangers(run: RunId) -> [(SessionId, RunId); 2] {
    [(SessionId::from_random(2), run), (me(), RunId::drawn(me(), 999))]
}

/// A concurrent manual run of second 60, prepared.
fn prepared_concurrent() -> (JobFixture, FiringKey, RunId) {
    let mut fixture = JobFixture::new(overlap(Overlap::Allow));
    let (_, run) = fixture.trigger(60).unwrap();
    let key = *fixture.concurrent.keys().next().unwrap();
    fixture.apply_concurrent(key, &Event::Claim { session: me(), run, until: at(60), losses_until: None }).unwrap();
    (fixture, key, run)
}

#[test]
fn only_the_holder_moves_a_row_and_only_with_its_run() {
    let mut prepared = JobFixture::new(every(60));
    prepared.claim(60).unwrap();
    let mut executing = JobFixture::new(every(60));
    executing.run(60);
    for mut fixture in [prepared, executing] {
        let before = fixture.row().clone();
        for (session, run) in strangers(fixture.held().run) {
            for event in holder_events(session, run) {
                assert_eq!(fixture.apply(&event), Err(Rejected::NotHeld(run)), "{event:?}");
            }
        }
        let stranger = SessionId::from_random(2);
        assert_eq!(fixture.apply(&Event::Sweep { session: stranger }), Err(Rejected::NotHeld(fixture.held().run)));
        assert_eq!(*fixture.row(), before);
    }
}

#[test]
fn only_the_holder_moves_a_concurrent_run() {
    let (prepared, key, run) = prepared_concurrent();
    let mut executing = prepared.clone();
    executing.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    for mut fixture in [prepared, executing] {
        let before = fixture.concurrent.clone();
        for (session, other) in strangers(run) {
            for event in holder_events(session, other) {
                assert_eq!(fixture.apply_concurrent(key, &event), Err(Rejected::NotHeld(other)), "{event:?}");
            }
        }
        let sweep = Event::Sweep { session: SessionId::from_random(2) };
        assert_eq!(fixture.apply_concurrent(key, &sweep), Err(Rejected::NotHeld(run)));
        assert_eq!(fixture.concurrent, before);
    }
}

#[test]
fn a_cancel_of_another_run_changes_no_row() {
    let mut waiting = JobFixture::new(overlap(Overlap::Allow));
    waiting.trigger(60).unwrap();
    let (prepared, key, run) = prepared_concurrent();
    let mut executing = prepared.clone();
    executing.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    let mut own = JobFixture::new(every(60));
    own.trigger(1).unwrap();
    let mut own_prepared = own.clone();
    own_prepared.claim(1).unwrap();
    let mut own_executing = own.clone();
    own_executing.run(1);
    for mut fixture in [waiting, prepared, executing, own, own_prepared, own_executing] {
        let before = (fixture.state.clone(), fixture.concurrent.clone());
        let another = RunId::drawn(me(), 999);
        assert_eq!(fixture.cancel(61, another), Err(Rejected::NotHeld(another)));
        assert_eq!((fixture.state, fixture.concurrent), before);
    }
}

#[test]
fn a_concurrent_run_starts_at_its_time_and_not_before() {
    let (mut fixture, key, run) = prepared_concurrent();
    let start = Event::Start { session: me(), run };
    let defer = Event::Defer { session: me(), run };
    fixture.now = at(60) - secs(1);
    assert_eq!(fixture.apply_concurrent(key, &start), Err(Rejected::Early(at(60))));
    assert_eq!(fixture.apply_concurrent(key, &defer), Err(Rejected::Early(at(60))));
    fixture.now = at(60);
    assert_eq!(fixture.apply_concurrent(key, &start), Ok(TransitionKind::Started));
}

#[test]
fn a_rejected_event_writes_nothing_even_after_a_pause_has_ended() {
    let mut fixture = JobFixture::new(every(60));
    fixture.pause(10, Some(100)).unwrap();
    let before = fixture.row().clone();
    fixture.now = at(110);
    for event in [Event::Sweep { session: me() }, Event::Supersede] {
        assert_eq!(fixture.apply(&event), Err(Rejected::NothingDue), "{event:?}");
    }
    assert_eq!((fixture.row(), fixture.records.len()), (&before, 0));
    assert_eq!(fixture.claim(110), Ok(TransitionKind::Rearmed), "a claim ends the pause");
    assert_eq!(
        (fixture.row().claim_at(), fixture.history()),
        (Some(at(120)), vec!["schedule 60 skipped(paused)".into()])
    );
}

#[test]
fn the_single_run_of_fire_once_is_no_backlog() {
    let fire_once = Misfire { policy: MisfirePolicy::FireOnce, grace: secs(0) };
    let mut fixture = JobFixture::new(carillon_domain::job::Job { misfire: fire_once, ..overlap(Overlap::Allow) });
    fixture.claim(130).unwrap();
    assert_eq!(fixture.row().catch_up_until, None);
    assert_eq!(fixture.start(130), Ok(TransitionKind::StartedConcurrently), "no backlog follows that it would hold up");
}

#[test]
fn even_a_short_pause_drops_a_retry() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 30));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    fixture.pause(62, None).unwrap();
    fixture.resume(63).unwrap();
    assert_eq!((fixture.armed().due_at, fixture.armed().attempt), (at(120), 1));
}

#[test]
fn a_start_released_after_the_clock_was_set_back_survives_a_pause() {
    let mut fixture = JobFixture::new(every(60));
    fixture.run(60);
    fixture.reset(50).unwrap();
    fixture.pause(50, None).unwrap();
    fixture.resume(52).unwrap();
    assert_eq!((fixture.armed().due_at, fixture.history()), (at(60), vec![]), "it was not due in the pause");
}
