//! What the end of a run leads to: its record, and a claim of what comes up next.

use carillon_domain::node::Input;
use carillon_domain::node::port::FinishAnswer;

use super::driver::{Driver, config, utc};

#[test]
fn a_run_ends_when_the_databases_clock_says_so() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.tick(2_500);
    driver.exit(run);
    assert_eq!(driver.finishes()[0].1.ended_at, utc(2_500), "whatever the executor's clock shows");
}

#[test]
fn what_comes_up_within_the_horizon_after_a_run_is_claimed_at_once() {
    for (claim_at, claims) in [(Some(2_000), 1), (Some(30_000), 1), (Some(30_001), 0), (None, 0)] {
        let mut driver = Driver::new(config());
        let run = driver.execute().at.run;
        driver.exit(run);
        driver.take();
        driver.feed(Input::Finished(Ok(vec![FinishAnswer::Recorded { claim_at: claim_at.map(utc) }])));
        assert_eq!(driver.claims().len(), claims, "it comes up at {claim_at:?}");
    }
}
