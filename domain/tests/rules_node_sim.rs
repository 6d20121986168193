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

#[test]
fn nodes_keep_every_invariant_under_faults_and_come_to_rest_after_them() {
    let seeds = match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(2_000),
    };
    let mut steps = 0;
    for seed in seeds {
        let run = std::panic::catch_unwind(|| world::World::new(seed).run());
        match run {
            Ok(done) => steps += done,
            Err(_) => panic!("seed {seed} failed: SIM_SEED={seed} replays it"),
        }
    }
    assert!(steps > 0);
    println!("{steps} steps");
}
