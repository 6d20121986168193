//! One call of a kind to the store at a time, and how long an answer that never came is waited for.

use carillon_domain::node::port::Claimed;
use carillon_domain::node::{Config, Failure, Input};

use super::driver::{Driver, config, prepared, started};

#[test]
fn a_start_is_sent_when_the_one_before_it_was_answered() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let ids = driver.claim();
    let all: Vec<Claimed> = (0..2).map(|n| prepared(ids[n], n as u64, 10_000 + 100 * n as i64)).collect();
    driver.feed(Input::Claimed(Ok(all.clone())));
    driver.tick(10_000);
    assert_eq!(driver.starts(), [all[0].at]);
    driver.tick(10_100);
    assert_eq!(driver.starts(), [], "one is on its way");
    driver.feed(Input::Started(Ok(vec![started(&all[0])])));
    assert_eq!((driver.spawns(), driver.starts()), (vec![ids[0]], vec![all[1].at]));
}

#[test]
fn the_ids_of_a_claim_without_an_answer_are_looked_for_by_three_recoveries() {
    for late in 1..=4 {
        let mut driver = Driver::new(config());
        let run = driver.claim()[0];
        driver.feed(Input::Claimed(Err(Failure::Unknown)));
        for _ in 1..late {
            driver.feed(Input::Held(Ok(vec![])));
        }
        driver.take();
        let row = prepared(run, 1, 20_000);
        driver.feed(Input::Held(Ok(vec![row.at])));
        let (settled, given_back) = (driver.settles(), driver.resets());
        let expected = if late <= 3 { (vec![row.at], vec![]) } else { (vec![], vec![row.at]) };
        assert_eq!((settled, given_back), expected, "listed by recovery number {late}");
    }
}

#[test]
fn what_failed_is_asked_again_later_and_later_and_after_a_success_from_the_beginning() {
    let mut driver = Driver::new(Config { self_kill: false, ..config() });
    for waits in [&[50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000][..], &[50, 100]] {
        let run = driver.execute().at.run;
        driver.exit(run);
        for wait in waits {
            assert_eq!(driver.finishes().len(), 1);
            driver.feed(Input::Finished(Err(Failure::RolledBack)));
            let failed = driver.now.as_ms();
            driver.tick(failed + wait - 1);
            assert_eq!(driver.finishes().len(), 0, "{wait} ms are not over");
            driver.tick(failed + wait);
        }
        driver.recorded();
        // The next finish does not share a batch with this one.
        driver.tick(driver.now.as_ms() + 100);
        driver.take();
    }
}

#[test]
fn a_row_that_is_listed_before_its_claim_is_answered_is_left_alone() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    driver.tick(10_000);
    let claimed = prepared(run, 1, 10_000);
    driver.feed(Input::Held(Ok(vec![claimed.at])));
    assert_eq!((driver.resets(), driver.settles()), (vec![], vec![]), "the answer will tell");
    driver.feed(Input::Claimed(Ok(vec![claimed.clone()])));
    assert_eq!(driver.starts(), [claimed.at]);
}
