//! The conformance suite, all stores through the first member.

use carillon_store::ManualClock;
use carillon_tests::conformance::fixture::BEGIN;
use carillon_tests::conformance::{Backups, StoreFixture};

use super::{galera, open, options};

async fn bench() -> StoreFixture {
    let database = galera().database().await;
    let clock = ManualClock::at(BEGIN);
    let store = open(&galera().url(&database, &[0, 1, 2]), options(&clock)).await;
    let mut bench = StoreFixture::new(store, clock).await;
    bench.backups = Some(Backups::MySql(database.url()));
    bench
}

carillon_tests::store_conformance!(bench);
