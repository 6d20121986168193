//! Every cell of the exception matrix, driven through the machine.

use carillon_domain::node::call::Call;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::call::ClaimRequest;
use carillon_domain::node::call::{Answer, CallKind};
use carillon_domain::node::port::{Claimed, FinishAnswer, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::node::{Config, Effect, FlowKind, Input};

use super::driver::{Driver, config, found_executing, prepared, started, succeeded, utc, with_flow};

#[test]
pub fn a_claim_that_failed_for_certain_is_forgotten_and_made_again() {
    for failure in [CallFailure::RolledBack, CallFailure::Refused] {
        let mut driver = Driver::new(config());
        let ids = driver.claim();
        driver.claimed(Err(failure));
        assert_eq!(driver.node.known_runs().count(), 0, "{failure:?}");
        driver.take();
        driver.tick(49);
        driver.tick(50);
        let again = driver.pick(|effect| {
            if let Effect::Call { call: Call::Claim(ClaimRequest { runs, .. }), .. } = effect {
                Some(runs[0])
            } else {
                None
            }
        });
        assert_eq!(again.len(), 1);
        assert!(!ids.contains(&again[0]), "an id is used once");
    }
}

#[test]
pub fn a_claim_of_unknown_outcome_is_adopted_when_recovery_lists_it() {
    let mut driver = Driver::new(config());
    let run = driver.claim()[0];
    driver.claimed(Err(CallFailure::Unknown));
    assert!(driver.node.known_runs().any(|known| known == run), "kept in pending");
    assert!(
        driver.take().iter().any(|effect| matches!(effect, Effect::Call { call: Call::ListHeld { .. }, .. })),
        "recovery looks at once"
    );
    let claimed = prepared(run, 1, 5_000);
    driver.held(Ok(vec![claimed.at]));
    assert_eq!(driver.settles(), [claimed.at], "settled before anything else");
    driver.settled(Ok(vec![SettleAnswer::Prepared(claimed.clone())]));
    driver.tick(4_999);
    assert!(driver.starts().is_empty());
    driver.tick(5_000);
    assert_eq!(driver.starts(), [claimed.at]);
}

#[test]
pub fn what_recovery_lists_and_nobody_knows_is_given_back_until_that_is_acknowledged() {
    let mut driver = Driver::new(config());
    driver.tick(10_000);
    let stray = prepared(carillon_domain::id::RunId::drawn(super::driver::me(), 999), 1, 0);
    driver.held(Ok(vec![stray.at]));
    assert_eq!(driver.releases(), [stray.at]);
    for (n, failure) in [CallFailure::RolledBack, CallFailure::Refused, CallFailure::Unknown].into_iter().enumerate() {
        driver.released(Err(failure));
        assert!(driver.releases().is_empty(), "not at once");
        driver.tick(10_000 + 300 * (n as u64 + 1));
        assert_eq!(driver.releases(), [stray.at], "asked again after {failure:?}");
    }
    driver.released(Ok(()));
    assert_eq!(driver.node.known_runs().count(), 0);
}

#[test]
pub fn a_start_follows_its_answer() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.take();
    driver.answer_start(Err(CallFailure::RolledBack));
    assert!(driver.starts().is_empty());
    driver.tick(50);
    assert_eq!(driver.starts(), [claimed.at], "rolled back: asked again");
    driver.answer_start(Err(CallFailure::Refused));
    assert_eq!(driver.releases(), [claimed.at], "refused: given back");
    driver.released(Ok(()));
    assert!(driver.spawns().is_empty());

    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.answer_start(Ok(vec![StartAnswer::Gone]));
    assert!(!driver.node.known_runs().any(|run| run == claimed.at.run), "gone: forgotten");

    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.take();
    driver.answer_start(Ok(vec![StartAnswer::Early { start_at: utc(7) }]));
    assert!(driver.starts().is_empty());
    assert!(driver.node.next_wake().as_ms() <= 7);
    driver.tick(6);
    assert!(driver.starts().is_empty(), "early: not asked again before its time");
    driver.tick(7);
    assert_eq!(driver.starts(), [claimed.at], "early: asked again in time");
}

