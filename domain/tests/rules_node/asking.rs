//! How many calls of a kind are on their way to the store at a time, and how long an answer that never came is waited for.

use carillon_domain::id::RunId;
use carillon_domain::node::call::Call;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::call::CallId;
use carillon_domain::node::port::{Claimed, FinishAnswer, StartAnswer};
use carillon_domain::node::{Config, Effect};

use super::driver::{Driver, config, prepared, started};

#[test]
pub fn a_start_is_sent_when_the_one_before_it_was_answered() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let ids = driver.claim();
    let all: Vec<Claimed> = (0..2).map(|n| prepared(ids[n], n as u64, 10_000 + 100 * n as i64)).collect();
    driver.claimed(Ok(all.clone()));
    driver.tick(10_000);
    assert_eq!(driver.starts(), [all[0].at]);
    driver.tick(10_100);
    assert_eq!(driver.starts(), [], "one is on its way");
    driver.answer_start(Ok(vec![started(&all[0])]));
    assert_eq!((driver.spawns(), driver.starts()), (vec![ids[0]], vec![all[1].at]));
}

/// Runs that are due at `due_ms`, all of them claimed, of jobs with the numbers from `from` on.
fn due_together(driver: &mut Driver, ids: &[RunId], from: u64, due_ms: i64) -> Vec<Claimed> {
    let all: Vec<Claimed> = ids.iter().zip(from..).map(|(run, job)| prepared(*run, job, due_ms)).collect();
    driver.claimed(Ok(all.clone()));
    all
}

/// The starts that were sent: in which lane, and how many runs.
fn lanes(driver: &mut Driver) -> Vec<(CallId, usize)> {
    driver.pick(|effect| {
        if let Effect::Call { id: lane, call: Call::Start { runs, .. } } = effect {
            Some((*lane, runs.len()))
        } else {
            None
        }
    })
}

#[test]
pub fn what_fills_a_batch_goes_beside_the_start_that_is_on_its_way() {
    let mut driver = Driver::new(Config { max_batch: 2, max_in_flight: 5, ..config() });
    let ids = driver.claim();
    let first = due_together(&mut driver, &ids, 1, 0);
    let [(one, 2)] = lanes(&mut driver)[..] else { panic!("the first two start") };
    let ids = driver.claims()[0].runs.clone();
    let second = due_together(&mut driver, &ids, 3, 0);
    let [(two, 2)] = lanes(&mut driver)[..] else { panic!("two more go beside them") };
    assert_ne!(one, two);
    let ids = driver.claims()[0].runs.clone();
    due_together(&mut driver, &ids, 5, 0);
    assert_eq!(lanes(&mut driver), [], "a third never");
    driver.answer_start_of(two, Ok(second.iter().map(started).collect()));
    assert_eq!((driver.spawns().len(), lanes(&mut driver)), (2, vec![]), "one more is worth no call of its own");
    driver.answer_start_of(one, Ok(first.iter().map(started).collect()));
    let sizes: Vec<usize> = lanes(&mut driver).into_iter().map(|(_, runs)| runs).collect();
    assert_eq!((driver.spawns().len(), sizes), (2, vec![1]));
}

#[test]
pub fn many_that_are_due_together_start_in_parts() {
    let mut driver = Driver::new(Config { max_batch: 1_000, max_in_flight: 4_000, max_executing: 3_900, ..config() });
    let mut claims = vec![driver.claim()];
    while let Some(ids) = claims.pop() {
        due_together(&mut driver, &ids, ids[0].parts().1, 10_000);
        claims.extend(driver.claims().into_iter().map(|claim| claim.runs));
    }
    driver.tick(10_000);
    let (mut sizes, mut sent) = (Vec::new(), lanes(&mut driver));
    while !sent.is_empty() {
        let (lane, runs) = sent.remove(0);
        sizes.push(runs);
        driver.answer_start_of(lane, Ok(vec![StartAnswer::Gone; runs]));
        sent.extend(lanes(&mut driver));
        if !driver.claims().is_empty() {
            driver.claimed(Ok(vec![]));
        }
    }
    assert_eq!(sizes[..2], [1_000, 750], "each a quarter of what waits");
    assert_eq!(sizes[2], 1_000, "a claim goes next: as much as goes into a call");
    assert_eq!(sizes.iter().sum::<usize>(), 4_000, "{sizes:?}");
}

