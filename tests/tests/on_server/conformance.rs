//! The conformance suite, and walks on which the store never differs from the memory store.

use std::sync::LazyLock;

use carillon_store::ManualClock;
use carillon_tests::conformance::fixture::BEGIN;
use carillon_tests::conformance::random_walk::beside_memory;
use carillon_tests::conformance::{Backups, StoreFixture};
use carillon_tests::databases::{Database, Recorder, Reused};

use super::{open, options, server};

/// The way of every statement of the suite.
pub(super) static RECORDER: LazyLock<Recorder> = LazyLock::new(|| Recorder::to(server().port()));

static DATABASES: Reused = Reused::of(server);

/// As walks need it: a database whose rows are numbered from 1.
async fn bench() -> StoreFixture {
    let (mut bench, database) = super::bench().await;
    bench.backups = Some(Backups::MySql(database.url()));
    bench
}

async fn recorded() -> StoreFixture {
    let clock = ManualClock::at(BEGIN);
    // The tables are made on that way too.
    let open = async |database: &Database| open(&database.url_through(RECORDER.port()), options(&clock)).await;
    let lent = DATABASES.database(async |database: &Database| drop(open(database).await)).await;
    let store = open(lent.database()).await;
    let mut bench = StoreFixture::new(store, clock.clone()).await;
    bench.backups = Some(Backups::MySql(lent.database().url()));
    bench.keep = Some(Box::new(lent));
    bench
}

carillon_tests::store_conformance!(once recorded);

#[tokio::test]
async fn both_stores_take_the_same_walk_and_no_due_time_is_lost() {
    beside_memory(1..9, true, bench).await;
}

#[tokio::test]
async fn both_stores_take_the_same_walk_while_definitions_change() {
    beside_memory(1000..1006, false, bench).await;
}
