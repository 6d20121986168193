//! How fast the SQLite store is on this machine, durable, in batches: `cargo bench -p carillon-tests --bench sqlite`.

mod rates;

use std::sync::Arc;

use carillon_adapters::store::ManualClock;
use carillon_adapters::store::sqlite::{OpenOptions, SqliteStore};
use carillon_tests::conformance::bench::BEGIN;
use rates::PARTITIONS;

#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir_in(".").expect("a directory");
    let clock = ManualClock::at(BEGIN);
    let options = OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() };
    let path = directory.path().join("carillon.db");
    let store = SqliteStore::open(&path, Arc::new(clock.clone()), options).expect("a store");
    rates::print(Arc::new(store), clock, None).await;
}
