//! The end of a run leads to its record, and to a claim of its job's next firing.

use carillon_domain::id::RunId;
use carillon_domain::node::call::Call;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::{FinishAnswer, Next, SettleAnswer};
use carillon_domain::node::{Config, Effect, Input};
use carillon_domain::partition::partition_of;

use super::driver::{Driver, config, prepared, started, utc};

#[test]
pub fn a_run_ends_when_the_databases_clock_says_so() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.tick(2_500);
    driver.exit(run);
    assert_eq!(driver.finishes()[0].1.ended_at, utc(2_500), "whatever the executor's clock shows");
}

#[test]
pub fn a_run_was_claimed_when_its_node_heard_of_it() {
    let mut driver = Driver::new(config());
    driver.tick(1_500);
    let claimed = driver.prepare(9_000);
    driver.tick(9_000);
    driver.answer_start(Ok(vec![started(&claimed)]));
    driver.tick(9_500);
    driver.exit(claimed.at.run);
    assert_eq!(driver.finishes()[0].1.claimed_at.0, Some(utc(1_500)));
}

#[test]
pub fn a_start_that_was_not_applied_leaves_the_claim_as_it_was() {
    let mut driver = Driver::new(config());
    driver.tick(1_500);
    let claimed = driver.prepare(2_000);
    driver.tick(2_000);
    driver.answer_start(Err(CallFailure::Unknown));
    driver.tick(6_000);
    driver.settled(Ok(vec![SettleAnswer::Prepared(claimed.clone())]));
    driver.answer_start(Ok(vec![started(&claimed)]));
    driver.exit(claimed.at.run);
    assert_eq!(driver.finishes()[0].1.claimed_at.0, Some(utc(1_500)));
}

#[test]
pub fn what_comes_up_within_the_horizon_after_a_run_is_claimed_at_once() {
    for (claim_at, claims) in [(Some(2_000), 1), (Some(30_000), 1), (Some(30_001), 0), (None, 0)] {
        let mut driver = Driver::new(config());
        let run = driver.execute().at.run;
        driver.exit(run);
        driver.take();
        driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: claim_at.map(utc) }]));
        assert_eq!(driver.claims().len(), claims, "it comes up at {claim_at:?}");
    }
}

/// The successors that the finishes in flight may claim.
pub fn onward(driver: &mut Driver) -> Vec<Option<Next>> {
    let of = |effect: &Effect| match effect {
        Effect::Call { call: Call::Finish { runs: all, .. }, .. } => {
            Some(all.iter().map(|one| one.next).collect::<Vec<_>>())
        }
        _ => None,
    };
    driver.pick(of).concat()
}

#[test]
pub fn a_finish_may_claim_what_comes_up_next_of_its_job() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.tick(1_000);
    driver.exit(run);
    let [Some(next)] = onward(&mut driver)[..] else { panic!("nothing is claimed along") };
    assert_eq!(next.until, utc(31_000));
    let claimed = prepared(next.run, 1, 5_000);
    driver.answer_finish(Ok(vec![FinishAnswer::RecordedAndClaimed(Box::new(claimed.clone()))]));
    assert_eq!((driver.claims(), driver.node.counts()), (vec![], (1, 0)));
    driver.tick(5_000);
    assert_eq!(driver.starts(), [claimed.at]);
}

#[test]
pub fn a_finish_of_unknown_outcome_is_repeated_with_the_same_id_and_recovery_leaves_that_alone() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.exit(run);
    let [Some(next)] = onward(&mut driver)[..] else { panic!("nothing is claimed along") };
    driver.answer_finish(Err(CallFailure::Unknown));
    assert!(driver.node.known_runs().any(|known| known == next.run));
    driver.tick(10_000);
    driver.beat();
    let [Some(again)] = onward(&mut driver)[..] else { panic!("it is not asked again") };
    assert_eq!(again.run, next.run);
    let claimed = prepared(next.run, 1, 12_000);
    driver.held(Ok(vec![claimed.at]));
    assert_eq!((driver.settles(), driver.releases()), (vec![], vec![]));
    driver.answer_finish(Ok(vec![FinishAnswer::RecordedAndClaimed(Box::new(claimed.clone()))]));
    driver.tick(12_000);
    assert_eq!(driver.starts(), [claimed.at]);
}

