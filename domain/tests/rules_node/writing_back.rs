//! Runs are written back after lost commits: before anything of them is recorded, and before anybody may accept.

use carillon_domain::firing::FiringKey;
use carillon_domain::id::RunId;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{BeatAnswer, CallFailure, CallKind, WriteBackRequest};
use carillon_domain::node::port::{Claimed, FinishAnswer, KnownRun, RowKey, RunRef, WriteBackAnswer};
use carillon_domain::node::{Config, Input};
use carillon_domain::run::Status;

use super::driver::{Driver, config, executing, found_executing, me, peer, prepared, started, timed, utc};
use super::suspension::{stays, told, window};

fn ids(request: &WriteBackRequest) -> Vec<RunId> {
    request.runs.iter().map(|known| known.held.run).collect()
}

/// The one request that was sent.
fn sent(driver: &mut Driver) -> WriteBackRequest {
    let mut all = driver.write_backs();
    assert_eq!(all.len(), 1, "one write-back");
    all.remove(0)
}

/// A row beside the job's, at a version that was never given out.
fn beside(running: &Claimed) -> RunRef {
    let key = FiringKey {
        job: running.at.row.job(),
        due_at: running.held.firing.due_at,
        trigger: running.held.firing.trigger,
    };
    RunRef { row: RowKey::Concurrent(key), version: 99, run: running.at.run }
}

#[test]
pub fn what_runs_is_written_back_and_recorded_where_it_was_written() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    told(&mut driver, Some(window()));
    let request = sent(&mut driver);
    let (at, held) = executing(&running);
    assert_eq!(request.runs, [KnownRun { at, held, ended: None }]);
    assert_eq!((request.until, request.last, request.me.session), (window().until_at, true, me()));
    driver.exit(running.at.run);
    assert_eq!(driver.finishes().len(), 0, "its row may have lost it");
    driver.take();
    let row = beside(&running);
    driver.wrote_back(Ok(Some(vec![WriteBackAnswer::Executing { at: row, replace_at: None }])));
    let finished = driver.pick_calls(|call| match call {
        carillon_domain::node::call::Call::Finish { runs, .. } => Some(runs[0].at),
        _ => None,
    });
    assert_eq!(finished, [row]);
    assert!(driver.settles().is_empty());
}

#[test]
pub fn a_run_that_is_to_be_replaced_is_asked_about_where_it_was_written() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    told(&mut driver, Some(window()));
    driver.take();
    let (at, replace_at) = (beside(&running), Some(utc(2_000)));
    driver.wrote_back(Ok(Some(vec![WriteBackAnswer::Executing { at, replace_at }])));
    driver.tick(1_999);
    assert_eq!(driver.settles(), []);
    driver.tick(2_000);
    assert_eq!(driver.settles(), [at], "the store is asked whether a newer firing replaces it");
}

#[test]
pub fn it_is_written_once_for_each_loss() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    told(&mut driver, Some(window()));
    driver.wrote_back(Ok(Some(vec![stays(&running)])));
    assert_eq!(sent(&mut driver).runs.len(), 1);
    told(&mut driver, Some(window()));
    assert_eq!(driver.write_backs(), [], "everything is written");
    let more = LossWindow { until_at: utc(5_000), ..window() };
    told(&mut driver, Some(more));
    let again = sent(&mut driver);
    assert_eq!((again.until, again.runs.len()), (utc(5_000), 1), "more was lost");
}

#[test]
pub fn a_node_without_runs_says_so() {
    let mut driver = Driver::new(config());
    told(&mut driver, Some(window()));
    let request = sent(&mut driver);
    assert_eq!((request.runs.len(), request.last), (0, true));
}

#[test]
pub fn a_run_without_a_row_goes_on() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    told(&mut driver, Some(window()));
    driver.take();
    driver.wrote_back(Ok(Some(vec![WriteBackAnswer::Nowhere])));
    assert_eq!((driver.stops(), driver.releases(), driver.settles(), driver.kills()), (vec![], vec![], vec![], vec![]));
    assert!(!driver.is_in_flight(CallKind::WriteBack), "it is not written again");
    assert!(!driver.is_in_flight(CallKind::ListHeld));
    assert_eq!(driver.node.counts(), (0, 1));
    driver.exit(running.at.run);
    assert_eq!(driver.finishes().len(), 1);
}

#[test]
pub fn what_failed_is_written_again() {
    for failure in [CallFailure::RolledBack, CallFailure::Refused, CallFailure::Unknown] {
        let mut driver = Driver::new(config());
        let running = driver.execute();
        told(&mut driver, Some(window()));
        driver.take();
        driver.wrote_back(Err(failure));
        assert_eq!(driver.write_backs(), [], "after a backoff");
        assert!(!driver.is_in_flight(CallKind::ListHeld) && !driver.is_in_flight(CallKind::Settle));
        driver.tick(1_000);
        assert_eq!(ids(&sent(&mut driver)), [running.at.run], "{failure:?}");
        driver.wrote_back(Ok(Some(vec![stays(&running)])));
        driver.exit(running.at.run);
        assert_eq!(driver.finishes().len(), 1);
    }
}

