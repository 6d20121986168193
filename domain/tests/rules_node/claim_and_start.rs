//! Firings that are due already when they are claimed, and start in the same commit.

use carillon_domain::id::RunId;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::{Claimed, FinishAnswer};
use carillon_domain::node::{Config, Input};

use super::driver::{Driver, config, executing, prepared, succeeded, utc};
use super::finishing::onward;

/// As the store answers where it has started what it claimed.
fn started_along(run: RunId) -> Claimed {
    let claimed = prepared(run, run.parts().1, 0);
    let (at, held) = executing(&claimed);
    Claimed { at, held, ..claimed }
}

#[test]
pub fn a_claim_keeps_places_only_where_something_was_due_and_leaves_a_quarter() {
    let mut driver = Driver::new(config());
    driver.tick(5_000);
    assert_eq!(driver.claim_from(utc(5_001)).places, 0, "nothing is due");
    driver.claimed(Ok(vec![]));
    assert_eq!(driver.claim_from(utc(5_000)).places, 7, "of 10");
}

#[test]
pub fn the_claim_after_a_full_one_keeps_places_where_the_last_of_that_was_due() {
    for (last_ms, keeps) in [(5_000, true), (5_001, false)] {
        let mut driver = Driver::new(Config { max_executing: 1_000, ..config() });
        driver.tick(5_000);
        let first = driver.claim_from(utc(5_000));
        assert_eq!(first.places, 50, "no more than one claim takes");
        let all = first.runs.iter().map(|run| prepared(*run, run.parts().1, last_ms)).collect();
        driver.claimed(Ok(all));
        let second = driver.claims().remove(0);
        assert_eq!(second.places > 0, keeps, "the last was due at {last_ms}: {second:?}");
    }
}

#[test]
pub fn what_a_claim_has_started_is_spawned_at_once() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    driver.claimed(Ok(vec![started_along(run)]));
    assert_eq!((driver.spawns(), driver.node.counts()), (vec![run], (0, 1)));
    assert!(driver.starts().is_empty(), "it has started");
}

#[test]
pub fn places_that_are_kept_are_nobody_elses() {
    let mut driver = Driver::new(config());
    for _ in 0..6 {
        driver.prepare(1_000);
    }
    driver.take();
    assert_eq!(driver.claim_from(utc(0)).places, 7);
    driver.tick(1_000);
    assert_eq!(driver.starts().len(), 3, "of 10, 7 are kept");
    driver.claimed(Ok(vec![]));
    driver.answer_start(Err(CallFailure::RolledBack));
    driver.take();
    driver.tick(1_100);
    assert_eq!(driver.starts().len(), 6, "until it is answered");
}

#[test]
pub fn a_finish_may_start_what_is_due_unless_the_next_start_is_short_of_places() {
    let mut driver = Driver::new(Config { max_executing: 2, ..config() });
    let run = driver.execute().at.run;
    driver.exit(run);
    let next = onward(&mut driver)[0].unwrap();
    assert!(next.has_place);
    let along = started_along(next.run);
    driver.answer_finish(Ok(vec![FinishAnswer::RecordedAndClaimed(Box::new(along.clone()))]));
    assert_eq!((driver.spawns(), driver.node.counts()), (vec![next.run], (0, 1)));

    let other = driver.execute().at.run;
    driver.prepare(0);
    driver.take();
    driver.tick(1_000);
    driver.exit(other);
    driver.tick(2_000);
    assert!(!onward(&mut driver)[0].unwrap().has_place, "another one waits for it");
}

#[test]
pub fn what_was_started_along_is_given_back_by_a_node_that_drains_meanwhile() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.exit(run);
    let next = onward(&mut driver)[0].unwrap();
    driver.feed(Input::Drain);
    let along = started_along(next.run);
    driver.answer_finish(Ok(vec![FinishAnswer::RecordedAndClaimed(Box::new(along.clone()))]));
    assert_eq!((driver.spawns(), driver.releases()), (vec![], vec![along.at]));
}

#[test]
pub fn a_claim_of_unknown_outcome_spawns_nothing_before_it_is_settled() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    driver.claimed(Err(CallFailure::Unknown));
    let found = started_along(run);
    driver.held(Ok(vec![found.at]));
    assert_eq!((driver.settles(), driver.spawns()), (vec![found.at], vec![]));
    driver.exit_with(run, succeeded());
    assert!(driver.finishes().is_empty(), "it never ran");
}
