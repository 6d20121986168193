//! Which databases are made, taken and refused.

use carillon_domain::id::SessionId;
use carillon_domain::partition::partition_of;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_store::{ManualClock, NewSession, StoreError};
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS, at, job};
use carillon_tests::databases::Server;
use mysql_async::prelude::Queryable;

use super::{bench, bench_on, options, refusal, server};

#[tokio::test]
async fn ten_at_once_make_one_database() {
    ten_at_once(true).await;
}

/// In a cluster of servers the lock of one member keeps out nobody at another.
#[tokio::test]
async fn ten_at_once_make_one_database_without_a_lock_that_keeps_the_others_out() {
    ten_at_once(false).await;
}

async fn ten_at_once(takes_schema_lock: bool) {
    let database = server().database().await;
    let clock = ManualClock::at(BEGIN);
    let starting: Vec<_> = (0..10)
        .map(|n| {
            let partitions = PARTITIONS + n;
            let (url, options) = (database.url(), Options { partitions, takes_schema_lock, ..options(&clock) });
            tokio::spawn(async move { MySqlStore::open(&url, options).await.map(|_| ()) })
        })
        .collect();
    for start in starting {
        start.await.unwrap().unwrap();
    }
    let mut conn = database.connect().await;
    let partitions: u16 =
        conn.query_first("SELECT value + 0 FROM meta WHERE name = 'partitions'").await.unwrap().unwrap();
    let locks: u16 = conn.query_first("SELECT COUNT(*) FROM lock_row").await.unwrap().unwrap();
    assert_eq!(locks, partitions + 1, "whoever came first made all of it");
}

#[tokio::test]
async fn a_missing_lock_row_is_named_by_all_who_need_it() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let (store, me) = (&bench.store, bench.me);
    let own = partition_of("default", "a", PARTITIONS);
    database.run(&[&format!("DELETE FROM lock_row WHERE name = 'partition {own}'")]).await;
    for error in [
        store.claim(&bench.claim_request(me, at(30), 5)).await.unwrap_err(),
        store.sweep(me, 5).await.unwrap_err(),
        store.close_session(me).await.unwrap_err(),
    ] {
        let StoreError::LockMissing(said) = error else { panic!("{error:?}") };
        assert!(said.contains(&format!("the lock row of partition {own} is missing from table lock_row")), "{said}");
        assert!(said.contains(&format!("VALUES ({}, 'partition {own}', 0)", own + 1)), "{said}");
    }
    let said = refusal(&database.url(), options(&bench.clock)).await;
    assert!(said.contains(&format!("partition {own}")) && said.contains("lock_row"), "{said}");
    database.run(&[&format!("INSERT INTO lock_row VALUES ({}, 'partition {own}', 7)", own + 1)]).await;
    assert_eq!(bench.claim().await.len(), 1);

    database.run(&["DELETE FROM lock_row WHERE id = 0"]).await;
    let new = NewSession { id: SessionId::from_random(7), node: "n".into(), address: "a".into(), version: "v".into() };
    for error in [
        store.open_session(&new).await.unwrap_err(),
        store.expire(None, me, 0).await.unwrap_err(),
        store.sweep(me, 5).await.unwrap_err(),
        store.close_session(me).await.unwrap_err(),
    ] {
        assert!(matches!(&error, StoreError::LockMissing(said) if said.contains("the sessions")), "{error:?}");
    }
}

#[tokio::test]
async fn servers_that_break_promises_are_refused() {
    let server = Server::start(crate::BRAND, &["--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"]);
    let (database, mut root) = (server.database().await, server.root().await);
    let clock = ManualClock::at(BEGIN);
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("binlog_format is STATEMENT") && !said.contains("secret"), "{said}");
    root.query_drop("SET GLOBAL binlog_format = ROW").await.unwrap();
    let bench = bench_on(&database).await;
    bench.create(job("a")).await;

    root.query_drop("SET GLOBAL read_only = 1").await.unwrap();
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("read_only is on"), "{said}");
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    assert!(matches!(claim, Err(StoreError::Retryable(_))), "{claim:?}");
    root.query_drop("SET GLOBAL read_only = 0").await.unwrap();
    assert_eq!(bench.claim().await.len(), 1);

    database.run(&["ALTER TABLE meta ENGINE = MyISAM"]).await;
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("meta is MyISAM"), "{said}");
    let nowhere = refusal(&database.url().replace(&database.name, "carillon_nowhere"), options(&clock)).await;
    assert!(nowhere.contains("carillon_nowhere"), "{nowhere}");
    let stranger = database.url().replace("carillon:secret", "carillon:wrong");
    let said = refusal(&stranger, options(&clock)).await;
    assert!(said.contains("Access denied") && !said.contains("wrong"), "{said}");
}
