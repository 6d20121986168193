//! A node of an embedded database looks less often while nothing comes up and nothing runs.

use std::time::Duration;

use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::{FinishAnswer, Peek};
use carillon_domain::node::{Config, Input};

use super::driver::{Driver, config, utc};

/// At rest since second 0: the first look found nothing.
fn at_rest() -> Driver {
    Driver::new(Config { peek_every_at_rest: Duration::from_secs(3), ..config() })
}

/// The node looks at second `next` and not a second before.
fn looks_next_at(driver: &mut Driver, next: u64) {
    driver.take();
    driver.tick((next - 1) * 1_000);
    assert!(driver.peeks().is_empty(), "at second {}", next - 1);
    driver.tick(next * 1_000);
    assert_eq!(driver.peeks().len(), 1, "at second {next}");
}

#[test]
pub fn a_node_at_rest_looks_less_often() {
    let mut driver = at_rest();
    looks_next_at(&mut driver, 3);
    driver.peeked(Ok(Peek::default()));
    looks_next_at(&mut driver, 6);
}

#[test]
pub fn what_comes_up_within_the_horizon_ends_the_rest() {
    let mut driver = at_rest();
    looks_next_at(&mut driver, 3);
    driver.peeked(Ok(Peek { earliest_claim_at: Some(utc(20_000)), ..Peek::default() }));
    driver.tick(4_000);
    assert_eq!(driver.peeks().len(), 1);
}

#[test]
pub fn a_look_that_failed_is_no_rest() {
    let mut driver = at_rest();
    looks_next_at(&mut driver, 3);
    driver.peeked(Err(CallFailure::Unknown));
    driver.tick(4_000);
    assert_eq!(driver.peeks().len(), 1);
}

/// The row of an overlapping job is free again as soon as its run has started, and comes up once more.
#[test]
pub fn a_node_that_holds_a_run_does_not_rest() {
    let mut driver = at_rest();
    let claimed = driver.execute();
    assert!(driver.peeks().is_empty());
    for second in 1..=3 {
        driver.take();
        driver.tick(second * 1_000);
        assert_eq!(driver.peeks().len(), 1, "at second {second}");
        driver.peeked(Ok(Peek::default()));
    }
    driver.exit(claimed.at.run);
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
    driver.tick(4_000);
    driver.peeked(Ok(Peek::default()));
    looks_next_at(&mut driver, 7);
}

#[test]
pub fn a_change_and_a_new_executor_are_looked_at_at_once() {
    for input in [Input::RowsChanged, Input::Offers(vec!["sql".into()])] {
        let mut driver = at_rest();
        driver.tick(1_000);
        assert!(driver.peeks().is_empty());
        driver.feed(input);
        assert_eq!(driver.peeks().len(), 1);
    }
}

/// The peek may have read the row while the run still held it.
#[test]
pub fn a_run_that_ends_during_a_look_puts_off_the_rest() {
    let mut driver = at_rest();
    let claimed = driver.execute();
    driver.tick(1_000);
    driver.exit(claimed.at.run);
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
    driver.peeked(Ok(Peek::default()));
    looks_next_at(&mut driver, 2);
    driver.peeked(Ok(Peek::default()));
    looks_next_at(&mut driver, 5);
}
