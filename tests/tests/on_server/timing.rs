//! The session timings of nodes fit each other, and a node says where its own comes from.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::lease::{Engine, Terms, Timing, TimingSource};
use carillon_store::mysql::{MySqlStore, Options, inspect};
use carillon_store::{ControlStore, NewSession, NodeStore, StoreError};
use carillon_tests::conformance::fixture::PARTITIONS;
use carillon_tests::databases::Database;
use mysql_async::prelude::Queryable;

use super::{refusal, server};

/// By the clock of the database: a heartbeat that is old says nothing.
fn timed(timing: Option<Timing>) -> Options {
    Options { partitions: PARTITIONS, timing, ..Options::default() }
}

fn brisk() -> Timing {
    let secs = Duration::from_secs;
    Timing {
        self_kill_after: secs(5),
        heartbeat: secs(1),
        heartbeat_timeout: secs(1),
        expire_after: secs(15),
        ..Timing::default()
    }
}

async fn open(database: &Database, timing: Option<Timing>) -> Arc<MySqlStore> {
    Arc::new(MySqlStore::open(&database.url(), timed(timing)).await.unwrap())
}

async fn register(store: &MySqlStore, number: u64) -> Result<(), StoreError> {
    let (node, address, version) = (format!("n{number}"), "a".to_owned(), "v".to_owned());
    store.open_session(&NewSession { id: SessionId::from_random(number), node, address, version }).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_timing_does_not_fit_that_of_the_others_is_refused() {
    let database = server().database().await;
    let first = open(&database, None).await;
    let report = first.timing().unwrap();
    assert_eq!(report.chosen.source, TimingSource::DefaultOf(Engine::OneServer));
    assert_eq!((report.chosen.timing, report.misfits), (Timing::default(), vec![]));
    // Opened before any session tells its terms.
    let (brisk_store, same) = (open(&database, Some(brisk())).await, open(&database, Some(Timing::default())).await);
    register(&first, 1).await.unwrap();
    assert_eq!(first.sessions().await.unwrap()[0].terms, Some(Terms::from(Timing::default())));
    let said = refusal(&database.url(), timed(Some(brisk()))).await;
    assert!(said.contains("node n1 has ended all its children after 19 s"), "{said}");
    let Err(StoreError::Permanent(said)) = register(&brisk_store, 2).await else { panic!("the terms do not fit") };
    assert!(said.contains("Give the same [session] to each node"), "{said}");
    register(&same, 3).await.unwrap();
    register(&same, 3).await.unwrap();
    assert_eq!(first.sessions().await.unwrap().len(), 2, "the refused one is not registered");
    let looked = inspect(&database.url(), &timed(Some(brisk()))).await.unwrap();
    assert!(looked.timing.unwrap_err().contains("node n1"));
    let looked = inspect(&database.url(), &timed(None)).await.unwrap();
    assert_eq!(looked.timing.unwrap().chosen.source, TimingSource::DefaultOf(Engine::OneServer));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_died_or_tell_nothing_keep_nobody_from_starting() {
    let database = server().database().await;
    register(&*open(&database, None).await, 1).await.unwrap();
    let mut conn = database.connect().await;
    // Silent for more than twice as long as others wait for it, and at least for a minute.
    conn.query_drop("UPDATE session SET heartbeat_at = heartbeat_at - 59000").await.unwrap();
    assert!(refusal(&database.url(), timed(Some(brisk()))).await.contains("node n1"));
    conn.query_drop("UPDATE session SET heartbeat_at = heartbeat_at - 2000").await.unwrap();
    register(&*open(&database, Some(brisk())).await, 2).await.unwrap();
    // An older binary tells nothing, and its configuration is taken to be that of this node.
    conn.query_drop("UPDATE session SET dead_after_ms = NULL, expire_after_ms = NULL").await.unwrap();
    register(&*open(&database, Some(Timing::default())).await, 3).await.unwrap();
}
