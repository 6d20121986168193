//! Whole nodes against a tiny store, under faults, in virtual time. A seed replays: `SIM_SEED=17 cargo test -p
//! carillon-domain --test rules_node_sim`; `SIM_SEEDS=100000` runs more of them.

#[path = "rules_node_sim/dice.rs"]
mod dice;
#[path = "rules_node_sim/store.rs"]
mod store;
#[path = "rules_node_sim/world.rs"]
mod world;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use world::World;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs each seed; a failure tells which one replays it.
fn each_seed(count: u64, run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let seeds = match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(count),
    };
    for seed in seeds {
        let done = std::panic::catch_unwind(|| run(seed));
        assert!(done.is_ok(), "seed {seed} failed: SIM_SEED={seed} replays it");
    }
}

#[test]
fn nodes_keep_every_invariant_under_faults_and_come_to_rest_after_them() {
    let [steps, stolen, onward, along] = [0; 4].map(AtomicU64::new);
    each_seed(2_000, |seed| {
        let done = World::new(seed).run();
        steps.fetch_add(done.steps, Relaxed);
        stolen.fetch_add(done.stolen(), Relaxed);
        onward.fetch_add(done.onward(), Relaxed);
        along.fetch_add(done.along(), Relaxed);
    });
    let [steps, stolen, onward, along] = [steps, stolen, onward, along].map(AtomicU64::into_inner);
    assert!(steps > 0 && ([stolen, onward, along].iter().all(|count| *count > 0) || from_env("SIM_SEED").is_some()));
    println!(
        "{steps} steps, {stolen} firings taken from others, {onward} claimed by the finish before them, {along} started by \
         the commit that claimed them"
    );
}

#[test]
fn an_owner_that_makes_progress_is_never_robbed() {
    each_seed(100, |seed| {
        let mut world = World::calm(seed, "@every 4s");
        world.pass(30_000);
        assert_eq!(world.stolen(), 0);
        let lags = world.lags_ms(8_000);
        assert!(lags.len() == 48 && lags.iter().all(|lag| *lag < 500), "{lags:?}");
    });
}

#[test]
fn the_firings_of_an_owner_that_is_stuck_start_in_time_on_others() {
    each_seed(100, |seed| {
        let mut world = World::calm(seed, "@every 4s");
        world.pass(3_000);
        assert!(world.stick_the_busiest() > 0);
        world.pass(30_000);
        assert!(world.stolen() > 0);
        let lags = world.lags_ms(12_000);
        assert!(lags.len() == 48 && lags.iter().all(|lag| *lag < 500), "{lags:?}");
    });
}

#[test]
fn the_firings_of_an_owner_that_is_gone_are_taken_before_it_is_expired() {
    each_seed(100, |seed| {
        let mut world = World::calm(seed, "@every 60s");
        world.pass(56_900);
        assert!(world.freeze_the_busiest(60_000) > 0);
        world.pass(3_400);
        let lags = world.lags_ms(60_000);
        assert!(lags.len() == 8 && lags.iter().all(|lag| *lag < 300), "{lags:?}");
        assert!(world.stolen() > 0 && world.unexpired() == 3);
    });
}

#[test]
fn a_store_that_goes_back_in_time_starts_nothing_twice() {
    let [steps, restored, unnoticed] = [(); 3].map(|()| AtomicU64::new(0));
    each_seed(2_000, |seed| {
        let done = World::with_pasts(seed).run();
        steps.fetch_add(done.steps, Relaxed);
        restored.fetch_add(done.restored(), Relaxed);
        unnoticed.fetch_add(u64::from(done.unnoticed()), Relaxed);
    });
    let [steps, restored, unnoticed] = [steps, restored, unnoticed].map(AtomicU64::into_inner);
    assert!(restored > 0 || from_env("SIM_SEED").is_some(), "the store went back now and then");
    println!("{steps} steps, {restored} restores; in {unnoticed} worlds it was noticed too late");
}