/// The loss may have been accepted, or commits may be lost again: the next heartbeat tells.
#[test]
pub fn what_the_store_did_not_take_is_written_again_while_the_loss_is_open() {
    let mut driver = Driver::new(config());
    told(&mut driver, Some(window()));
    driver.wrote_back(Ok(None));
    driver.take();
    driver.tick(1_000);
    assert_eq!(driver.write_backs().len(), 1);
    driver.wrote_back(Ok(None));
    told(&mut driver, None);
    driver.tick(3_000);
    assert_eq!(driver.write_backs(), [], "it was accepted");
}

#[test]
pub fn ends_that_were_acknowledged_are_written_too_unless_they_are_safe() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    driver.exit(running.at.run);
    driver.recorded();
    driver.take();
    let after = LossWindow { from_at: utc(60_000), until_at: utc(60_000), noticed_at: utc(60_000) };
    told(&mut driver, Some(after));
    assert_eq!(ids(&sent(&mut driver)), [], "it was recorded long before");
    driver.wrote_back(Ok(Some(vec![])));
    told(&mut driver, Some(window()));
    let request = sent(&mut driver);
    assert_eq!(ids(&request), [running.at.run]);
    assert_eq!(request.runs[0].ended.as_ref().map(|ending| ending.status), Some(Status::Succeeded));
    driver.wrote_back(Err(CallFailure::Unknown));
    driver.tick(1_000);
    assert_eq!(ids(&sent(&mut driver)), [running.at.run], "again");
    driver.wrote_back(Ok(Some(vec![WriteBackAnswer::Recorded])));
    assert_eq!(driver.finishes(), []);
}

/// The recovery loop may look before a heartbeat tells of the loss, or no acknowledged heartbeat was lost.
#[test]
pub fn a_row_of_a_run_whose_end_was_acknowledged_is_recorded_again_and_not_released() {
    let mut driver = Driver::new(config());
    let running = driver.execute();
    driver.exit(running.at.run);
    driver.recorded();
    driver.take();
    driver.tick(10_000);
    driver.held(Ok(vec![executing(&running).0]));
    let finishes = driver.finishes();
    assert_eq!(
        finishes.iter().map(|(run, ending)| (*run, ending.status)).collect::<Vec<_>>(),
        [(running.at.run, Status::Succeeded)]
    );
    assert_eq!((driver.releases(), driver.settles()), (vec![], vec![]));
    driver.recorded();
    told(&mut driver, Some(window()));
    assert_eq!(ids(&sent(&mut driver)), [running.at.run], "it may be lost once more");
    assert_eq!((driver.releases(), driver.node.counts()), (vec![], (0, 0)));
}

fn ended_after_the_list_was_asked_for() -> (Driver, Claimed) {
    ended_after_the_list(Driver::new(config()))
}

fn ended_after_the_list(mut driver: Driver) -> (Driver, Claimed) {
    let running = driver.execute();
    driver.take();
    driver.tick(10_000);
    driver.exit(running.at.run);
    driver.recorded();
    driver.take();
    (driver, running)
}

fn only_a_later_list_tells_of_it((mut driver, running): (Driver, Claimed)) {
    driver.held(Ok(vec![executing(&running).0]));
    driver.tick(10_500);
    assert_eq!((driver.finishes(), driver.releases(), driver.settles()), (vec![], vec![], vec![]));
    driver.tick(20_000);
    driver.held(Ok(vec![executing(&running).0]));
    assert_eq!(driver.finishes().len(), 1, "it stands in a list that was asked for after its end");
}

/// A busy node has thousands of them in each list, and each would cost a statement.
#[test]
pub fn a_list_from_before_the_end_of_a_run_tells_nothing_about_it() {
    only_a_later_list_tells_of_it(ended_after_the_list_was_asked_for());
}

/// Where a node remembers as many ends as it may, each new one takes the place of the oldest.
#[test]
pub fn a_list_from_before_an_end_that_took_the_place_of_another_tells_nothing_about_it() {
    let mut driver = Driver::new(Config { remembered_ends: 1, ..config() });
    let before = driver.execute();
    driver.exit(before.at.run);
    driver.recorded();
    only_a_later_list_tells_of_it(ended_after_the_list(driver));
}

/// A manual run keeps its id for its next attempt, which a claim may hold whose answer was lost.
#[test]
pub fn a_list_from_before_the_end_of_a_run_tells_of_its_next_attempt() {
    let (mut driver, running) = ended_after_the_list_was_asked_for();
    let (at, _) = executing(&running);
    let next = RunRef { version: at.version + 2, ..at };
    driver.held(Ok(vec![next]));
    driver.tick(10_500);
    assert_eq!(driver.releases(), [next]);
}