#[test]
pub fn a_second_call_goes_only_where_the_others_leave_the_database_time() {
    let mut driver = Driver::new(Config { max_batch: 2, max_in_flight: 20, max_executing: 20, ..config() });
    let running: Vec<RunId> = (0..2).map(|_| driver.execute().at.run).collect();
    driver.exit(running[0]);
    assert_eq!(driver.finishes().len(), 1);
    let ids = driver.claim();
    due_together(&mut driver, &ids, 10, 0);
    let [(_, 2)] = lanes(&mut driver)[..] else { panic!("two start") };
    let ids = driver.claims()[0].runs.clone();
    due_together(&mut driver, &ids, 20, 0);
    assert_eq!(driver.claims().len(), 1, "a claim, a start and a finish are on their way");
    assert_eq!(lanes(&mut driver), []);
    driver.answer_finish(Ok(vec![FinishAnswer::AlreadyGone]));
    assert_eq!(lanes(&mut driver).len(), 1);
}

#[test]
pub fn finishes_go_in_two_lanes_as_well_and_one_that_fails_is_repeated_alone() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let runs: Vec<RunId> = (0..4).map(|_| driver.execute().at.run).collect();
    let sent = |driver: &mut Driver| {
        driver.pick(|effect| match effect {
            Effect::Call { id: lane, call: Call::Finish { runs, .. } } => {
                Some((*lane, runs.iter().map(|one| one.at.run).collect::<Vec<_>>()))
            }
            _ => None,
        })
    };
    driver.exit(runs[0]);
    let [(one, _)] = sent(&mut driver)[..] else { panic!("the first goes at once") };
    driver.exit(runs[1]);
    driver.exit(runs[2]);
    let two = sent(&mut driver);
    assert_eq!(two[0].1, [runs[1], runs[2]]);
    assert_ne!(two[0].0, one);
    driver.exit(runs[3]);
    driver.answer_finish_of(two[0].0, Err(CallFailure::Unknown));
    driver.tick(50);
    assert_eq!(sent(&mut driver)[0].1, [runs[1], runs[2]], "the first of those that wait");
}

#[test]
pub fn the_ids_of_a_claim_without_an_answer_are_looked_for_by_three_recoveries() {
    for late in 1..=4 {
        let mut driver = Driver::new(config());
        let run = driver.claim()[0];
        driver.claimed(Err(CallFailure::Unknown));
        for recovery in 1..late {
            driver.held(Ok(vec![]));
            driver.tick(10_000 * recovery);
        }
        driver.take();
        let row = prepared(run, 1, 20_000);
        driver.held(Ok(vec![row.at]));
        let (settled, given_back) = (driver.settles(), driver.releases());
        let expected = if late <= 3 { (vec![row.at], vec![]) } else { (vec![], vec![row.at]) };
        assert_eq!((settled, given_back), expected, "listed by recovery number {late}");
    }
}

#[test]
pub fn what_failed_is_asked_again_later_and_later_and_after_a_success_from_the_beginning() {
    let mut driver = Driver::new(Config { self_kill: false, ..config() });
    for waits in [&[50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000][..], &[50, 100]] {
        let run = driver.execute().at.run;
        driver.exit(run);
        for wait in waits {
            assert_eq!(driver.finishes().len(), 1);
            driver.answer_finish(Err(CallFailure::RolledBack));
            let failed = driver.now.as_ms();
            driver.tick(failed + wait - 1);
            assert_eq!(driver.finishes().len(), 0, "{wait} ms are not over");
            driver.tick(failed + wait);
        }
        driver.recorded();
        // The next finish does not share a batch with this one.
        driver.tick(driver.now.as_ms() + 250);
        driver.take();
    }
}

#[test]
pub fn a_row_that_is_listed_before_its_claim_is_answered_is_left_alone() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    driver.tick(10_000);
    let claimed = prepared(run, 1, 10_000);
    driver.held(Ok(vec![claimed.at]));
    assert_eq!((driver.releases(), driver.settles()), (vec![], vec![]), "the answer will tell");
    driver.claimed(Ok(vec![claimed.clone()]));
    assert_eq!(driver.starts(), [claimed.at]);
}

#[test]
pub fn recovery_lets_starts_go_first_for_a_while() {
    let mut driver = Driver::new(config());
    driver.prepare(10_000);
    let lists = |driver: &mut Driver| {
        driver.pick(|effect| matches!(effect, Effect::Call { call: Call::ListHeld { .. }, .. }).then_some(())).len()
    };
    driver.tick(10_000);
    assert_eq!((driver.starts().len(), lists(&mut driver)), (1, 0));
    assert_eq!(driver.node.next_wake().as_ms(), 10_250);
    driver.tick(10_249);
    assert_eq!(lists(&mut driver), 0);
    driver.tick(10_250);
    assert_eq!(lists(&mut driver), 1);
}
