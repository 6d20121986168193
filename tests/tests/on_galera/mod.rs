//! One cluster for all tests, started by the first of them; why there is none is told once.

mod causality;
mod conformance;
mod failover;
mod nodes;

use std::sync::{Arc, OnceLock};

use carillon_store::ManualClock;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_tests::conformance::fixture::PARTITIONS;
use carillon_tests::databases::Galera;

/// The cluster that the tests share. Where there is none, the whole program ends, and nothing of it is tested.
fn galera() -> &'static Galera {
    static SHARED: OnceLock<Galera> = OnceLock::new();
    SHARED.get_or_init(|| {
        if let Some(why) = Galera::missing() {
            carillon_tests::skipped::tell(&format!("the tests of a Galera cluster: {why}"));
            std::process::exit(0);
        }
        Galera::start()
    })
}

fn options(clock: &ManualClock) -> Options {
    Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() }
}

async fn open(url: &str, options: Options) -> Arc<MySqlStore> {
    Arc::new(MySqlStore::open(url, options).await.unwrap())
}
