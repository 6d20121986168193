//! The short form of the simulator; `cargo run --profile proof -p carillon-tests --bin simulate` is the long one.

use carillon_domain::time::BootTime;
use carillon_simulation::simulator::{Plan, Summary, run};
use carillon_simulation::world::BootClock;

const JOBS: u64 = 30;

fn run_all(plans: &[Plan], seeds: std::ops::Range<u64>) -> Summary {
    let mut all = Summary::default();
    for plan in plans {
        for seed in seeds.clone() {
            let done = run(*plan, seed, JOBS);
            let replay = format!("simulate plan={} seed={seed} jobs={JOBS}", plan.name());
            all.add(&done.unwrap_or_else(|violation| panic!("{violation}; it is replayed by {replay}")));
        }
    }
    all
}

#[test]
fn clusters_keep_every_invariant_in_trouble_and_come_to_rest_after_it() {
    let plans = [Plan::Network, Plan::Locks, Plan::Nodes, Plan::Clocks, Plan::Overload, Plan::People, Plan::Everything];
    let all = run_all(&plans, 0..4);
    println!("{all:#?}");
    // Rare events were not left out.
    for path in ["settled", "swept as lost", "swept unstarted", "released", "started by a statement of its own"] {
        assert!(all.paths.contains_key(path), "no row was {path}");
    }
    for fault in ["a late COMMIT", "the answer to a COMMIT lost", "a crash", "a frozen node", "a wait for a lock"] {
        assert!(all.faults.contains_key(fault), "there was never {fault}");
    }
}

#[test]
fn nights_on_which_the_clocks_change_lose_no_due_time() {
    assert!(run_all(&[Plan::Dst], 0..2).due_times > 0);
}

#[test]
fn without_trouble_each_due_time_is_a_firing() {
    let calm = run_all(&[Plan::Calm], 0..1);
    assert_eq!(calm.firings, calm.due_times);
    assert!(calm.firings > 0);
}

#[test]
fn a_seed_replays_to_the_letter() {
    for plan in [Plan::Everything, Plan::Network] {
        let [first, second] = [run(plan, 7, JOBS).unwrap(), run(plan, 7, JOBS).unwrap()];
        assert_eq!(first, second);
        assert_ne!(first.trace, run(plan, 8, JOBS).unwrap().trace, "another seed is another story");
    }
}

#[test]
fn a_clock_is_asked_when_it_shows_a_time_and_shows_it_then() {
    for drift_ppm in [-10_000, 0, 7, 10_000] {
        let clock = BootClock { ahead_us: 123_456_789, drift_ppm };
        for ms in [0, 123_457, 200_001, 9_999_999] {
            let at = BootTime::from_ms(ms);
            let when = clock.when(at);
            assert!(clock.at(when) >= at && (when == 0 || clock.at(when - 1) < at), "{drift_ppm} {ms}");
        }
    }
}
