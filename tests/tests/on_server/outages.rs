//! The store on a broken connection, and with a server that is away or silent.

use std::time::{Duration, Instant};

use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::SettleAnswer;
use carillon_domain::run::Status;
use carillon_store::Me;
use carillon_store::mysql::Options;
use carillon_store::{Finished, ManualClock, NodeStore, Output, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, at, ending, job};
use carillon_tests::databases::Server;
use carillon_tests::databases::proxy::{COMMIT, Proxy, Trap};

use super::{ROWS, bench, bench_on, open, options, server, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_at_the_commit_leaves_it_unknown() {
    let database = server().database().await;
    let clock = ManualClock::at(BEGIN);
    let wire = Proxy::to(server().port());
    let store = open(&database.url_through(wire.port()), options(&clock)).await;
    let bench = StoreFixture::new(store, clock).await;
    bench.create(job("a")).await;

    wire.set(Trap::CutBefore, COMMIT);
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    assert!(matches!(claim, Err(StoreError::Unknown(_))), "{claim:?}");
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());

    wire.set(Trap::CutAfter, COMMIT);
    let request = bench.claim_request(bench.me, at(30), 5);
    let claim = bench.store.claim(&request).await;
    assert!(matches!(claim, Err(StoreError::Unknown(_))), "{claim:?}");
    wait_until("the claim is committed", async || !bench.store.list_held(bench.me).await.unwrap().is_empty()).await;
    let held = bench.store.list_held(bench.me).await.unwrap();
    assert!(request.runs.contains(&held[0].run));
    let seen = bench.store.settle(bench.me, &held).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = seen else { panic!("{seen:?}") };
    bench.go_to(10);

    let running = bench.started(&settled).await;
    let finished = Finished {
        at: running,
        ending: ending(Status::Succeeded, at(11)),
        next: None,
        output: Output { bytes: b"done".to_vec(), truncated: false }.into(),
    };
    // Before the COMMIT was sent nothing can have been applied.
    wire.set(Trap::CutBefore, ROWS);
    let finish = bench.store.finish(Me::new(bench.me), std::slice::from_ref(&finished), &[]).await;
    assert!(matches!(finish, Err(StoreError::Retryable(_))), "{finish:?}");

    wire.set(Trap::CutAfter, COMMIT);
    let finish = bench.store.finish(Me::new(bench.me), std::slice::from_ref(&finished), &[]).await;
    assert!(matches!(finish, Err(StoreError::Unknown(_))), "{finish:?}");
    wait_until("the finish is committed", async || !bench.records("a").await.is_empty()).await;
    bench.store.finish(Me::new(bench.me), &[finished], &[]).await.unwrap();
    assert_eq!(bench.records("a").await.len(), 1);
    assert_eq!(wire.sprung(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_says_nothing_is_thrown_out() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let wire = Proxy::to(server().port());
    let silent = Options { holder_timeout: Some(Duration::from_secs(1)), ..options(&bench.clock) };
    let frozen = open(&database.url_through(wire.port()), silent).await;
    wire.set(Trap::Hold, COMMIT);
    let request = bench.claim_request(bench.me, at(30), 5);
    let claiming = tokio::spawn(async move { frozen.claim(&request).await });
    tokio::task::block_in_place(|| wire.wait_until_sprung());
    let begun = Instant::now();
    assert_eq!(bench.claim().await.len(), 1, "the locks and the row are free again");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    wire.release();
    let late = claiming.await.unwrap();
    assert!(matches!(late, Err(StoreError::Unknown(_))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again() {
    let server = Server::start(crate::BRAND, &[]);
    let database = server.database().await;
    let bench = bench_on(&database).await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap();

    tokio::task::block_in_place(|| server.kill());
    let away = bench.store.start(Me::new(bench.me), &[claimed.at]).await;
    assert!(matches!(away, Err(StoreError::Retryable(_))), "{away:?}");
    assert!(bench.store.heartbeat(Me::new(bench.me), 2, false).await.is_err());
    tokio::task::block_in_place(|| server.start_again());
    assert!(matches!(bench.store.heartbeat(Me::new(bench.me), 2, false).await.unwrap(), BeatAnswer::Alive { .. }));
    assert_eq!(bench.store.list_held(bench.me).await.unwrap(), [claimed.at]);

    // Restarted while nobody looked: the first call finds its connection dead and takes another.
    tokio::task::block_in_place(|| (server.kill(), server.start_again()));
    bench.go_to(10);
    bench.started(&claimed).await;

    let hasty = Options { statement_timeout: Duration::from_secs(1), ..options(&bench.clock) };
    let hasty = open(&database.url(), hasty).await;
    hasty.heartbeat(Me::new(bench.me), 3, false).await.unwrap();
    server.freeze();
    let begun = Instant::now();
    assert!(hasty.heartbeat(Me::new(bench.me), 4, false).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.thaw();
    assert!(matches!(hasty.heartbeat(Me::new(bench.me), 5, false).await.unwrap(), BeatAnswer::Alive { .. }));
}
