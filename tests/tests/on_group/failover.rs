//! A group of three whose primary dies. It takes the memory of three servers, so it runs only where it is asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_domain::node::call::BeatAnswer;
use carillon_store::mysql::MySqlStore;
use carillon_store::{ControlStore, ManualClock, Me};
use carillon_tests::cluster::nodes_outlive;
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, job};
use carillon_tests::databases::Group;

use super::{GRANT, as_root, options};

fn is_asked_for() -> bool {
    carillon_tests::skipped::can_be_tested("a failover of Group Replication", Group::not_asked_for())
}

#[test]
fn nodes_outlive_the_primary_that_they_write_through() {
    if !is_asked_for() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (group, database) = runtime.block_on(async {
        // As servers come: the slowest failover.
        let group = Group::start_expelling_after(3, 5).await;
        let database = group.database().await;
        as_root(&database, &[GRANT]).await;
        (group, database)
    });
    nodes_outlive(&group.members()[0], &group.url(&database, &[1, 0, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_to_the_new_primary_and_has_lost_nothing() {
    if !is_asked_for() {
        return;
    }
    let group = Group::start(3).await;
    let database = group.database().await;
    as_root(&database, &[GRANT]).await;
    let clock = ManualClock::at(BEGIN);
    // The primary is named second: a secondary is asked first, and passed over.
    let url = group.url(&database, &[1, 0, 2]);
    let store = Arc::new(MySqlStore::open(&url, options(&clock)).await.unwrap());
    let first = store.server().unwrap();
    assert_eq!(first.topology, "a group of Group Replication of 3");
    assert!(first.place.ends_with(&group.members()[0].port().to_string()), "{first:?}");
    assert!(first.why.contains("super_read_only is on"), "{first:?}");

    let bench = StoreFixture::new(store.clone(), clock.clone()).await;
    bench.create(job("a")).await;
    let me = |acked| Me { session: bench.me, acked };
    assert!(matches!(bench.store.heartbeat(me(0), 1, false).await, Ok(BeatAnswer::Alive { .. })));
    group.members()[0].kill();
    let killed = Instant::now();
    let patience = Duration::from_secs(120);
    bench.outlives_a_failover(1, async |_| assert!(killed.elapsed() < patience, "no member takes over")).await;
    println!("a new primary answered after {:?}", killed.elapsed());
    let now = store.server().unwrap();
    assert_eq!(now.changes, 1, "{now:?}");
    assert!(now.identity != first.identity && now.place != first.place, "{now:?}");
    assert_eq!(bench.store.recorded_losses().await.unwrap(), []);
    assert_eq!(bench.store.sessions().await.unwrap()[0].server, Some(now.identity));
    assert_eq!(bench.claim().await.len(), 1, "what was created before is there, and can be claimed");
}
