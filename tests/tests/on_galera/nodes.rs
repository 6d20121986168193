//! Stores and nodes that start together, and nodes that agree on one member.

use carillon_domain::id::SessionId;
use carillon_store::mysql::{MySqlStore, Options, Topology};
use carillon_store::{ControlStore, ManualClock, NewSession, NodeStore};
use carillon_tests::cluster::{Cluster, PATIENT};
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS};
use mysql_async::prelude::Queryable;
use serde_json::Value;

use super::{galera, open, options};

/// The orders in which the members are named: each node begins at another one.
const ORDERS: [[usize; 3]; 3] = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_start_together_at_all_members_make_one_database() {
    let galera = galera();
    for round in 0..3 {
        let database = galera.database().await;
        let clock = ManualClock::at(BEGIN);
        let starting: Vec<_> = (0..6_u16)
            .map(|n| {
                let url = galera.url(&database, &ORDERS[usize::from(n) % 3]);
                let topology = Topology::GaleraMultiWriter;
                let options = Options { partitions: PARTITIONS + n, topology, ..options(&clock) };
                tokio::spawn(async move { MySqlStore::open(&url, options).await.map(|_| ()) })
            })
            .collect();
        for start in starting {
            start.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        let mut conn = database.connect().await;
        let partitions: u16 =
            conn.query_first("SELECT value + 0 FROM meta WHERE name = 'partitions'").await.unwrap().unwrap();
        let locks: u16 = conn.query_first("SELECT COUNT(*) FROM lock_row").await.unwrap().unwrap();
        assert_eq!(locks, partitions + 1, "whoever came first made all of it");
    }
}

#[test]
fn five_nodes_that_start_together_come_up_and_agree_on_one_member() {
    let galera = galera();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(galera.database());
    let cluster = Cluster::new(&galera.url(&database, &[1, 0, 2]), PATIENT);
    let nodes: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> =
            ["a", "b", "c", "d", "e"].map(|name| (name, scope.spawn(|| cluster.node(name)))).into_iter().collect();
        starting.into_iter().map(|(name, node)| node.join().unwrap_or_else(|_| panic!("node {name}"))).collect()
    });
    let told = nodes[0].get("/v1/cluster");
    let servers: Vec<&Value> = told["items"].as_array().expect("nodes").iter().map(|node| &node["server"]).collect();
    let second = galera.members()[1].port().to_string();
    assert_eq!(servers.len(), 5, "{told}");
    assert!(servers.iter().all(|server| server.as_str().is_some_and(|server| server.ends_with(&second))), "{told}");
    assert_eq!(told["database"]["topology"], "a Galera cluster of 3", "{told}");
    assert_eq!(told["database"]["trouble"], Value::Null, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_goes_where_the_others_write() {
    let galera = galera();
    let database = galera.database().await;
    // The time of the database: a heartbeat that is old says nothing.
    let first =
        open(&galera.url(&database, &[2, 0]), Options { clock: None, ..options(&ManualClock::at(BEGIN)) }).await;
    let new = NewSession { id: SessionId::from_random(1), node: "a".into(), address: "a".into(), version: "v".into() };
    first.open_session(&new).await.unwrap();
    let identity = |store: &MySqlStore| store.server().unwrap().identity;
    let plain = || Options { clock: None, ..options(&ManualClock::at(BEGIN)) };
    let second = open(&galera.url(&database, &[0, 1, 2]), plain()).await;
    assert_eq!(identity(&second), identity(&first));
    assert!(second.server().unwrap().why.contains("the other nodes"), "{:?}", second.server());
    // One that cannot reach their member refuses; one that may use any does not.
    let said = MySqlStore::open(&galera.url(&database, &[0, 1]), plain()).await.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("other nodes write through") && said.contains(&identity(&first)), "{said}");
    let any = Options { topology: Topology::GaleraMultiWriter, ..plain() };
    assert_ne!(identity(&*open(&galera.url(&database, &[0, 1]), any).await), identity(&first));
    let one = Options { topology: Topology::OneServer, ..plain() };
    let said = MySqlStore::open(&galera.url(&database, &[2]), one).await.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("it is a Galera cluster, and store.topology = \"one-server\""), "{said}");
}
