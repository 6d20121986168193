//! The duties of the MySQL store on a real server, whichever it is: `crate::BRAND` names the one of the test program.

mod alert_plans;
mod clocks;
mod conformance;
mod copy;
mod feed;
mod idle;
mod known;
mod locking;
mod lone;
mod opening;
mod outages;
mod plans;
mod races;
mod read_by_tidb;
mod report_plans;
mod sizes;
mod switch_over;
mod timing;
mod tls;
mod versions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_store::ManualClock;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS};
use carillon_tests::databases::{Database, Server};

/// The server that the tests of this program share.
fn server() -> &'static Server {
    Server::shared(crate::BRAND)
}

/// Words that only a packet with rows to be written contains: a batch whose first column is the row's number.
const ROWS: &str = "[[";

fn options(clock: &ManualClock) -> Options {
    Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() }
}

async fn open(url: &str, options: Options) -> Arc<MySqlStore> {
    Arc::new(MySqlStore::open(url, options).await.unwrap())
}

/// A store on the shared server with one live session.
async fn bench_on(database: &Database) -> StoreFixture {
    let clock = ManualClock::at(BEGIN);
    let store = open(&database.url(), options(&clock)).await;
    StoreFixture::new(store, clock).await
}

async fn bench() -> (StoreFixture, Database) {
    let database = server().database().await;
    (bench_on(&database).await, database)
}

async fn refusal(url: &str, options: Options) -> String {
    MySqlStore::open(url, options).await.map(|_| ()).unwrap_err().to_string()
}

async fn wait_until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !reached().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited for nothing: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