#[test]
pub fn a_start_of_unknown_outcome_is_settled_and_follows_what_is_found() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Found {
        Prepared,
        Executing,
        Withdrawn,
        Gone,
    }
    for found in [Found::Prepared, Found::Executing, Found::Withdrawn, Found::Gone] {
        let mut driver = Driver::new(config());
        let claimed = driver.prepare(0);
        driver.take();
        driver.answer_start(Err(CallFailure::Unknown));
        assert_eq!(driver.settles(), [claimed.at]);
        driver.settled(Err(CallFailure::Unknown));
        driver.tick(50);
        assert_eq!(driver.settles(), [claimed.at], "only an acknowledged settling is believed");
        let seen = match found {
            Found::Prepared => SettleAnswer::Prepared(claimed.clone()),
            Found::Executing => found_executing(&claimed, false),
            Found::Withdrawn => found_executing(&claimed, true),
            Found::Gone => SettleAnswer::Gone,
        };
        driver.settled(Ok(vec![seen]));
        driver.tick(200);
        let (spawned, started, reset) = (driver.spawns().len(), driver.starts().len(), driver.releases().len());
        let expected = match found {
            Found::Prepared => (0, 1, 0),
            Found::Executing => (1, 0, 0),
            Found::Withdrawn => (0, 0, 1),
            Found::Gone => (0, 0, 0),
        };
        assert_eq!((spawned, started, reset), expected, "{found:?}");
        assert_eq!(driver.node.known_runs().count(), usize::from(found != Found::Gone), "{found:?}");
    }
}

#[test]
pub fn a_finish_is_asked_for_ever_and_kept_until_it_is_recorded() {
    let mut driver = Driver::new(config());
    let claimed = driver.execute();
    driver.exit(claimed.at.run);
    let mut now = 0;
    for failure in [CallFailure::Unknown, CallFailure::RolledBack, CallFailure::Refused].repeat(4) {
        assert_eq!(driver.finishes().len(), 1);
        driver.answer_finish(Err(failure));
        assert_eq!(driver.node.counts(), (0, 1), "its place stays taken");
        now += 5_000;
        driver.now = carillon_domain::time::BootTime::from_ms(now - 4_999);
        driver.beat();
        driver.tick(now);
    }
    driver.recorded();
    assert!(driver.take().iter().any(|effect| matches!(effect, Effect::Recorded(run) if *run == claimed.at.run)));
    assert_eq!(driver.node.counts(), (0, 0));
    driver.exit(claimed.at.run);
    assert!(driver.finishes().is_empty(), "an exit of a run that is over says nothing new");
}

#[test]
pub fn a_reset_that_is_acknowledged_late_takes_nothing_from_a_run_that_was_claimed_again() {
    let mut driver = Driver::new(config());
    driver.tick(10_000);
    // A manual run keeps its id, so that recovery may list it before the claim's answer has come.
    let manual = prepared(carillon_domain::id::RunId::drawn(super::driver::other(), 77), 1, 10_000);
    driver.held(Ok(vec![manual.at]));
    assert_eq!(driver.releases(), [manual.at]);
    driver.claim();
    driver.claimed(Ok(vec![manual.clone()]));
    assert_eq!(driver.starts(), [manual.at]);
    driver.answer_start(Ok(vec![started(&manual)]));
    driver.released(Ok(()));
    assert_eq!(driver.node.executing_runs().count(), 1, "the child lives: its run is not forgotten");
    driver.take();
    driver.exit(manual.at.run);
    assert_eq!(driver.finishes().len(), 1);
}

