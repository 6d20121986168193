//! A group of one member: how it is recognised, which rights it takes, and which of its states are refused.

use std::sync::Arc;

use carillon_domain::node::call::BeatAnswer;
use carillon_store::mysql::{MySqlStore, Topology};
use carillon_store::{ControlStore, ManualClock, Me, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::BEGIN;
use carillon_tests::databases::Group;

use super::{GRANT, as_root, options, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_recognised_and_one_that_is_not_whole_is_refused() {
    let group = Group::start(1).await;
    let database = group.database().await;
    let (url, clock) = (database.url(), ManualClock::at(BEGIN));

    let said = refusal(&url, options(&clock)).await;
    assert!(said.contains("GRANT SELECT ON performance_schema.replication_group_members"), "{said}");
    as_root(&database, &[GRANT]).await;
    let other = carillon_store::mysql::Options { topology: Topology::Galera, ..options(&clock) };
    let said = refusal(&url, other).await;
    assert!(said.contains("it is a group of Group Replication, and store.topology = \"galera\""), "{said}");

    // The user has no other right outside of its database: the settings of its sessions ask for none.
    let store = Arc::new(MySqlStore::open(&url, options(&clock)).await.unwrap());
    assert_eq!(store.server().unwrap().topology, "a group of Group Replication of 1");
    let bench = StoreFixture::new(store.clone(), clock.clone()).await;
    let me = |acked| Me { session: bench.me, acked };
    assert!(matches!(bench.store.heartbeat(me(0), 1, false).await, Ok(BeatAnswer::Alive { .. })));
    assert_eq!(bench.store.sessions().await.unwrap()[0].server, Some(store.server().unwrap().identity));

    // A member that left its group is closed for writing, and opened again only by hand.
    as_root(&database, &["STOP GROUP_REPLICATION"]).await;
    let beat = bench.store.heartbeat(me(1), 2, false).await;
    assert!(matches!(beat, Err(StoreError::Retryable(_) | StoreError::Unknown(_))), "{beat:?}");
    let said = refusal(&url, options(&clock)).await;
    assert!(said.contains("super_read_only is on"), "{said}");
    as_root(&database, &["SET GLOBAL super_read_only = 0", "SET GLOBAL read_only = 0"]).await;
    let said = refusal(&url, options(&clock)).await;
    assert!(said.contains("outside its group (its member state is OFFLINE)"), "{said}");
    let beat = bench.store.heartbeat(me(1), 3, false).await.unwrap_err().to_string();
    assert!(beat.contains("outside its group"), "{beat}");

    let made = ["SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION"];
    as_root(&database, &made).await;
    as_root(&database, &["SET GLOBAL group_replication_bootstrap_group = OFF"]).await;
    let beat = bench.store.heartbeat(me(1), 4, false).await;
    assert!(matches!(beat, Ok(BeatAnswer::Alive { window: None, .. })), "{beat:?}");
    assert_eq!(bench.store.recorded_losses().await.unwrap(), []);

    as_root(&database, &["SELECT group_replication_switch_to_multi_primary_mode()"]).await;
    let said = refusal(&url, options(&clock)).await;
    assert!(said.contains("several primaries") && said.contains("switch_to_single_primary_mode"), "{said}");
}
