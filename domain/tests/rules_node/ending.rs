//! Lease, fencing, drain, keeper death: how a node ends, and that nothing starts after it.

use carillon_domain::id::SessionId;
use carillon_domain::node::call::Call;
use carillon_domain::node::call::ClaimRequest;
use carillon_domain::node::call::{BeatAnswer, CallFailure, Peer};
use carillon_domain::node::port::Peek;
use carillon_domain::node::{Effect, Input, SelfKillReason, StopReason};
use carillon_domain::run::{Ending, Reason, Status};
use carillon_domain::time::BootTime;

use super::driver::{Driver, UTC0_MS, config, found_executing, me, other, peer, started, succeeded, timed};
use carillon_domain::node::call::CallKind;

#[test]
pub fn a_node_past_its_deadline_ends_itself_and_starts_nothing() {
    let mut driver = Driver::new(timed());
    let claimed = driver.prepare(11_000);
    driver.tick(11_000);
    assert_eq!(driver.starts(), [claimed.at]);
    assert!(driver.node.next_wake() <= BootTime::from_ms(12_000));
    driver.now = BootTime::from_ms(12_000);
    driver.answer_start(Ok(vec![started(&claimed)]));
    assert_eq!((driver.kills(), driver.spawns()), (vec![SelfKillReason::LeaseOver], vec![]));
    driver.take();
    for input in [Input::Tick, Input::RowsChanged, Input::Drain, Input::KeeperDied] {
        driver.feed(input);
    }
    driver.beat();
    assert!(driver.take().is_empty(), "a node that has ended does nothing any more");
}

#[test]
pub fn an_acknowledgement_that_comes_after_the_deadline_does_not_bring_a_node_back() {
    let mut driver = Driver::new(timed());
    driver.tick(3_000);
    driver.now = BootTime::from_ms(12_001);
    driver.beat();
    assert_eq!(driver.kills(), [SelfKillReason::LeaseOver], "its children are dead by now");
}

#[test]
pub fn a_lease_counts_from_before_the_heartbeat_was_sent() {
    let mut driver = Driver::new(timed());
    driver.tick(3_000);
    driver.now = BootTime::from_ms(5_000);
    driver.beat();
    let until = driver.pick(|effect| if let Effect::RenewKeeper { until } = effect { Some(*until) } else { None });
    assert_eq!(until, [BootTime::from_ms(15_000)]);
}

#[test]
pub fn a_fenced_node_starts_nothing() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.take();
    driver.beaten(Ok(BeatAnswer::Fenced));
    assert_eq!(driver.kills(), [SelfKillReason::Fenced]);
    driver.answer_start(Ok(vec![started(&claimed)]));
    assert!(driver.take().is_empty());
}

#[test]
pub fn a_drain_gives_back_what_is_prepared_and_waits_for_what_runs() {
    let mut driver = Driver::new(timed());
    let running = driver.execute();
    let waiting = driver.prepare(20_000);
    driver.take();
    driver.feed(Input::Drain);
    assert_eq!(driver.releases(), [waiting.at]);
    driver.released(Ok(()));
    driver.feed(Input::RowsChanged);
    driver.peeked(Ok(Peek { earliest_claim_at: Some(driver.node.utc(driver.now)), ..Peek::default() }));
    driver.beat();
    assert!(
        !driver
            .take()
            .iter()
            .any(|effect| matches!(effect, Effect::Call { call: Call::Claim(ClaimRequest { .. }), .. }))
    );
    driver.tick(3_000);
    let beats = driver.pick(|effect| {
        if let Effect::Call { call: Call::Heartbeat { draining, .. }, .. } = effect { Some(*draining) } else { None }
    });
    assert_eq!((beats, driver.closes()), (vec![true], 0), "heartbeats go on until the last child is reaped");
    driver.exit(running.at.run);
    assert_eq!(driver.closes(), 0, "not before it is recorded");
    driver.recorded();
    assert_eq!(driver.closes(), 0, "the store has the last word");
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
    driver.tick(4_000);
    driver.feed(Input::Drain);
    driver.feed(Input::DrainNow);
    assert_eq!(driver.closes(), 0, "once");
}

#[test]
pub fn a_run_is_cancelled_though_its_node_drains() {
    let mut driver = Driver::new(timed());
    let run = driver.execute().at.run;
    driver.feed(Input::Drain);
    driver.take();
    driver.tick(1_500);
    assert_eq!(driver.peeks().len(), 1, "it looks for what is asked of it");
    driver.peeked(Ok(Peek { cancels: vec![run], ..Peek::default() }));
    assert_eq!(driver.stops(), [(run, StopReason::Cancelled)]);
}