#[test]
pub fn nothing_is_claimed_along_by_a_node_that_drains_is_full_or_whose_partition_has_moved() {
    let finish = |driver: &mut Driver, run: RunId| {
        driver.exit(run);
        onward(driver)
    };
    let mut drains = Driver::new(config());
    let run = drains.execute().at.run;
    drains.feed(Input::Drain);
    assert_eq!(finish(&mut drains, run), [None]);

    let mut full = Driver::new(Config { max_in_flight: 1, ..config() });
    let run = full.execute().at.run;
    assert_eq!(finish(&mut full, run), [None]);

    let mut outcomes = Vec::new();
    for partitions in 1..=16 {
        let mut driver = Driver::new(Config { partitions, ..config() });
        let run = driver.execute().at.run;
        driver.beat_with_other(1_000);
        let kept = driver.node.partitions().contains(&partition_of("default", "job", partitions));
        assert_eq!(finish(&mut driver, run)[0].is_some(), kept, "of {partitions}");
        outcomes.push(kept);
    }
    assert!(outcomes.contains(&true) && outcomes.contains(&false), "{outcomes:?}");
}

#[test]
pub fn what_was_claimed_along_is_given_back_by_a_node_that_drains_meanwhile() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    driver.exit(run);
    let [Some(next)] = onward(&mut driver)[..] else { panic!("nothing is claimed along") };
    driver.feed(Input::Drain);
    let claimed = prepared(next.run, 1, 5_000);
    driver.answer_finish(Ok(vec![FinishAnswer::RecordedAndClaimed(Box::new(claimed.clone()))]));
    assert_eq!(driver.releases(), [claimed.at]);
}

#[test]
pub fn ids_that_a_claim_has_not_used_are_not_drawn_twice_when_a_finish_has_drawn_others() {
    let mut driver = Driver::new(config());
    let run = driver.execute().at.run;
    let sent = driver.claim();
    driver.exit(run);
    let [Some(next)] = onward(&mut driver)[..] else { panic!("nothing is claimed along") };
    driver.claimed(Ok(vec![]));
    let drawn = driver.claim();
    assert!(!drawn.contains(&next.run) && !sent.contains(&next.run), "{next:?}");
}

#[test]
pub fn runs_that_end_soon_after_each_other_share_a_finish() {
    let mut driver = Driver::new(config());
    let runs: Vec<RunId> = (0..4).map(|_| driver.execute().at.run).collect();
    driver.exit(runs[0]);
    assert_eq!(driver.finishes().len(), 1, "the first one goes at once");
    driver.recorded();
    driver.tick(5);
    driver.exit(runs[1]);
    driver.tick(200);
    driver.exit(runs[2]);
    assert_eq!((driver.finishes().len(), driver.node.next_wake().as_ms()), (0, 250));
    driver.tick(250);
    assert_eq!(driver.finishes().len(), 2);
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }; 2]));
    driver.exit(runs[3]);
    driver.feed(Input::Drain);
    assert_eq!(driver.finishes().len(), 1, "a drain waits for nothing");
}

#[test]
pub fn the_first_of_many_that_execute_waits_for_others_to_end() {
    let mut driver = Driver::new(Config { max_executing: 20, ..config() });
    let runs: Vec<RunId> = (0..11).map(|_| driver.execute().at.run).collect();
    driver.exit(runs[0]);
    assert_eq!((driver.finishes().len(), driver.node.next_wake().as_ms()), (0, 250));
    driver.tick(100);
    runs[1..].iter().for_each(|run| driver.exit(*run));
    assert_eq!(driver.finishes().len(), 0);
    driver.tick(250);
    assert_eq!(driver.finishes().len(), 11);
}

/// When the record of a run that ends at `end_ms` is on its way, where one was sent shortly before.
fn recorded_at(driver: &mut Driver, run: RunId, end_ms: u64) -> u64 {
    driver.tick(end_ms - 1);
    let first = driver.execute().at.run;
    driver.exit(first);
    driver.recorded();
    driver.take();
    driver.tick(end_ms);
    driver.exit(run);
    let mut at = end_ms;
    while driver.finishes().is_empty() {
        at = driver.node.next_wake().as_ms();
        driver.tick(at);
    }
    at
}