/// A row that waits takes no record. After a look it is released.
#[test]
pub fn a_row_that_waits_again_for_a_run_that_has_ended_is_written_back_or_released() {
    for loss in [Some(window()), None] {
        let mut driver = Driver::new(config());
        let running = driver.execute();
        driver.exit(running.at.run);
        driver.recorded();
        driver.tick(10_000);
        driver.take();
        told(&mut driver, loss);
        if loss.is_some() {
            driver.wrote_back(Ok(Some(vec![WriteBackAnswer::Recorded])));
        }
        driver.take();
        driver.held(Ok(vec![running.at]));
        assert_eq!((driver.finishes().len(), driver.releases()), (1, vec![]));
        driver.answer_finish(Ok(vec![FinishAnswer::AlreadyGone]));
        driver.tick(20_000);
        driver.beaten(Ok(BeatAnswer::Alive { utc: utc(0), peers: vec![peer(me(), 1)], window: loss }));
        driver.held(Ok(vec![running.at]));
        assert_eq!(driver.releases(), [running.at], "{loss:?}");
    }
}

#[test]
pub fn no_more_ends_are_remembered_than_configured() {
    let mut driver = Driver::new(Config { remembered_ends: 2, ..config() });
    let runs: Vec<_> = (0..3)
        .map(|n| {
            let run = driver.execute().at.run;
            driver.exit(run);
            driver.tick(1_000 * (n + 1));
            driver.recorded();
            run
        })
        .collect();
    told(&mut driver, Some(window()));
    assert_eq!(ids(&sent(&mut driver)), runs[1..]);
}

#[test]
pub fn a_start_and_a_record_on_their_way_are_waited_for() {
    for start_first in [true, false] {
        let mut driver = Driver::new(config());
        let first = driver.execute();
        driver.exit(first.at.run);
        driver.tick(1_000);
        let second = driver.prepare(1_000);
        driver.take();
        told(&mut driver, Some(window()));
        assert!(!driver.is_in_flight(CallKind::WriteBack));
        for answers_start in [start_first, !start_first] {
            assert!(!driver.is_in_flight(CallKind::WriteBack), "the other one may be lost or not");
            if answers_start {
                driver.answer_start(Ok(vec![started(&second)]));
            } else {
                driver.recorded();
            }
        }
        assert_eq!(ids(&sent(&mut driver)), [first.at.run, second.at.run]);
    }
}

/// It may start runs in its own commit. They are lost, and must not begin after somebody has accepted that.
#[test]
pub fn a_claim_on_its_way_is_waited_for() {
    let mut driver = Driver::new(config());
    let lost = prepared(driver.claim()[0], 1, 0);
    told(&mut driver, Some(window()));
    assert_eq!(driver.write_backs(), [], "nobody may accept yet");
    let (at, held) = executing(&lost);
    driver.claimed(Ok(vec![Claimed { at, held, ..lost }]));
    assert_eq!((driver.spawns(), ids(&sent(&mut driver))), (vec![], vec![]));
}

#[test]
pub fn a_question_for_an_outcome_is_waited_for() {
    let mut driver = Driver::new(config());
    let lost = driver.prepare(0);
    driver.answer_start(Err(CallFailure::Unknown));
    assert_eq!(driver.settles(), [lost.at]);
    told(&mut driver, Some(window()));
    assert_eq!(driver.write_backs(), [], "the answer may be of what is lost");
    driver.settled(Ok(vec![found_executing(&lost, false)]));
    assert_eq!((driver.spawns(), ids(&sent(&mut driver))), (vec![], vec![]));
}

#[test]
pub fn an_outcome_is_asked_for_when_everything_is_written() {
    let mut driver = Driver::new(config());
    let lost = driver.prepare(0);
    assert_eq!(driver.starts(), [lost.at]);
    told(&mut driver, Some(window()));
    driver.answer_start(Err(CallFailure::Unknown));
    assert_eq!((driver.settles(), driver.is_in_flight(CallKind::WriteBack)), (vec![], true));
    driver.wrote_back(Ok(Some(vec![])));
    assert_eq!(driver.settles(), [lost.at]);
}

#[test]
pub fn many_runs_are_written_in_batches_of_which_the_last_one_says_so() {
    let mut driver = Driver::new(Config { max_batch: 2, ..config() });
    let runs: Vec<Claimed> = (0..3).map(|_| driver.execute()).collect();
    told(&mut driver, Some(window()));
    let request = sent(&mut driver);
    assert_eq!((ids(&request).len(), request.last), (2, false));
    driver.wrote_back(Ok(Some(runs[..2].iter().map(stays).collect())));
    let request = sent(&mut driver);
    assert_eq!((ids(&request), request.last), (vec![runs[2].at.run], true));
}

#[test]
pub fn a_node_that_drains_writes_before_it_leaves() {
    let mut driver = Driver::new(timed());
    driver.feed(Input::Drain);
    driver.beaten(Ok(BeatAnswer::Alive { utc: utc(0), peers: vec![peer(me(), 1)], window: Some(window()) }));
    assert_eq!((driver.write_backs().len(), driver.closes()), (1, 0));
    driver.wrote_back(Ok(Some(vec![])));
    while driver.is_in_flight(CallKind::ListHeld) {
        driver.held(Ok(vec![]));
    }
    assert_eq!(driver.closes(), 1);
}
