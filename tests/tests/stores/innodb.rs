//! The memory store made to behave as InnoDB does passes the conformance suite and takes the same walks as the plain one.

use std::sync::Arc;

use carillon_doubles::innodb::{Calm, InnoDb, Limits};
use carillon_doubles::memory_store;
use carillon_store::ManualClock;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS};
use carillon_tests::conformance::random_walk::Walk;
use carillon_tests::conformance::{Backups, StoreFixture};

async fn bench() -> StoreFixture {
    let clock = ManualClock::at(BEGIN);
    let database = InnoDb::new(Arc::new(clock.clone()), PARTITIONS, Limits::default(), Calm);
    let store = database.client_on(1, Some(Arc::new(clock.clone())));
    let mut bench = StoreFixture::new(Arc::new(store), clock).await;
    bench.backups = Some(Backups::innodb(&database));
    bench
}

carillon_tests::store_conformance!(bench);

#[tokio::test]
async fn it_takes_the_same_walk_as_the_plain_store() {
    for seed in 0..8 {
        let clock = ManualClock::at(BEGIN);
        let memory = memory_store(Arc::new(clock.clone()), PARTITIONS);
        let left = StoreFixture::new(Arc::new(memory), clock).await;
        Walk::new(&left, &bench().await, seed, seed % 2 == 0).take(400).await;
    }
}
