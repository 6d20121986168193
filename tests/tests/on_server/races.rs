//! Who gets a row when several reach for it, with real locks and statements that come late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, SettleAnswer, StartAnswer};
use carillon_doubles::author;
use carillon_store::Me;
use carillon_store::mysql::Options;
use carillon_store::{NodeStore, PutIf, PutJob, StoreError};
use carillon_tests::conformance::fixture::{at, job};
use carillon_tests::databases::Database;
use carillon_tests::databases::proxy::{Proxy, Trap};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::{ROWS, bench, open, options, server, wait_until};

/// How many connections of a database are in the middle of a guarded update: with its row held they wait for the lock.
/// (The server's own table of lock waits stands still while it is read often.)
pub(super) async fn waiting(root: &mut Conn, database: &Database) -> usize {
    let found: Vec<Row> = root.query("SHOW FULL PROCESSLIST").await.unwrap();
    let text = |row: &Row, column: &str| row.get::<Option<String>, _>(column).flatten().unwrap_or_default();
    let updates = |info: String| ["UPDATE JSON_TABLE", "UPDATE job_state"].iter().any(|begin| info.starts_with(begin));
    let waits = |row: &&Row| text(row, "db") == database.name && updates(text(row, "Info"));
    found.iter().filter(waits).count()
}

pub(super) async fn wait_for_waiters(database: &Database, count: usize) {
    let mut root = server().root().await;
    wait_until("transactions that wait", async || waiting(&mut root, database).await == count).await;
}

/// A connection that holds the lock of a job's row until it commits.
pub(super) async fn holder(database: &Database, claimed: &Claimed) -> Conn {
    let carillon_domain::node::port::RowKey::Job(id) = claimed.at.row else { panic!("not a job's row") };
    let mut conn = database.connect().await;
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop(format!("SELECT id FROM job_state WHERE id = {id} FOR UPDATE")).await.unwrap();
    conn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_sessions_that_claim_at_once_never_get_the_same_row() {
    let (bench, database) = bench().await;
    let put = |n| PutJob { job: job(&format!("j{n}")), paused: None, when: PutIf::Any, author: author() };
    let puts: Vec<_> = (0..1000).map(put).collect();
    assert!(bench.store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    let mut racing = Vec::new();
    let bench = Arc::new(bench);
    for number in [2, 3, 4, 5] {
        // Two stores, as two processes would have, and two sessions on each.
        let store = open(&database.url(), options(&bench.clock)).await;
        for session in [bench.session(number).await, bench.session(number + 10).await] {
            let (store, bench) = (store.clone(), bench.clone());
            racing.push(tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    match store.claim(&bench.claim_request(session, at(30), 20)).await {
                        Ok(claimed) if claimed.is_empty() => return mine,
                        Ok(claimed) => mine.extend(claimed),
                        Err(StoreError::Retryable(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }));
        }
    }
    let (mut all, mut count) = (BTreeSet::new(), 0);
    for racer in racing {
        let mine = racer.await.unwrap();
        count += mine.len();
        all.extend(mine.iter().map(|claimed| claimed.at.row));
    }
    assert_eq!((count, all.len()), (1000, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stray_start_lands_on_nothing_after_it_was_settled() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let wire = Proxy::to(server().port());
    let patient = Options { statement_timeout: Duration::from_secs(60), ..options(&bench.clock) };
    let delayed = open(&database.url_through(wire.port()), patient).await;
    wire.set(Trap::Hold, ROWS);
    let (me, at) = (bench.me, claimed.at);
    let stray = tokio::spawn(async move { delayed.start(Me::new(me), &[at]).await });
    tokio::task::block_in_place(|| wire.wait_until_sprung());
    let seen = bench.store.settle(me, &[claimed.at]).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = seen else { panic!("{seen:?}") };
    wire.release();
    assert_eq!(stray.await.unwrap().unwrap(), [StartAnswer::Moved]);
    assert_eq!(bench.store.list_held(me).await.unwrap(), [settled.at], "the stray start was applied");
    bench.started(&settled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_and_a_stray_that_wait_for_the_same_row_agree() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let mut holder = holder(&database, &claimed).await;
    let (me, at) = (bench.me, claimed.at);
    let other = open(&database.url(), options(&bench.clock)).await;
    let stray = tokio::spawn(async move { other.start(Me::new(me), &[at]).await });
    wait_for_waiters(&database, 1).await;
    let store = bench.store.clone();
    let settling = tokio::spawn(async move { store.settle(me, &[at]).await });
    wait_for_waiters(&database, 2).await;
    holder.query_drop("COMMIT").await.unwrap();
    let started = stray.await.unwrap().unwrap().remove(0);
    let seen = settling.await.unwrap().unwrap().remove(0);
    let held = bench.store.list_held(me).await.unwrap().remove(0);
    // Both tell the same story, whoever came into the queue first, and it is the one of the row.
    match (started, seen) {
        (StartAnswer::Started { at: running, .. }, SettleAnswer::Executing { at, withdrawn: false, .. }) => {
            assert_eq!((running.run, at.version), (held.run, held.version));
        }
        (StartAnswer::Gone, SettleAnswer::Prepared(settled)) => assert_eq!(settled.at, held),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_rolled_back_and_leaves_no_waiter_behind() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let mut holder = holder(&database, &claimed).await;
    let hasty = Options { statement_timeout: Duration::from_millis(300), ..options(&bench.clock) };
    let answer = open(&database.url(), hasty).await.start(Me::new(bench.me), &[claimed.at]).await;
    assert!(matches!(answer, Err(StoreError::Retryable(_))), "{answer:?}");
    wait_for_waiters(&database, 0).await;
    // A caller that goes away in the middle leaves none either.
    let (store, me) = (bench.store.clone(), bench.me);
    let at = claimed.at;
    let gone = tokio::spawn(async move { store.start(Me::new(me), &[at]).await });
    wait_for_waiters(&database, 1).await;
    gone.abort();
    wait_for_waiters(&database, 0).await;
    holder.query_drop("COMMIT").await.unwrap();
    assert_eq!(bench.store.list_held(me).await.unwrap(), [claimed.at]);
    bench.started(&claimed).await;
}

#[tokio::test]
async fn heartbeats_wait_for_no_lock() {
    let (bench, database) = bench().await;
    let other = bench.session(2).await;
    let mut conn = database.connect().await;
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop("UPDATE lock_row SET epoch = epoch + 1").await.unwrap();
    conn.query_drop(format!("SELECT id FROM session WHERE id = {} FOR UPDATE", other.as_u64())).await.unwrap();
    let beat = bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap();
    assert!(matches!(beat, BeatAnswer::Alive { ref peers, .. } if peers.len() == 2), "{beat:?}");
    conn.query_drop("COMMIT").await.unwrap();
}
