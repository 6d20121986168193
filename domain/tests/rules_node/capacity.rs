//! How much a node claims: by what it holds, by what it can start, and by whether it is alone.

use carillon_domain::id::RunId;
use carillon_domain::node::Config;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RunRef};

use super::driver::{Driver, config, me, prepared, started, succeeded, utc};

/// A node beside another one; `configure` changes what it may hold.
fn beside(configure: impl FnOnce(&mut Config)) -> Driver {
    let mut config = Config { partitions: 16, ..config() };
    configure(&mut config);
    let mut driver = Driver::new(config);
    driver.beat_with_other(0);
    driver.peeked(Ok(Peek::default()));
    driver.take();
    driver
}

fn due(run: RunId) -> Claimed {
    prepared(run, run.parts().1, 0)
}

/// Every run of the claim is due at once, and there is more.
fn claimed(driver: &mut Driver, runs: &[RunId]) -> usize {
    driver.claimed(Ok(runs.iter().map(|run| due(*run)).collect()));
    runs.len()
}

/// All starts that are on their way succeed.
fn start_all(driver: &mut Driver) -> Vec<RunId> {
    let mut all = Vec::new();
    loop {
        let runs: Vec<RunId> = driver.starts().iter().map(|at: &RunRef| at.run).collect();
        if runs.is_empty() {
            return all;
        }
        driver.answer_start(Ok(runs.iter().map(|run| started(&due(*run))).collect()));
        all.extend(runs);
    }
}

/// One run ends and is recorded, a while after any other.
fn finish(driver: &mut Driver, run: RunId) {
    driver.tick(driver.now.as_ms() + 100);
    driver.exit_with(run, succeeded());
    driver.tick(driver.now.as_ms() + 250);
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
}

#[test]
pub fn a_node_that_is_alone_claims_full_batches_however_busy_it_is() {
    let mut driver = Driver::new(Config { max_in_flight: 10_000, max_executing: 1_000, max_batch: 500, ..config() });
    let mut claims = vec![driver.claim()];
    let (mut rounds, mut held) = (0, 0);
    while let Some(runs) = claims.pop() {
        assert_eq!(runs.len(), 500);
        held += claimed(&mut driver, &runs);
        claims.extend(driver.claims().into_iter().map(|claim| claim.runs));
        rounds += 1;
    }
    assert_eq!((rounds, held), (20, 10_000));
}

#[test]
pub fn among_others_a_node_claims_in_proportion_to_what_is_free() {
    let mut driver = beside(|config| config.max_executing = 100);
    let mut runs = driver.claim();
    let mut sizes = Vec::new();
    loop {
        sizes.push(runs.len());
        // Later than now: it takes no place until then.
        let later = runs.iter().map(|run| prepared(*run, run.parts().1, 20_000)).collect();
        driver.claimed(Ok(later));
        match driver.claims().pop() {
            Some(more) => runs = more.runs,
            None => break,
        }
    }
    assert_eq!(sizes[..4], [50, 25, 13, 6]);
    assert_eq!((sizes.iter().sum::<usize>(), sizes.last()), (100, Some(&1)), "{sizes:?}");
}

#[test]
pub fn among_others_a_node_leaves_to_them_what_it_cannot_start_soon() {
    let mut driver = beside(|config| (config.max_executing, config.max_batch) = (40, 30));
    let runs = driver.claim();
    assert_eq!(claimed(&mut driver, &runs), 30);
    let mut executing = start_all(&mut driver);
    let [second] = &driver.claims()[..] else { panic!("there is room for more") };
    assert_eq!(second.runs.len(), 20, "forty may run and ten may wait");
    claimed(&mut driver, &second.runs);
    executing.extend(start_all(&mut driver));
    assert_eq!((executing.len(), driver.claims().len()), (40, 0));
    for (n, run) in executing.iter().enumerate().take(15) {
        finish(&mut driver, *run);
        start_all(&mut driver);
        let claims = driver.claims();
        match n + 1 {
            5 | 10 | 15 => {
                assert_eq!(claims[0].runs.len(), 5, "half of those that may wait have gone: at once, without a look");
                claimed(&mut driver, &claims[0].runs);
            }
            _ => assert_eq!(claims, [], "not one by one"),
        }
    }
}

#[test]
pub fn a_node_for_one_run_at_a_time_keeps_one_waiting() {
    let mut driver = beside(|config| config.max_executing = 1);
    let runs = driver.claim();
    assert_eq!(runs.len(), 2);
    claimed(&mut driver, &runs);
    let executing = start_all(&mut driver);
    assert_eq!((executing.len(), driver.claims().len()), (1, 0));
    finish(&mut driver, executing[0]);
    assert_eq!(driver.claims().len(), 1, "a place is free: the wish to claim is alive");
}

#[test]
pub fn a_place_that_a_run_given_back_leaves_is_used_at_once() {
    let mut driver = beside(|config| (config.max_in_flight, config.max_executing, config.max_batch) = (2, 2, 2));
    let runs = driver.claim();
    assert_eq!(runs.len(), 2);
    let later = |run: &RunId| prepared(*run, run.parts().1, 20_000);
    driver.claimed(Ok(runs.iter().map(later).collect()));
    assert_eq!(driver.claims(), []);
    let stray = prepared(RunId::drawn(me(), 999), 1, 0);
    driver.beat_with_other(10_000);
    driver.held(Ok(vec![stray.at]));
    assert_eq!(driver.releases(), [stray.at]);
    driver.released(Ok(()));
    assert_eq!(driver.claims(), [], "three were held where two may be");
    driver.beat_with_other(20_000);
    let executing = start_all(&mut driver);
    finish(&mut driver, executing[0]);
    let [claim] = &driver.claims()[..] else { panic!("no stall until the next look") };
    assert_eq!((claim.runs.len(), claim.until), (1, utc(50_350)));
}

#[test]
pub fn no_run_id_is_used_by_two_claims() {
    let mut driver = Driver::new(config());
    let first = driver.claim();
    let later = |run: &RunId| prepared(*run, run.parts().1, 20_000);
    driver.claimed(Ok(vec![later(&first[0]), later(&first[2])]));
    let known: Vec<RunId> = driver.node.known_runs().collect();
    assert_eq!(known, [first[0], first[2]], "an acknowledged claim leaves no unused id behind");
    let second = driver.claim();
    assert!(second.iter().all(|run| !first.contains(run)));
}
