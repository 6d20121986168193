//! One call of a kind at a time, and answers that do not fit their call.

use std::time::Duration;

use carillon_domain::node::call::{Answer, BeatAnswer, Call, CallFailure, CallKind, Peer};
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, StartAnswer};
use carillon_domain::node::{Config, Effect, Input, Node};
use carillon_domain::run::Reason;
use carillon_domain::time::BootTime;

use super::driver::{Driver, UTC0_MS, config, me, other, peer, prepared, started, timed, utc};
use super::suspension::{told, window};

fn in_flight(driver: &Driver, kind: CallKind) -> usize {
    driver.in_flight.iter().filter(|(_, of)| *of == kind).count()
}

/// Another session that was ended.
fn gone() -> Peer {
    Peer { ended: true, claims: false, ..peer(other(), 1) }
}

#[test]
pub fn a_node_looks_anew_once_the_look_before_is_answered() {
    let mut driver = Driver::new(config());
    for ms in [1_000, 2_000, 5_000] {
        driver.tick(ms);
        assert_eq!(in_flight(&driver, CallKind::Peek), 1, "at {ms} ms");
    }
}

#[test]
pub fn one_settling_write_is_in_flight() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.answer_start(Err(CallFailure::Unknown));
    assert_eq!(driver.settles(), [claimed.at]);
    for ms in [100, 1_000, 5_000] {
        driver.tick(ms);
        assert_eq!(in_flight(&driver, CallKind::Settle), 1, "at {ms} ms");
    }
}

#[test]
pub fn one_session_is_swept_at_a_time() {
    let mut driver = Driver::new(config());
    for ms in [0, 1_000, 2_000] {
        driver.tick(ms);
        driver.beat_with(vec![peer(me(), 1), gone()], UTC0_MS + ms as i64);
        assert_eq!(in_flight(&driver, CallKind::Sweep), 1, "at {ms} ms");
    }
}

#[test]
pub fn a_full_sweep_goes_on_and_a_short_one_is_over() {
    let mut driver = Driver::new(config());
    driver.beat_with(vec![peer(me(), 1), gone()], UTC0_MS);
    let limit = driver.pick_calls(|call| if let Call::Sweep { limit, .. } = call { Some(*limit) } else { None })[0];
    for (rows, more) in [(limit, true), (limit + 1, true), (limit - 1, false)] {
        driver.answer(CallKind::Sweep, Ok(Answer::Swept(rows)));
        assert_eq!(driver.is_in_flight(CallKind::Sweep), more, "{rows} rows");
    }
}

#[test]
pub fn one_write_back_is_in_flight() {
    let mut driver = Driver::new(config());
    driver.execute();
    for ms in [100, 1_000, 5_000] {
        driver.tick(ms);
        told(&mut driver, Some(window()));
        assert_eq!(in_flight(&driver, CallKind::WriteBack), 1, "at {ms} ms");
    }
}

/// Such an answer says nothing of any run.
#[test]
pub fn an_answer_of_another_length_is_none() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.answer_start(Ok(vec![]));
    assert_eq!(driver.settles(), [claimed.at], "a start in doubt is settled");
    driver.settled(Ok(vec![]));
    assert!(driver.settles().is_empty(), "the store is in doubt, so not at once");
    driver.tick(5_000);
    assert_eq!(driver.settles(), [claimed.at], "and so it is again");

    let mut driver = Driver::new(config());
    let running = driver.execute();
    driver.exit(running.at.run);
    assert_eq!(driver.finishes().len(), 1);
    driver.answer_finish(Ok(vec![]));
    driver.tick(5_000);
    assert_eq!(driver.finishes().len(), 1, "a finish in doubt is repeated");

    let mut driver = Driver::new(config());
    driver.execute();
    told(&mut driver, Some(window()));
    assert_eq!(driver.write_backs().len(), 1);
    driver.wrote_back(Ok(Some(vec![])));
    driver.tick(5_000);
    assert_eq!(driver.write_backs().len(), 1, "a write-back in doubt is repeated");
}

#[test]
pub fn ids_that_a_claim_has_not_used_are_forgotten() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(60_000);
    assert_eq!(driver.node.known_runs().collect::<Vec<_>>(), [claimed.at.run]);
}

#[test]
pub fn runs_that_died_with_the_keeper_say_so() {
    let mut driver = Driver::new(timed());
    driver.execute();
    driver.feed(Input::KeeperDied);
    let reason = Some(Reason::Said("the keeper died, and with it every run of the node".into()));
    assert_eq!(driver.finishes()[0].1.reason, reason);
}