/// Commits were lost, and among them its start: its row waits again, under the same id.
#[test]
pub fn a_manual_run_that_comes_up_again_while_it_lives_is_not_taken_for_another() {
    let mut driver = Driver::new(config());
    let manual = driver.execute_manual();
    driver.claim();
    driver.claimed(Ok(vec![manual.clone()]));
    assert_eq!((driver.starts(), driver.node.executing_runs().count()), (vec![], 1), "the child lives");
    driver.tick(1_000);
    driver.exit(manual.at.run);
    assert_eq!(driver.finishes().len(), 1);
    driver.answer_finish(Ok(vec![FinishAnswer::AlreadyGone]));
    driver.tick(10_000);
    driver.beat();
    driver.held(Ok(vec![manual.at]));
    assert_eq!(driver.releases(), [manual.at]);
}

/// A manual run keeps its id. Its row may have gone back and been claimed again before the answer to its first start comes.
#[test]
pub fn a_late_answer_to_an_earlier_start_moves_no_later_one() {
    let late = [
        Ok(vec![StartAnswer::Gone]),
        Ok(vec![StartAnswer::Moved]),
        Ok(vec![StartAnswer::Suspended]),
        Ok(vec![StartAnswer::Early { start_at: utc(7) }]),
        Err(CallFailure::RolledBack),
        Err(CallFailure::Refused),
        Err(CallFailure::Unknown),
    ];
    with_flow(FlowKind::Eager, || {
        for answer in &late {
            let mut driver = Driver::new(config());
            let first = driver.prepare(0);
            let mut again = first.clone();
            again.at.version += 2;
            driver.claim();
            driver.claimed(Ok(vec![again.clone()]));
            let starts: Vec<_> = driver.in_flight.iter().filter(|(_, kind)| *kind == CallKind::Start).collect();
            let [(earlier, _), (later, _)] = starts[..] else { panic!("two starts are in flight: {starts:?}") };
            let (earlier, later) = (*earlier, *later);
            driver.answer_call(later, Ok(Answer::Start(vec![started(&again)])));
            assert_eq!(driver.spawns(), [again.at.run]);
            driver.answer_call(earlier, answer.clone().map(Answer::Start));
            driver.tick(100);
            assert_eq!(driver.node.executing_runs().count(), 1, "{answer:?}");
            assert_eq!((driver.settles(), driver.releases(), driver.spawns()), (vec![], vec![], vec![]), "{answer:?}");
        }
    });
}

#[test]
pub fn a_late_answer_to_an_earlier_release_ends_no_later_one() {
    let mut driver = Driver::new(config());
    driver.tick(10_000);
    let manual = prepared(carillon_domain::id::RunId::drawn(super::driver::other(), 77), 1, 10_000);
    driver.held(Ok(vec![manual.at]));
    assert_eq!(driver.releases(), [manual.at]);
    let mut again = manual;
    again.at.version += 2;
    driver.claim();
    driver.claimed(Ok(vec![again.clone()]));
    driver.answer_start(Ok(vec![StartAnswer::Suspended]));
    driver.take();
    driver.released(Ok(()));
    driver.tick(11_000);
    assert_eq!(
        driver.releases(),
        [again.at],
        "the row that was claimed again is held until its own release is answered"
    );
}

#[test]
pub fn no_more_runs_execute_than_allowed_even_if_starts_are_in_doubt() {
    let mut driver = Driver::new(Config { max_executing: 2, ..config() });
    let ids = driver.claim();
    let all: Vec<_> = (0..5).map(|n| prepared(ids[n], n as u64, 0)).collect();
    driver.claimed(Ok(all.clone()));
    assert_eq!(driver.starts().len(), 2);
    driver.answer_start(Err(CallFailure::Unknown));
    assert_eq!(driver.settles().len(), 2);
    driver.tick(50);
    assert!(driver.starts().is_empty(), "both places may be taken");
    driver.settled(Ok(vec![found_executing(&all[0], false), SettleAnswer::Gone]));
    driver.tick(100);
    assert_eq!((driver.spawns().len(), driver.starts().len()), (1, 1));
}

