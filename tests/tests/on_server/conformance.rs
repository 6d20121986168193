//! The conformance suite, and walks on which the store never differs from the memory store.

use std::sync::Arc;

use carillon_adapters::store::ManualClock;
use carillon_adapters::store::memory::MemoryStore;
use carillon_tests::conformance::bench::{BEGIN, PARTITIONS};
use carillon_tests::conformance::walk::Walk;
use carillon_tests::conformance::{Backups, Bench};

async fn bench() -> Bench {
    let (mut bench, database) = super::bench().await;
    bench.backups = Some(Backups::MySql(database.url()));
    bench
}

carillon_tests::store_conformance!(bench);

async fn walk(seeds: std::ops::Range<u64>, steady: bool) {
    for seed in seeds {
        let clock = ManualClock::at(BEGIN);
        let memory = MemoryStore::new(Arc::new(clock.clone()), PARTITIONS);
        let left = Bench::new(Arc::new(memory.clone()), clock).await;
        let right = bench().await;
        eprintln!("seed {seed}, steady {steady}");
        Walk::new(&left, &right, seed, steady).take(400).await;
        assert_eq!(memory.record_conflicts(), 0, "seed {seed}, steady {steady}");
    }
}

#[tokio::test]
async fn both_stores_take_the_same_walk_and_no_due_time_is_lost() {
    walk(1..9, true).await;
}

#[tokio::test]
async fn both_stores_take_the_same_walk_while_definitions_change() {
    walk(1000..1006, false).await;
}
