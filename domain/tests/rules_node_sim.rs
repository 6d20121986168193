//! Whole nodes against a tiny store, under faults, in virtual time. A seed replays: `SIM_SEED=17 cargo test -p
//! carillon-domain --test rules_node_sim`; `SIM_SEEDS=100000` runs more of them.

#[path = "rules_node_sim/dice.rs"]
mod dice;
#[path = "rules_node_sim/store.rs"]
mod store;
#[path = "rules_node_sim/world.rs"]
mod world;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> std::ops::Range<u64> {
    match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(2_000),
    }
}

#[test]
fn nodes_keep_every_invariant_under_faults_and_come_to_rest_after_them() {
    let mut steps = 0;
    for seed in seeds() {
        let run = std::panic::catch_unwind(|| world::World::new(seed).run());
        match run {
            Ok(done) => steps += done.steps,
            Err(_) => panic!("seed {seed} failed: SIM_SEED={seed} replays it"),
        }
    }
    assert!(steps > 0);
    println!("{steps} steps");
}

#[test]
fn a_store_that_goes_back_in_time_starts_nothing_twice() {
    let (mut steps, mut restored, mut unnoticed) = (0, 0, 0);
    for seed in seeds() {
        let run = std::panic::catch_unwind(|| world::World::with_pasts(seed).run());
        match run {
            Ok(done) => {
                steps += done.steps;
                restored += done.restored;
                unnoticed += u64::from(done.unnoticed);
            }
            Err(_) => panic!("seed {seed} failed: SIM_SEED={seed} replays it"),
        }
    }
    assert!(restored > 0 || seeds().count() == 1, "the store went back now and then");
    println!("{steps} steps, {restored} restores; in {unnoticed} worlds nobody was left to notice");
}
