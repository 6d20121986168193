//! A member that is behind the others answers from the past: no alarm may follow from that.

use carillon_domain::node::call::BeatAnswer;
use carillon_store::{ManualClock, Me};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::BEGIN;
use carillon_tests::databases::Galera;
use mysql_async::prelude::Queryable;

use super::{galera, open, options};

/// A store at the first member of a cluster of its own, which names the second one too.
async fn bench_on(galera: &Galera) -> StoreFixture {
    let database = galera.database().await;
    let clock = ManualClock::at(BEGIN);
    let store = open(&galera.url(&database, &[0, 1]), options(&clock)).await;
    StoreFixture::new(store, clock).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_goes_to_a_member_that_is_behind_waits_for_it() {
    galera();
    let galera = Galera::start();
    let bench = bench_on(&galera).await;
    let me = |acked| Me { session: bench.me, acked };
    assert!(matches!(bench.store.heartbeat(me(0), 1, false).await, Ok(BeatAnswer::Alive { .. })));
    // The second member applies nothing from here on, and so misses the next heartbeat.
    let mut held = galera.members()[1].root().await;
    held.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
    assert!(matches!(bench.store.heartbeat(me(1), 2, false).await, Ok(BeatAnswer::Alive { .. })));
    galera.members()[0].kill();
    // It is not known whether an answer can be had; none may tell of lost commits.
    let mut unanswered = 0;
    bench
        .outlives_a_failover(2, async |tries| {
            unanswered = tries;
            if tries == 2 {
                held.query_drop("UNLOCK TABLES").await.unwrap();
            }
            assert!(tries < 60, "the second member does not take over");
        })
        .await;
    assert!(unanswered >= 2, "it was held back");
    assert_eq!(bench.store.recorded_losses().await.unwrap(), []);
}
