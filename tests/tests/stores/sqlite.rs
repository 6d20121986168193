//! The SQLite store passes the conformance suite, and never differs from the memory store.

use std::sync::Arc;

use carillon_store::ManualClock;
use carillon_store::sqlite::{OpenOptions, SqliteStore};
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS};
use carillon_tests::conformance::random_walk::beside_memory;
use carillon_tests::conformance::{Backups, StoreFixture};

/// A store in a file of its own.
pub async fn bench() -> StoreFixture {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(BEGIN);
    let options = OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() };
    let path = directory.path().join("carillon.db");
    let store = SqliteStore::open(&path, Arc::new(clock.clone()), options).unwrap();
    let mut bench = StoreFixture::new(Arc::new(store), clock).await;
    bench.backups = Some(Backups::Sqlite(path));
    bench.keep = Some(Box::new(directory));
    bench
}

carillon_tests::store_conformance!(bench);

#[tokio::test]
async fn both_stores_take_the_same_walk_and_no_due_time_is_lost() {
    beside_memory(1..40, true, bench).await;
}

#[tokio::test]
async fn both_stores_take_the_same_walk_while_definitions_change() {
    beside_memory(1000..1030, false, bench).await;
}
