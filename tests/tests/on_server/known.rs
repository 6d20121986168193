//! Rows that a store knows because it wrote them, while others write to them as well.

use std::sync::Arc;

use carillon_domain::node::port::{Claimed, FinishAnswer, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::{Finished, Me, NodeStore, Store, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{at, ending, job, key, refs};
use carillon_tests::databases::proxy::{COMMIT, LONE_START, Proxy, Trap};

use super::{bench, open, options, server, wait_until};

async fn start(store: &dyn Store, bench: &StoreFixture, at: RunRef) -> StartAnswer {
    store.start(Me::new(bench.me), &[at]).await.unwrap().remove(0)
}

fn ended(bench: &StoreFixture, at: RunRef) -> Finished {
    Finished { at, ending: ending(Status::Succeeded, bench.clock_in(0)), next: None, output: Default::default() }
}

/// A store that has claimed a job of its own making, and another one on the same database.
async fn two_stores() -> (StoreFixture, Arc<dyn Store>, Claimed) {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    let other: Arc<dyn Store> = open(&database.url(), options(&bench.clock)).await;
    (bench, other, claimed)
}

#[tokio::test]
async fn a_row_that_another_store_took_back_does_not_start() {
    let (bench, other, claimed) = two_stores().await;
    other.pause(&key("a"), None, None, &author()).await.unwrap();
    bench.go_to(10);
    assert_eq!(start(&*bench.store, &bench, claimed.at).await, StartAnswer::Gone);
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_row_that_is_early_is_looked_at() {
    let (bench, other, claimed) = two_stores().await;
    assert!(matches!(start(&*bench.store, &bench, claimed.at).await, StartAnswer::Early { .. }));
    let again = bench.store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = again else { panic!("{again:?}") };
    other.pause(&key("a"), None, None, &author()).await.unwrap();
    assert_eq!(start(&*bench.store, &bench, settled.at).await, StartAnswer::Gone);
}

#[tokio::test]
async fn a_row_that_another_store_settled_has_moved() {
    let (bench, other, claimed) = two_stores().await;
    bench.go_to(10);
    let seen = other.settle(bench.me, &[claimed.at]).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = seen else { panic!("{seen:?}") };
    assert_eq!(start(&*bench.store, &bench, claimed.at).await, StartAnswer::Moved);
    let started = start(&*bench.store, &bench, settled.at).await;
    let StartAnswer::Started { at: running, .. } = started else { panic!("{started:?}") };
    // Cancelled in between: the row has another version, and the record says so.
    other.cancel(running.run, &author()).await.unwrap();
    let request = Finished {
        at: running,
        ending: ending(Status::Failed, bench.clock_in(0)),
        next: None,
        output: Default::default(),
    };
    let answers = bench.store.finish(Me::new(bench.me), &[request], &[]).await.unwrap();
    assert!(matches!(answers[..], [FinishAnswer::Recorded { .. }]), "{answers:?}");
    let records = bench.records("a").await;
    assert_eq!((records.len(), records[0].status), (1, Status::Cancelled));
}

#[tokio::test]
async fn a_run_that_another_store_recorded_is_recorded_once() {
    let (bench, other, claimed) = two_stores().await;
    bench.go_to(10);
    let running = bench.started(&claimed).await;
    let ended = ended(&bench, running);
    other.finish(Me::new(bench.me), std::slice::from_ref(&ended), &[]).await.unwrap();
    assert_eq!(bench.store.finish(Me::new(bench.me), &[ended], &[]).await.unwrap(), [FinishAnswer::AlreadyGone]);
    assert_eq!(bench.records("a").await.len(), 1);
}

#[tokio::test]
async fn two_stores_that_take_turns_lose_nothing() {
    let (bench, database) = bench().await;
    let other: Arc<dyn Store> = open(&database.url(), options(&bench.clock)).await;
    for n in 0..20 {
        bench.create(job(&format!("j{n}"))).await;
    }
    let rounds = 8;
    for round in 0..rounds {
        // Each of the three transitions by either store, in all orders.
        let by = |bit: usize| if round >> bit & 1 == 0 { &bench.store } else { &other };
        let claimed = by(0).claim(&bench.claim_request(bench.me, bench.clock_in(30), 20)).await.unwrap();
        bench.clock.set(claimed.iter().map(|claimed| claimed.held.firing.start_at).max().unwrap());
        let answers = by(1).start(Me::new(bench.me), &refs(&claimed)).await.unwrap();
        let running = answers.iter().map(|answer| match answer {
            StartAnswer::Started { at, .. } => ended(&bench, *at),
            other => panic!("{other:?}"),
        });
        let answers = by(2).finish(Me::new(bench.me), &running.collect::<Vec<_>>(), &[]).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, FinishAnswer::Recorded { .. })), "{answers:?}");
    }
    for n in 0..20 {
        assert_eq!(bench.records(&format!("j{n}")).await.len(), rounds, "of j{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_acknowledged_is_not_known() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let wire = Proxy::to(server().port());
    let store = open(&database.url_through(wire.port()), options(&bench.clock)).await;
    let claimed = store.claim(&bench.claim_request(bench.me, at(30), 5)).await.unwrap().remove(0);
    bench.go_to(10);
    // Not applied: it starts when it is asked again.
    wire.set(Trap::CutBefore, LONE_START);
    let lost = store.start(Me::new(bench.me), &[claimed.at]).await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    let seen = store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = seen else { panic!("{seen:?}") };
    // Applied, and the answer is lost.
    wire.set(Trap::CutAfter, COMMIT);
    let lost = store.start(Me::new(bench.me), &[settled.at]).await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    wait_until("the start is committed", async || bench.store.list_held(bench.me).await.unwrap() != [settled.at]).await;
    assert_eq!(start(&*store, &bench, settled.at).await, StartAnswer::Gone, "it runs already");
    let seen = store.settle(bench.me, &[settled.at]).await.unwrap().remove(0);
    let SettleAnswer::Executing { at: running, .. } = seen else { panic!("{seen:?}") };
    let answers = store.finish(Me::new(bench.me), &[ended(&bench, running)], &[]).await.unwrap();
    assert!(matches!(answers[..], [FinishAnswer::Recorded { .. }]), "{answers:?}");
    assert_eq!((bench.records("a").await.len(), wire.sprung()), (1, 2));
}
