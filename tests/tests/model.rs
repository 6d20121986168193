//! Model checking within the bounds of every push: 2 nodes, 2 firings, 4 runs, one call that goes wrong around every other
//! fault. `cargo run --profile proof -p carillon-tests --bin model -- nodes=3 firings=3 runs=5` explores more.

use std::process::Command;

use carillon_domain::guard::{self, Guard};
use carillon_tests::model::{Bounds, Budget, Outcome, Sight, check};

/// Where a test calls itself, with a guard removed: that holds for the life of a process.
const WITHOUT: &str = "CARILLON_MODEL_WITHOUT";

#[test]
fn every_promise_holds_in_every_state() {
    let outcomes: Vec<Outcome> = Bounds::all(2, 2, 4, 1).iter().map(|bounds| check(bounds, 2, None)).collect();
    for outcome in &outcomes {
        println!("{outcome}");
        if let Some((violation, path)) = &outcome.broken {
            panic!("{}\nVIOLATED {violation}", path.join("\n"));
        }
        assert!(outcome.complete && outcome.unique > 10, "{outcome}");
    }
    for sight in Sight::ALL {
        let times: u64 = outcomes.iter().map(|outcome| outcome.sights.of(sight)).sum();
        assert!(times > 0, "no exploration came across {sight:?}");
    }
}

#[test]
fn a_guard_that_is_removed_is_missed() {
    let bounds = Bounds { budget: Budget { deviations: 2, ..Budget::default() }, ..Bounds::calm("one start", 2, 1, 2) };
    if let Ok(name) = std::env::var(WITHOUT) {
        assert!(guard::remove(Guard::from_name(&name).expect("a guard")), "a debug build");
        let (violation, path) = check(&bounds, 2, None).broken.expect("something breaks");
        println!("{}\nVIOLATED {violation}", path.join("\n"));
        return;
    }
    let myself = std::env::current_exe().expect("this program");
    let again = Command::new(myself)
        .args(["a_guard_that_is_removed_is_missed", "--exact", "--nocapture"])
        .env(WITHOUT, Guard::StartVersion.name())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    let expected = format!("VIOLATED {:?}", Guard::StartVersion.keeps());
    assert!(again.status.success() && said.contains(&expected), "{said}{}", String::from_utf8_lossy(&again.stderr));
}
