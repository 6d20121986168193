//! How fast the MySQL store is on this machine with a durable MySQL: `cargo bench -p carillon-tests --bench mysql`.

mod rates;

use std::sync::Arc;

use carillon_adapters::store::ManualClock;
use carillon_adapters::store::mysql::{MySqlStore, Options};
use carillon_tests::conformance::bench::BEGIN;
use carillon_tests::databases::{Brand, Server};
use rates::PARTITIONS;

#[tokio::main]
async fn main() {
    let server = Server::shared(Brand::MySql);
    let database = server.database().await;
    let clock = ManualClock::at(BEGIN);
    let options = Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() };
    let store = MySqlStore::open(&database.url(), options).await.expect("a store");
    rates::print(Arc::new(store), clock, Some(server)).await;
}