#[test]
pub fn the_deadline_of_a_drain_or_a_second_signal_cancels_what_runs() {
    let mut late = Driver::new(config());
    let run = late.execute().at.run;
    late.feed(Input::Drain);
    for second in 1..60 {
        late.now = BootTime::from_ms(second * 1_000);
        late.beat();
    }
    assert!(late.stops().is_empty() && late.node.next_wake() <= BootTime::from_ms(60_000));
    late.tick(60_000);
    assert_eq!(late.stops(), [(run, StopReason::ShutDown)]);

    let mut hurried = Driver::new(timed());
    let running = hurried.execute().at.run;
    let starting = hurried.prepare(0);
    assert_eq!(hurried.starts(), [starting.at]);
    hurried.feed(Input::Drain);
    hurried.feed(Input::DrainNow);
    assert_eq!(hurried.stops(), [(running, StopReason::ShutDown)]);
    hurried.answer_start(Ok(vec![started(&starting)]));
    assert_eq!(hurried.spawns(), [starting.at.run]);
    assert_eq!(hurried.stops(), [(starting.at.run, StopReason::ShutDown)], "it had been started");
}

#[test]
pub fn runs_that_died_with_the_keeper_are_recorded_as_lost_before_the_node_ends() {
    let mut driver = Driver::new(timed());
    let running = driver.execute();
    let starting = driver.prepare(0);
    assert_eq!(driver.starts(), [starting.at]);
    driver.feed(Input::KeeperDied);
    let finishes = driver.finishes();
    assert_eq!((finishes[0].0, finishes[0].1.status), (running.at.run, Status::Lost));
    driver.answer_start(Ok(vec![started(&starting)]));
    assert!(driver.spawns().is_empty(), "there is nobody to start it");
    assert_eq!(driver.releases().len(), 1, "so it is given back");
    assert!(driver.kills().is_empty());
    driver.released(Ok(()));
    driver.recorded();
    assert_eq!((driver.kills(), driver.closes()), (vec![SelfKillReason::KeeperDied], 0));
}

#[test]
pub fn a_start_in_doubt_is_not_spawned_without_a_keeper() {
    let mut driver = Driver::new(timed());
    let claimed = driver.prepare(0);
    driver.answer_start(Err(CallFailure::Unknown));
    driver.feed(Input::KeeperDied);
    driver.settled(Ok(vec![found_executing(&claimed, false)]));
    assert_eq!((driver.spawns().len(), driver.releases().len()), (0, 1));
}

#[test]
pub fn a_run_may_be_cancelled_at_every_moment() {
    let mut starting = Driver::new(timed());
    let claimed = starting.prepare(0);
    starting.feed(Input::CancelAsked(claimed.at.run));
    assert!(starting.stops().is_empty());
    starting.answer_start(Ok(vec![started(&claimed)]));
    assert_eq!(starting.spawns(), [claimed.at.run]);
    assert_eq!(starting.stops(), [(claimed.at.run, StopReason::Cancelled)], "the start had won");

    let mut executing = Driver::new(timed());
    let run = executing.execute().at.run;
    executing.feed(Input::CancelAsked(run));
    executing.feed(Input::CancelAsked(run));
    assert_eq!(executing.stops(), [(run, StopReason::Cancelled)], "once");
    executing.exit(run);
    executing.feed(Input::CancelAsked(run));
    assert!(executing.stops().is_empty());
    executing.feed(Input::CancelAsked(carillon_domain::id::RunId::drawn(other(), 1)));
    assert!(executing.stops().is_empty(), "not mine");
}

#[test]
pub fn a_silent_session_is_ended_once_a_heartbeat_and_its_sequence_is_the_one_that_was_seen() {
    let mut driver = Driver::new(timed());
    let mut expired = Vec::new();
    for second in (3..=24).step_by(3) {
        driver.tick(second * 1_000);
        driver.beat_with(vec![peer(me(), second), peer(other(), 7)], UTC0_MS + second as i64 * 1_000);
        let of = |effect: &Effect| {
            if let Effect::Call { call: Call::Expire { session, seq, .. }, .. } = effect {
                Some((*session, *seq))
            } else {
                None
            }
        };
        for one in driver.pick(of) {
            expired.push((second, one));
            driver.swept();
        }
    }
    assert_eq!(expired, [(24, (other(), 7))]);
    assert!(
        !driver.take().iter().any(|effect| matches!(effect, Effect::Call { call: Call::Expire { .. }, .. })),
        "not again and again"
    );
}

#[test]
pub fn an_ended_session_is_swept_at_every_heartbeat_until_it_is_gone() {
    let mut driver = Driver::new(timed());
    let ended = Peer { ended: true, claims: false, ..peer(other(), 7) };
    for second in [3, 6] {
        driver.tick(second * 1_000);
        driver.beat_with(vec![peer(me(), second), ended], UTC0_MS + second as i64 * 1_000);
        let swept = driver.pick(|effect| {
            if let Effect::Call { call: Call::Sweep { session, .. }, .. } = effect { Some(*session) } else { None }
        });
        assert_eq!(swept, [other()]);
        driver.swept();
    }
    driver.exit(carillon_domain::id::RunId::drawn(me(), 1));
    let _never_started = succeeded();
}