#[test]
pub fn calls_have_the_names_that_logs_show() {
    use CallKind::*;
    let all = [Heartbeat, Peek, Claim, Start, Finish, Settle, Release, WriteBack, ListHeld, Expire, Sweep, Close];
    let names = "heartbeat peek claim start finish settle release write_back list_held expire sweep close";
    assert_eq!(all.map(CallKind::as_str).join(" "), names);
    let mut driver = Driver::new(config());
    driver.tick(1_000);
    let (id, _) = driver.in_flight[0];
    assert!(id.to_string().parse::<u64>().is_ok_and(|number| number > 0), "{id}");
}

#[test]
pub fn a_node_begins_at_once() {
    let now = BootTime::from_ms(7);
    assert_eq!(Node::new(config(), me(), utc(0), now).next_wake(), now);
}

#[test]
pub fn a_node_whose_lease_is_a_file_outlives_it() {
    for (self_kill, kills) in [(true, 1), (false, 0)] {
        let mut driver = Driver::new(Config { self_kill, ..timed() });
        driver.tick(3_600_000);
        assert_eq!(driver.kills().len(), kills, "{self_kill}");
    }
}

/// A node without runs that has drained: its last look found nothing, and it leaves. A sweep is on its way.
fn leaving() -> Driver {
    let mut driver = Driver::new(config());
    driver.tick(1_000);
    driver.beat_with(vec![peer(me(), 1), gone()], UTC0_MS + 1_000);
    assert!(driver.is_in_flight(CallKind::Sweep));
    driver.feed(Input::Drain);
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
    driver
}

#[test]
pub fn a_node_that_leaves_heeds_no_answer() {
    let mut driver = leaving();
    driver.beaten(Ok(BeatAnswer::Fenced));
    assert!(driver.kills().is_empty(), "its own session is being closed");
    driver.take();
    driver.peeked(Ok(Peek { earliest_claim_at: Some(utc(0)), ..Peek::default() }));
    driver.answer(CallKind::Sweep, Ok(Answer::Swept(100_000)));
    assert!(driver.take().iter().all(|effect| !matches!(effect, Effect::Call { .. })), "it asks for nothing");
    driver.answer(CallKind::Close, Err(CallFailure::Unknown));
    assert_eq!(driver.pick(|effect| matches!(effect, Effect::Drained).then_some(())).len(), 1);
}

#[test]
pub fn a_node_without_runs_that_drains_says_that_it_has_none_before_it_leaves() {
    let mut driver = Driver::new(config());
    told(&mut driver, Some(window()));
    driver.feed(Input::Drain);
    assert!(driver.is_in_flight(CallKind::WriteBack) && !driver.is_in_flight(CallKind::ListHeld));
    driver.wrote_back(Ok(Some(vec![])));
    driver.held(Ok(vec![]));
    assert_eq!(driver.closes(), 1);
}

fn to_be_replaced(claimed: &Claimed, at_ms: i64) -> StartAnswer {
    match started(claimed) {
        StartAnswer::Started { at, held, .. } => StartAnswer::Started { at, held, replace_at: Some(utc(at_ms)) },
        _ => unreachable!(),
    }
}

#[test]
pub fn a_run_that_ends_while_it_waits_for_a_look_is_not_looked_at() {
    let mut driver = Driver::new(config());
    let ids = driver.claim();
    let [replaced, doubtful, other] = [(0, 0), (1, 1_000), (2, 0)].map(|(n, due)| prepared(ids[n], n as u64, due));
    driver.claimed(Ok(vec![replaced.clone(), doubtful.clone(), other.clone()]));
    driver.answer_start(Ok(vec![to_be_replaced(&replaced, 5_000), started(&other)]));
    driver.tick(1_000);
    driver.answer_start(Err(CallFailure::Unknown));
    assert_eq!(driver.settles(), [doubtful.at]);
    driver.exit(other.at.run);
    assert_eq!(driver.finishes().len(), 1);
    driver.tick(5_000);
    assert!(driver.settles().is_empty(), "one look at a time");
    driver.exit(replaced.at.run);
    assert!(driver.finishes().is_empty(), "it waits for the record of the other one");
    driver.settled(Err(CallFailure::Unknown));
    driver.tick(10_000);
    assert_eq!(driver.settles(), [doubtful.at], "this one alone");
}

#[test]
pub fn a_run_that_is_recorded_is_not_woken_up_for() {
    let timing = carillon_domain::lease::Timing { heartbeat: Duration::from_secs(600), ..config().timing };
    let seldom = Duration::from_secs(600);
    let mut driver = Driver::new(Config { timing, peek_every: seldom, peek_every_at_rest: seldom, ..config() });
    let ids = driver.claim();
    let claimed = prepared(ids[0], 1, 0);
    driver.claimed(Ok(vec![claimed.clone()]));
    driver.answer_start(Ok(vec![to_be_replaced(&claimed, 5_000)]));
    driver.exit(claimed.at.run);
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
    assert!(driver.node.next_wake() > BootTime::from_ms(5_000), "{:?}", driver.node.next_wake());
}
