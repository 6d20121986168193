//! The conformance suite, and walks on which the store never differs from the memory store.

use carillon_tests::conformance::random_walk::beside_memory;
use carillon_tests::conformance::{Backups, StoreFixture};

async fn bench() -> StoreFixture {
    let (mut bench, database) = super::bench().await;
    bench.backups = Some(Backups::MySql(database.url()));
    bench
}

carillon_tests::store_conformance!(bench);

#[tokio::test]
async fn both_stores_take_the_same_walk_and_no_due_time_is_lost() {
    beside_memory(1..9, true, bench).await;
}

#[tokio::test]
async fn both_stores_take_the_same_walk_while_definitions_change() {
    beside_memory(1000..1006, false, bench).await;
}