/// A storm ends many: nobody waits a heartbeat's time for each.
#[test]
pub fn sessions_that_are_over_are_swept_one_right_after_another() {
    let mut driver = Driver::new(timed());
    let over: Vec<Peer> =
        (2..=4).map(|n| Peer { ended: true, claims: false, ..peer(SessionId::from_random(n), 7) }).collect();
    driver.tick(3_000);
    driver.beat_with([vec![peer(me(), 3)], over.clone()].concat(), UTC0_MS + 3_000);
    let mut swept = Vec::new();
    while let [session] = driver.pick(|effect| {
        if let Effect::Call { call: Call::Sweep { session, .. }, .. } = effect { Some(*session) } else { None }
    })[..]
    {
        swept.push(session);
        driver.swept();
    }
    assert_eq!(swept, over.iter().map(|one| one.session).collect::<Vec<_>>());
}

#[test]
pub fn a_drain_does_not_leave_while_the_store_still_holds_a_row_for_it() {
    let mut driver = Driver::new(timed());
    let waiting = driver.prepare(20_000);
    driver.feed(Input::Drain);
    // Somebody paused the job meanwhile: the hand-back found another version and left the row alone.
    driver.released(Ok(()));
    let moved_on = carillon_domain::node::port::RunRef { version: waiting.at.version + 1, ..waiting.at };
    driver.take();
    driver.held(Ok(vec![moved_on]));
    assert_eq!((driver.closes(), driver.releases()), (0, vec![moved_on]));
    driver.released(Ok(()));
    driver.take();
    driver.held(Err(CallFailure::Unknown));
    assert_eq!((driver.closes(), looks(&mut driver)), (0, 0), "not at once");
    driver.tick(50);
    assert_eq!(looks(&mut driver), 1);
    driver.held(Ok(vec![]));
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
}

fn looks(driver: &mut Driver) -> usize {
    driver
        .pick(|effect| if let Effect::Call { call: Call::ListHeld { .. }, .. } = effect { Some(()) } else { None })
        .len()
}

#[test]
pub fn a_look_that_was_on_its_way_before_the_hand_back_is_not_the_last_word() {
    let mut driver = Driver::new(timed());
    driver.prepare(20_000);
    driver.tick(10_000);
    assert_eq!(looks(&mut driver), 1, "the recovery's own");
    driver.feed(Input::Drain);
    driver.released(Ok(()));
    driver.held(Ok(vec![]));
    assert_eq!((driver.closes(), looks(&mut driver)), (0, 1), "a row may have been claimed since it was answered");
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
}

#[test]
pub fn a_run_says_why_it_was_stopped_if_it_was_that_what_ended_it() {
    for (status, expected) in [(Status::Cancelled, Some(Reason::Cancelled)), (Status::Succeeded, None)] {
        let mut driver = Driver::new(timed());
        let run = driver.execute().at.run;
        driver.feed(Input::CancelAsked(run));
        driver.exit_with(run, Ending { status, ..succeeded() });
        assert_eq!(driver.finishes()[0].1.reason, expected, "{status:?}");
    }
}

#[test]
pub fn a_drain_waits_for_a_claim_that_is_on_its_way_or_without_an_answer() {
    let mut driver = Driver::new(timed());
    let run = driver.claim()[0];
    driver.feed(Input::Drain);
    assert_eq!((looks(&mut driver), driver.closes()), (0, 0), "on its way");
    driver.claimed(Err(CallFailure::Unknown));
    assert_eq!(looks(&mut driver), 1);
    driver.held(Ok(vec![]));
    driver.tick(10_000);
    assert_eq!((looks(&mut driver), driver.closes()), (1, 0), "it may still be applied");
    let late = super::driver::prepared(run, 1, 20_000);
    driver.held(Ok(vec![late.at]));
    assert_eq!(driver.settles(), [late.at]);
}

#[test]
pub fn a_node_that_has_drained_is_not_woken_by_the_deadline_of_its_drain() {
    let mut driver = Driver::new(config());
    driver.feed(Input::Drain);
    driver.beat();
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
    // The session's removal takes until after the deadline.
    for second in 1..=60 {
        driver.tick(second * 1_000);
        driver.beat();
        if driver.is_in_flight(CallKind::ListHeld) {
            driver.held(Ok(vec![]));
        }
    }
    driver.tick(60_000);
    assert!(driver.node.next_wake() > driver.now, "it would be woken again and again: {:?}", driver.node.next_wake());
}
