//! A database that went back in time, as a node sees it: nothing is claimed or started until somebody has accepted it.

use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::Call;
use carillon_domain::node::call::ClaimRequest;
use carillon_domain::node::call::{BeatAnswer, Peer};
use carillon_domain::node::port::{Claimed, SettleAnswer, StartAnswer, WriteBackAnswer};
use carillon_domain::node::{Effect, Input, SelfKillReason};
use carillon_domain::time::BootTime;

use super::driver::{Driver, UTC0_MS, config, executing, found_executing, me, other, peer, started, timed, utc};

pub fn window() -> LossWindow {
    LossWindow { from_at: utc(-5_000), until_at: utc(0), noticed_at: utc(0) }
}

/// The answer to a heartbeat, with or without a window.
pub fn told(driver: &mut Driver, window: Option<LossWindow>) {
    told_of(driver, vec![peer(me(), 1)], window);
}

/// The row of a run is as it was.
pub fn stays(running: &Claimed) -> WriteBackAnswer {
    WriteBackAnswer::Executing { at: executing(running).0, replace_at: None }
}

fn told_of(driver: &mut Driver, peers: Vec<Peer>, window: Option<LossWindow>) {
    let now = driver.now;
    let utc = carillon_domain::time::Timestamp::from_ms(UTC0_MS + now.as_ms() as i64);
    driver.beaten(Ok(BeatAnswer::Alive { utc, peers, window }));
}

fn claims(driver: &mut Driver) -> usize {
    driver
        .pick(
            |effect| {
                if let Effect::Call { call: Call::Claim(ClaimRequest { .. }), .. } = effect { Some(()) } else { None }
            },
        )
        .len()
}

fn look(driver: &mut Driver) {
    driver.feed(Input::RowsChanged);
    let earliest_claim_at = Some(driver.node.utc(driver.now));
    let peek = carillon_domain::node::port::Peek { earliest_claim_at, ..Default::default() };
    driver.peeked(Ok(peek));
}

#[test]
pub fn only_the_sequence_that_was_acknowledged_is_carried() {
    let mut driver = Driver::new(config());
    assert_eq!(driver.node.acked(), 1);
    driver.tick(3_000);
    driver.beaten(Err(carillon_domain::node::call::CallFailure::Unknown));
    assert_eq!(driver.node.acked(), 1, "nobody knows of the second");
    driver.tick(6_000);
    told(&mut driver, None);
    assert_eq!(driver.node.acked(), 3);
}

#[test]
pub fn while_it_lasts_nothing_is_claimed_and_what_is_prepared_is_given_back() {
    let mut driver = Driver::new(config());
    let prepared = driver.prepare(20_000);
    told(&mut driver, Some(window()));
    assert_eq!(driver.node.suspended_by(), Some(window()));
    assert_eq!(driver.releases(), [prepared.at]);
    driver.released(Ok(()));
    look(&mut driver);
    driver.tick(3_000);
    told(&mut driver, Some(window()));
    look(&mut driver);
    assert_eq!(claims(&mut driver), 0);
    driver.tick(6_000);
    told(&mut driver, None);
    assert_eq!(claims(&mut driver), 1, "it goes on by itself");
    driver.tick(20_000);
    assert!(driver.starts().is_empty(), "what was given back is not mine any more");
}

#[test]
pub fn what_was_claimed_on_the_way_is_given_back() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    told(&mut driver, Some(window()));
    let late = super::driver::prepared(run, 1, 0);
    driver.claimed(Ok(vec![late.clone()]));
    assert_eq!((driver.starts(), driver.releases()), (vec![], vec![late.at]));
}

#[test]
pub fn runs_go_on_and_are_recorded() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    told(&mut driver, Some(window()));
    assert_eq!((driver.stops(), driver.releases(), driver.kills()), (vec![], vec![], vec![]));
    driver.exit(running.at.run);
    driver.wrote_back(Ok(Some(vec![stays(&running)])));
    assert_eq!(driver.finishes().len(), 1);
}

#[test]
pub fn a_start_that_the_store_withholds_is_given_back_and_the_reason_asked_for() {
    let mut driver = Driver::new(timed());
    let claimed = driver.prepare(0);
    driver.take();
    driver.now = BootTime::from_ms(500);
    driver.answer_start(Ok(vec![StartAnswer::Suspended]));
    assert_eq!((driver.spawns(), driver.releases()), (vec![], vec![claimed.at]));
    assert!(
        driver.take().iter().any(|effect| matches!(effect, Effect::Call { call: Call::Heartbeat { .. }, .. })),
        "at once"
    );
}

#[test]
pub fn a_start_in_doubt_that_is_found_is_given_back() {
    for suspended_by in [None, Some(window())] {
        let mut driver = Driver::new(config());
        let claimed = driver.prepare(0);
        driver.take();
        driver.answer_start(Err(carillon_domain::node::call::CallFailure::Unknown));
        told(&mut driver, suspended_by);
        let seen: SettleAnswer = found_executing(&claimed, false);
        driver.settled(Ok(vec![seen]));
        assert_eq!(driver.spawns().len(), usize::from(suspended_by.is_none()), "{suspended_by:?}");
        assert_eq!(driver.releases().len(), usize::from(suspended_by.is_some()), "{suspended_by:?}");
    }
}

#[test]
pub fn an_acknowledged_start_is_spawned_whatever_is_told_meanwhile() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.take();
    told(&mut driver, Some(window()));
    driver.answer_start(Ok(vec![started(&claimed)]));
    assert_eq!(driver.spawns(), [claimed.at.run], "its row says so: nobody else starts it");
}

#[test]
pub fn a_node_that_the_database_has_forgotten_ends_itself() {
    let mut driver = Driver::new(config());
    driver.beaten(Ok(BeatAnswer::WentBack));
    assert_eq!(driver.kills(), [SelfKillReason::WentBack]);
}

#[test]
pub fn the_moment_that_it_is_over_what_came_up_meanwhile_is_looked_for() {
    let mut driver = Driver::new(config());
    told(&mut driver, Some(window()));
    assert_eq!(driver.peeks().len(), 0, "the next look has its time");
    told(&mut driver, None);
    assert_eq!(driver.peeks().len(), 1);
}

#[test]
pub fn a_start_that_failed_on_the_way_is_not_asked_for_again_but_given_back() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.take();
    told(&mut driver, Some(window()));
    driver.answer_start(Err(carillon_domain::node::call::CallFailure::RolledBack));
    driver.tick(3_000);
    assert_eq!((driver.starts(), driver.releases()), (vec![], vec![]), "nobody knows yet whether it is over");
    told(&mut driver, Some(window()));
    assert_eq!((driver.starts(), driver.releases()), (vec![], vec![claimed.at]));
}

#[test]
pub fn while_it_lasts_and_for_a_while_after_it_nobody_is_ended_for_its_silence() {
    let mut driver = Driver::new(config());
    let mut ended_at = None;
    for ms in (3_000..60_000).step_by(3_000) {
        driver.tick(ms);
        let window = (12_000..=18_000).contains(&ms).then(window);
        told_of(&mut driver, vec![peer(me(), 1), peer(other(), 7)], window);
        let ends = driver.pick(|effect| matches!(effect, Effect::Call { call: Call::Expire { .. }, .. }).then_some(ms));
        ended_at = ended_at.or(ends.first().copied());
    }
    assert_eq!(
        ended_at,
        Some(39_000),
        "20 s after the last answer that told of it, and not 20 s after the first of all"
    );
}
