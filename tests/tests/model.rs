//! Model checking within the bounds of every push: 2 nodes, 2 firings, 4 runs, two calls that go wrong, and one around every
//! other fault. `cargo run --profile proof -p carillon-tests --bin model -- nodes=3 firings=3 runs=5` explores more.

use std::path::Path;
use std::time::Duration;

use carillon_domain::alert::When;
use carillon_domain::guard::Guard;
use carillon_domain::invariants::Invariant;
use carillon_simulation::model::{Bounds, Budget, Outcome, Situation, check, check_outbox, run_without};

#[test]
fn every_promise_holds_in_every_state() {
    let mut explorations = Bounds::all(2, 2, 4, 1);
    explorations[0].budget.deviations = 2;
    let tell = |bounds: &Bounds| {
        let outcome = check(bounds, 2, None);
        println!("{outcome}");
        outcome
    };
    let outcomes: Vec<Outcome> = explorations.iter().map(tell).collect();
    for outcome in &outcomes {
        if let Some((violation, path)) = &outcome.broken {
            panic!("{}\nVIOLATED {violation}", path.join("\n"));
        }
        assert!(outcome.complete && outcome.unique > 10, "{outcome}");
    }
    for sight in Situation::ALL {
        let times: u64 = outcomes.iter().map(|outcome| outcome.coverage.of(sight)).sum();
        assert!(times > 0, "no exploration came across {sight:?}");
    }
}

/// Two nodes judge, claim, send and answer in every order. A broken expectation meets one fault: a lost answer, a crash, a receiver that
/// refuses, a sleep. A failure meets none here, because that takes 47 s; the binary `model` gives it one.
#[test]
fn every_message_arrives_in_every_order() {
    let explorations: [(&[When], u8); 2] = [(&[When::LateStart], 1), (&[When::Failed], 0)];
    for (kinds, faults) in explorations {
        let outcome = check_outbox(kinds, 2, faults, 2, None);
        println!("{kinds:?}: {outcome}");
        if let Some((violation, path)) = &outcome.broken {
            panic!("{}\nVIOLATED {violation}", path.join("\n"));
        }
        assert!(outcome.complete && outcome.unique > 100, "{outcome}");
    }
}

/// The explorations find violations: with a timing that breaks the fencing inequality, the rows of a node that is
/// cut off are swept while its run lives.
#[test]
fn a_session_that_is_expired_too_soon_is_found_with_the_way_there() {
    let budget = Budget { cuts: 1, ..Budget::default() };
    let bounds = Bounds { budget, expire_after: Duration::from_millis(900), ..Bounds::calm("too soon", 2, 1, 2) };
    let (violation, path) = check(&bounds, 2, None).broken.expect("something breaks");
    println!("{}\nVIOLATED {violation}", path.join("\n"));
    assert_eq!(violation.invariant, Invariant::S8);
    assert!(path.iter().any(|line| line.contains("Cut(")), "the path tells of the cut");
}

/// Guards without which what they keep soon breaks, and the exploration that comes across it.
const FOUND: [(Guard, &str); 10] = [
    (Guard::RunId, "network"),
    (Guard::FinishRepeats, "network"),
    (Guard::SelfKill, "network"),
    (Guard::HeartbeatRestartsExpiry, "network"),
    (Guard::HeartbeatNewer, "network"),
    (Guard::Recovery, "network"),
    (Guard::PauseReleases, "pause and delete"),
    (Guard::FinishDeleted, "pause and delete"),
    (Guard::VersionLift, "restore"),
    (Guard::DeliveryReclaimed, "outbox"),
];

#[test]
fn a_guard_that_is_removed_is_missed() {
    if !cfg!(debug_assertions) {
        carillon_tests::skipped::tell("guards cannot be removed from a build without debug assertions");
        return;
    }
    for (guard, exploration) in FOUND {
        let words = [format!("only={exploration}"), "faults=1".to_owned(), "threads=1".to_owned()];
        let removed = run_without(Path::new(env!("CARGO_BIN_EXE_model")), guard, &words);
        println!("{removed:?}");
        let violation = removed.violation.unwrap_or_else(|| panic!("nothing breaks without {}", guard.name()));
        assert!(violation.starts_with(&format!("{:?}: ", guard.keeps())), "without {}: {violation}", guard.name());
    }
}
