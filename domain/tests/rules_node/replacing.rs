//! `overlap = replace`: the node knows when, the store knows whether.

use carillon_domain::node::call::Call;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::{Claimed, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::node::{Effect, StopReason};
use carillon_domain::time::{BootTime, Timestamp};

use super::driver::{Driver, config, found_executing, prepared, started, utc};

/// A run that a newer firing replaces at 2 s, as far as its start could tell.
fn to_be_replaced() -> (Driver, Claimed) {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    let StartAnswer::Started { at, held, .. } = started(&claimed) else { unreachable!() };
    driver.answer_start(Ok(vec![StartAnswer::Started { at, held, replace_at: Some(utc(2_000)) }]));
    driver.take();
    (driver, claimed)
}

fn seen(claimed: &Claimed, version: u64, replace_at: Option<Timestamp>) -> SettleAnswer {
    let SettleAnswer::Executing { at, held, withdrawn, .. } = found_executing(claimed, false) else { unreachable!() };
    SettleAnswer::Executing { at: RunRef { version, ..at }, held, replace_at, withdrawn }
}

#[test]
pub fn a_newer_firing_takes_the_place_of_a_running_one_in_time() {
    let (mut driver, claimed) = to_be_replaced();
    driver.tick(1_999);
    assert!(driver.settles().is_empty());
    assert!(driver.node.next_wake() <= BootTime::from_ms(2_000));
    driver.tick(2_000);
    assert_eq!((driver.settles().len(), driver.stops()), (1, vec![]), "the store is asked first");
    driver.settled(Ok(vec![seen(&claimed, 12, Some(utc(2_000)))]));
    assert_eq!(driver.stops(), [(claimed.at.run, StopReason::Replaced)]);
}

#[test]
pub fn a_job_that_was_paused_deleted_or_changed_meanwhile_runs_on() {
    let (mut driver, claimed) = to_be_replaced();
    driver.tick(2_000);
    driver.take();
    driver.settled(Ok(vec![seen(&claimed, 12, None)]));
    driver.tick(9_000);
    assert!(driver.stops().is_empty() && driver.settles().is_empty());

    let (mut moved, claimed) = to_be_replaced();
    moved.tick(2_000);
    moved.take();
    moved.settled(Ok(vec![seen(&claimed, 12, Some(utc(5_000)))]));
    moved.tick(4_999);
    assert!(moved.stops().is_empty() && moved.settles().is_empty());
    moved.tick(5_000);
    assert_eq!(moved.settles().iter().map(|at| at.version).collect::<Vec<_>>(), [12], "asked again at the new time");
}

#[test]
pub fn without_an_answer_the_store_is_asked_again() {
    let (mut driver, claimed) = to_be_replaced();
    driver.tick(2_000);
    driver.take();
    driver.settled(Err(CallFailure::Unknown));
    assert!(driver.stops().is_empty());
    driver.tick(2_050);
    assert_eq!(driver.settles().len(), 1);
    driver.exit(claimed.at.run);
    driver.settled(Ok(vec![seen(&claimed, 12, Some(utc(2_000)))]));
    assert!(driver.stops().is_empty(), "it has ended by itself meanwhile");
    assert!(driver.settles().is_empty(), "and is looked at no more");
}

#[test]
pub fn a_row_that_somebody_wrote_to_is_looked_at_because_replace_may_be_new() {
    let mut driver = Driver::new(config());
    let claimed = driver.execute();
    let now = RunRef { version: claimed.at.version + 1, ..claimed.at };
    driver.tick(10_000);
    driver.held(Ok(vec![now]));
    assert!(driver.settles().is_empty(), "it is as the start left it");
    driver.beat();
    driver.tick(20_000);
    driver.take();
    driver.held(Ok(vec![RunRef { version: now.version + 3, ..now }]));
    assert_eq!(driver.settles(), [now]);
    driver.settled(Ok(vec![seen(&claimed, now.version + 3, Some(utc(19_000)))]));
    assert_eq!(driver.stops(), [(claimed.at.run, StopReason::Replaced)]);
}

#[test]
pub fn a_list_from_before_the_start_tells_nothing_of_the_row() {
    let mut driver = Driver::new(config());
    driver.tick(10_000);
    assert!(driver.take().iter().any(|effect| matches!(effect, Effect::Call { call: Call::ListHeld { .. }, .. })));
    let claimed = driver.execute();
    driver.held(Ok(vec![claimed.at]));
    assert!(driver.settles().is_empty(), "nobody but the start has written to it");
}

/// Two runs that newer firings replace, each at its time.
fn two_to_be_replaced(at_ms: [i64; 2]) -> (Driver, Vec<Claimed>) {
    let mut driver = Driver::new(config());
    let ids = driver.claim();
    let all: Vec<Claimed> = (0..2).map(|n| prepared(ids[n], n as u64, 0)).collect();
    driver.claimed(Ok(all.clone()));
    let replaced = |(claimed, at_ms): (&Claimed, i64)| match started(claimed) {
        StartAnswer::Started { at, held, .. } => StartAnswer::Started { at, held, replace_at: Some(utc(at_ms)) },
        _ => unreachable!(),
    };
    driver.answer_start(Ok(all.iter().zip(at_ms).map(replaced).collect()));
    (driver, all)
}

#[test]
pub fn the_end_of_one_run_holds_up_the_replacement_of_no_other() {
    let (mut driver, all) = two_to_be_replaced([2_000, 2_000]);
    driver.exit(all[0].at.run);
    driver.recorded();
    driver.tick(2_000);
    assert_eq!(driver.settles().iter().map(|at| at.run).collect::<Vec<_>>(), [all[1].at.run]);
    assert!(driver.node.next_wake() > BootTime::from_ms(2_000), "what is over is waited for no more");
}

#[test]
pub fn what_is_seen_of_one_run_holds_up_the_replacement_of_no_other() {
    let (mut driver, all) = two_to_be_replaced([2_000, 5_000]);
    driver.tick(2_000);
    driver.take();
    driver.settled(Ok(vec![seen(&all[0], 12, None)]));
    driver.tick(5_000);
    assert_eq!(driver.settles().iter().map(|at| at.run).collect::<Vec<_>>(), [all[1].at.run]);
}

#[test]
pub fn a_run_whose_row_is_gone_goes_on_until_the_heartbeat_tells() {
    let (mut driver, claimed) = to_be_replaced();
    driver.tick(2_000);
    driver.take();
    driver.settled(Ok(vec![SettleAnswer::Gone]));
    driver.tick(2_100);
    assert_eq!((driver.settles().len(), driver.stops().len(), driver.starts().len()), (0, 0, 0));
    assert_eq!(driver.node.executing_runs().map(|at| at.run).collect::<Vec<_>>(), [claimed.at.run]);
    driver.exit(claimed.at.run);
    assert_eq!(driver.finishes().len(), 1, "its end is recorded as any other");
}