#[test]
pub fn nobody_waits_for_a_record_until_half_a_second_after_the_run_was_due() {
    for (end_ms, recorded_ms) in [(100, 349), (250, 499), (300, 500), (460, 500), (490, 515), (800, 825)] {
        let mut driver = Driver::new(config());
        let run = driver.execute().at.run;
        assert_eq!(recorded_at(&mut driver, run, end_ms), recorded_ms, "it ended at {end_ms}");
    }
    let mut driver = Driver::new(config());
    let manual = driver.execute_manual();
    assert_eq!(recorded_at(&mut driver, manual.at.run, 100), 125, "whoever asked for the run may look at it");
}

#[test]
pub fn a_record_that_keeps_a_place_is_not_waited_with_for_long() {
    let mut driver = Driver::new(Config { max_executing: 2, ..config() });
    let runs: Vec<RunId> = (0..2).map(|_| driver.execute().at.run).collect();
    driver.exit(runs[0]);
    driver.recorded();
    driver.execute();
    driver.prepare(0);
    driver.take();
    driver.exit(runs[1]);
    assert_eq!((driver.finishes().len(), driver.node.next_wake().as_ms()), (0, 25));
    driver.tick(25);
    assert_eq!(driver.finishes().len(), 1);
}

#[test]
pub fn a_full_batch_of_ended_runs_is_not_waited_with() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let runs: Vec<RunId> = (0..3).map(|_| driver.execute().at.run).collect();
    driver.exit(runs[0]);
    assert_eq!(driver.finishes().len(), 1);
    driver.recorded();
    driver.exit(runs[1]);
    assert_eq!(driver.finishes().len(), 0);
    driver.exit(runs[2]);
    assert_eq!(driver.finishes().len(), 2);
}

/// A thousand rows that a commit holds keep a pause of one of them waiting for too long.
#[test]
pub fn a_finish_records_no_more_than_others_can_wait_for() {
    let limits = Config { max_batch: 1_000, max_in_flight: 1_200, max_executing: 1_200, ..config() };
    let mut driver = Driver::new(limits);
    let runs: Vec<RunId> = (0..1_200).map(|_| driver.execute().at.run).collect();
    for run in runs {
        driver.exit(run);
    }
    let sizes = driver.pick(|effect| {
        if let Effect::Call { call: Call::Finish { runs, .. }, .. } = effect { Some(runs.len()) } else { None }
    });
    assert_eq!(sizes, [500, 500], "two lanes");
}

/// Runs that come due at the same moment, more than one batch of them; what ends first waits to be recorded.
#[test]
pub fn what_waits_to_start_goes_before_what_has_ended() {
    let mut driver = Driver::new(Config { max_batch: 2, max_executing: 5, ..config() });
    let runs = driver.claim();
    let all: Vec<_> = runs.iter().map(|run| prepared(*run, run.parts().1, 0)).collect();
    driver.claimed(Ok(all.clone()));
    let more = driver.claims().remove(0).runs;
    let rest: Vec<_> = more.iter().map(|run| prepared(*run, run.parts().1, 0)).collect();
    driver.claimed(Ok(rest.clone()));
    let lanes =
        driver.pick(
            |effect| if let Effect::Call { id: lane, call: Call::Start { .. } } = effect { Some(*lane) } else { None },
        );
    driver.answer_start_of(lanes[0], Ok(all.iter().map(started).collect()));
    driver.exit(runs[0]);
    driver.exit(runs[1]);
    assert_eq!((driver.finishes().len(), driver.node.next_wake().as_ms()), (0, 250));
    driver.answer_start_of(lanes[1], Ok(rest.iter().map(started).collect()));
    assert_eq!(driver.finishes().len(), 2, "none waits to start any more");
}

#[test]
pub fn a_start_that_takes_long_keeps_no_record_waiting_for_long() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let first = driver.execute();
    let second = driver.prepare(0);
    assert_eq!(driver.starts(), [second.at]);
    driver.exit(first.at.run);
    assert_eq!(driver.finishes().len(), 0);
    driver.tick(249);
    assert_eq!(driver.finishes().len(), 0);
    driver.tick(250);
    assert_eq!(driver.finishes().len(), 1);
}

#[test]
pub fn where_no_place_is_free_what_has_ended_makes_one() {
    let mut driver = Driver::new(Config { max_executing: 1, ..config() });
    let first = driver.execute();
    driver.prepare(0);
    driver.exit(first.at.run);
    assert_eq!(driver.finishes().len(), 1);
}