#[test]
pub fn no_more_runs_are_held_than_allowed_and_a_free_place_is_used_at_once() {
    let mut driver = Driver::new(Config { max_in_flight: 2, max_batch: 2, ..config() });
    let ids = driver.claim();
    assert_eq!(ids.len(), 2);
    let full = |effects: Vec<Effect>| {
        !effects.iter().any(|effect| matches!(effect, Effect::Call { call: Call::Claim(ClaimRequest { .. }), .. }))
    };
    let all: Vec<_> = (0..2).map(|n| prepared(ids[n], n as u64, 0)).collect();
    driver.claimed(Ok(all.clone()));
    driver.answer_start(Ok(all.iter().map(started).collect()));
    assert!(full(driver.take()), "it is full although there is more");
    driver.exit_with(ids[0], succeeded());
    driver.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
    assert!(driver.take().iter().any(
        |effect| matches!(effect, Effect::Call { call: Call::Claim(ClaimRequest { runs, .. }), .. } if runs.len() == 1)
    ));
}

#[test]
pub fn a_row_that_was_written_to_before_its_start_is_settled_and_started_at_once() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    assert_eq!(driver.starts(), [claimed.at]);
    driver.answer_start(Ok(vec![StartAnswer::Moved]));
    assert_eq!((driver.settles(), driver.spawns()), (vec![claimed.at], vec![]));
    let now = RunRef { version: claimed.at.version + 2, ..claimed.at };
    driver.settled(Ok(vec![SettleAnswer::Prepared(Claimed { at: now, ..claimed })]));
    assert_eq!(driver.starts(), [now]);
}

#[test]
pub fn an_unknown_outcome_is_settled_until_the_store_acknowledges() {
    for failure in [CallFailure::RolledBack, CallFailure::Refused, CallFailure::Unknown] {
        let mut driver = Driver::new(config());
        let claimed = driver.prepare(0);
        driver.take();
        driver.answer_start(Err(CallFailure::Unknown));
        assert_eq!(driver.settles(), [claimed.at]);
        driver.settled(Err(failure));
        assert_eq!((driver.spawns().len(), driver.starts().len(), driver.releases().len()), (0, 0, 0), "{failure:?}");
        driver.tick(50);
        assert_eq!(driver.settles(), [claimed.at], "settled again after {failure:?}");
        assert_eq!(driver.node.counts(), (0, 1), "its place stays taken");
    }
}

#[test]
pub fn a_run_that_a_draining_node_finds_prepared_is_released() {
    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.answer_start(Err(CallFailure::Unknown));
    driver.feed(Input::Drain);
    driver.take();
    driver.settled(Ok(vec![SettleAnswer::Prepared(claimed.clone())]));
    assert_eq!((driver.releases(), driver.starts(), driver.spawns()), (vec![claimed.at], vec![], vec![]));
    assert_eq!(driver.node.counts(), (1, 0), "it takes no place");
    driver.released(Ok(()));
    assert_eq!(driver.node.known_runs().count(), 0);
}

#[test]
pub fn a_claim_follows_a_firing_that_went_back_to_idle() {
    let mut driver = Driver::new(config());
    driver.prepare(0);
    driver.take();
    driver.answer_start(Ok(vec![StartAnswer::Gone]));
    assert_eq!(driver.claims().len(), 1, "somebody changed the job: it may be due again");

    let mut driver = Driver::new(config());
    let claimed = driver.prepare(0);
    driver.answer_start(Err(CallFailure::Refused));
    assert_eq!(driver.releases(), [claimed.at]);
    driver.take();
    driver.released(Ok(()));
    assert_eq!(driver.claims().len(), 1, "the released firing is still due");
}

#[test]
pub fn a_record_that_was_kept_before_ends_the_run() {
    let mut driver = Driver::new(config());
    let claimed = driver.execute();
    driver.exit(claimed.at.run);
    driver.answer_finish(Ok(vec![FinishAnswer::AlreadyGone]));
    let recorded =
        driver.pick(|effect| matches!(effect, Effect::Recorded(run) if *run == claimed.at.run).then_some(()));
    assert_eq!((recorded.len(), driver.node.known_runs().count()), (1, 0));
}
