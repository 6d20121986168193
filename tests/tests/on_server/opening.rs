//! Which databases are made, taken and refused.

use carillon_adapters::store::mysql::{MySqlStore, OpenError, Options};
use carillon_adapters::store::{ManualClock, StoreError};
use carillon_domain::partition::partition_of;
use carillon_tests::conformance::bench::{BEGIN, PARTITIONS, at, job};
use carillon_tests::databases::Server;
use mysql_async::prelude::Queryable;

use super::{bench, bench_on, options, refusal, server};

#[tokio::test]
async fn ten_at_once_make_one_database() {
    let database = server().database().await;
    let clock = ManualClock::at(BEGIN);
    let starting: Vec<_> = (0..10)
        .map(|n| {
            let (url, options) = (database.url(), Options { partitions: PARTITIONS + n, ..options(&clock) });
            tokio::spawn(async move { MySqlStore::open(&url, options).await.map(|_| ()) })
        })
        .collect();
    for start in starting {
        start.await.unwrap().unwrap();
    }
    let mut conn = database.connect().await;
    let partitions: u16 = conn.query_first("SELECT value + 0 FROM meta").await.unwrap().unwrap();
    let locks: u16 = conn.query_first("SELECT COUNT(*) FROM lock_row").await.unwrap().unwrap();
    assert_eq!(locks, partitions + 1, "whoever came first made all of it");
}

#[tokio::test]
async fn a_missing_lock_row_is_named() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let own = partition_of("default", "a", PARTITIONS);
    database.run(&[&format!("DELETE FROM lock_row WHERE name = 'partition {own}'")]).await;
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    let Err(StoreError::Permanent(said)) = claim else { panic!("{claim:?}") };
    assert!(said.contains(&format!("partition {own}")), "{said}");
    let said = refusal(&database.url(), options(&bench.clock)).await;
    assert!(said.contains(&format!("partition {own}")) && said.contains("lock_row"), "{said}");
    database.run(&[&format!("INSERT INTO lock_row VALUES ({}, 'partition {own}', 7)", own + 1)]).await;
    assert_eq!(bench.claim().await.len(), 1);
    database.run(&["DELETE FROM lock_row WHERE id = 0"]).await;
    let expired = bench.store.expire(bench.me, 0).await;
    assert!(matches!(&expired, Err(StoreError::Permanent(said)) if said.contains("the sessions")), "{expired:?}");
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

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (bench, database) = bench().await;
    database.run(&["INSERT INTO refinery_schema_history VALUES (99, 'from_the_future', 'x', '1')"]).await;
    let newer = MySqlStore::open(&database.url(), options(&bench.clock)).await.map(|_| ()).unwrap_err();
    assert!(matches!(newer, OpenError::Newer { found: 99, .. }), "{newer}");
}
