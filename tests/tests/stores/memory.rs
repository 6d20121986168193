//! The memory store passes the conformance suite, and its faults are what they say.

use std::sync::Arc;

use carillon_domain::alert::When;
use carillon_domain::node::port::{FinishAnswer, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::{Fault, MemoryStore, author, memory_store};
use carillon_store::{AlertStore, AuditQuery, ControlStore, ManualClock, Me, NodeStore, PutIf, PutJob, StoreError};
use carillon_tests::conformance::alerts as told;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS, job, key};
use carillon_tests::conformance::{Backups, StoreFixture};

async fn bench() -> StoreFixture {
    faulty().await.0
}

async fn faulty() -> (StoreFixture, MemoryStore) {
    let clock = ManualClock::at(BEGIN);
    let store = memory_store(Arc::new(clock.clone()), PARTITIONS);
    let mut bench = StoreFixture::new(Arc::new(store.clone()), clock).await;
    bench.backups = Some(Backups::memory(&store));
    (bench, store)
}

carillon_tests::store_conformance!(bench);

#[tokio::test]
async fn a_refused_call_changes_nothing() {
    let (bench, store) = faulty().await;
    store.faults().at("put_jobs", 1, Fault::Refused);
    let put = [PutJob { job: job("a"), paused: None, when: PutIf::Any, author: author() }];
    assert!(matches!(store.put_jobs(&put).await, Err(StoreError::Retryable(_))));
    assert!(store.job(&key("a")).await.is_err());
    bench.create(job("a")).await;
}

#[tokio::test]
async fn an_entry_of_the_audit_log_is_there_exactly_when_its_change_is() {
    for (fault, applied) in
        [(Fault::Refused, false), (Fault::NeverSent, false), (Fault::AnswerLost, true), (Fault::Stray, false)]
    {
        let (bench, store) = faulty().await;
        store.faults().at("put_jobs", 1, fault);
        let put = [PutJob { job: job("a"), paused: None, when: PutIf::Any, author: author() }];
        assert!(store.put_jobs(&put).await.is_err());
        let entries = async || bench.store.audit(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap();
        assert_eq!((bench.store.job(&key("a")).await.is_ok(), entries().await.items.len()), (applied, applied.into()));
        if store.land_stray() {
            assert_eq!((bench.store.job(&key("a")).await.is_ok(), entries().await.items.len()), (true, 1));
        }
    }
}

#[tokio::test]
async fn a_step_that_is_repeated_tells_nothing_twice() {
    for (fault, applied) in
        [(Fault::Refused, false), (Fault::NeverSent, false), (Fault::AnswerLost, true), (Fault::Stray, false)]
    {
        let (bench, store) = faulty().await;
        bench.create(job("a")).await;
        told::put(&bench, &told::route("ops", &[When::Failed])).await;
        told::run_once(&bench, Status::Failed).await;
        // The second transaction of a step is the one that writes.
        store.faults().at("alert_step", 2, fault);
        assert!(store.alert_step(100).await.is_err());
        assert_eq!(told::notices(&bench).await.len(), usize::from(applied));
        told::step(&bench).await;
        assert_eq!(told::notices(&bench).await.len(), 1);
        store.land_stray();
        told::step(&bench).await;
        assert_eq!(told::notices(&bench).await.len(), 1, "the stray step found nothing left to judge");
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_among_the_held() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    store.faults().at("claim", 1, Fault::AnswerLost);
    let request = bench.claim_request(bench.me, bench.clock_in(30), 5);
    assert!(matches!(store.claim(&request).await, Err(StoreError::Unknown(_))));
    let held = store.list_held(bench.me).await.unwrap();
    assert!(request.runs.contains(&held[0].run));
    assert!(matches!(store.settle(bench.me, &held).await.unwrap()[0], SettleAnswer::Prepared(_)));
}

#[tokio::test]
async fn a_stray_start_lands_on_nothing_after_it_was_settled() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    store.faults().at("start", 1, Fault::Stray);
    assert!(matches!(store.start(Me::new(bench.me), &[claimed.at]).await, Err(StoreError::Unknown(_))));
    let seen = store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0);
    assert!(store.land_stray() && !store.land_stray());
    let SettleAnswer::Prepared(settled) = seen else { panic!("{seen:?}") };
    assert_eq!(store.list_held(bench.me).await.unwrap(), [settled.at], "the stray start was applied");
    assert!(matches!(bench.start(&settled).await, StartAnswer::Started { .. }));
}

#[tokio::test]
async fn a_stray_start_that_lands_first_is_adopted() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    store.faults().at("start", 1, Fault::Stray);
    store.start(Me::new(bench.me), &[claimed.at]).await.unwrap_err();
    store.land_stray();
    let seen = store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0);
    assert!(matches!(seen, SettleAnswer::Executing { withdrawn: false, .. }), "{seen:?}");
}

#[tokio::test]
async fn a_stray_reset_does_not_take_back_what_was_started_since() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    store.faults().at("release", 1, Fault::Stray);
    store.release(bench.me, &[claimed.at]).await.unwrap_err();
    let running = bench.started(&claimed).await;
    store.land_stray();
    assert_eq!(store.list_held(bench.me).await.unwrap(), [running]);
}

#[tokio::test]
async fn a_stray_claim_of_an_ended_session_takes_nothing() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    store.faults().at("claim", 1, Fault::Stray);
    store.claim(&bench.claim_request(other, bench.clock_in(30), 5)).await.unwrap_err();
    assert!(store.expire(None, other, 0).await.unwrap());
    store.land_stray();
    assert!(store.list_held(other).await.unwrap().is_empty());
    store.sweep(other, 10).await.unwrap();
    assert_eq!(bench.claim().await.len(), 1);
}

#[tokio::test]
async fn a_stray_claim_of_a_session_that_closed_leaves_nothing_prepared_for_nobody() {
    for lands_first in [true, false] {
        let (bench, store) = faulty().await;
        bench.create(job("a")).await;
        let other = bench.session(2).await;
        store.faults().at("claim", 1, Fault::Stray);
        store.claim(&bench.claim_request(other, bench.clock_in(30), 5)).await.unwrap_err();
        if lands_first {
            store.land_stray();
        }
        store.close_session(other).await.unwrap();
        if !lands_first {
            store.land_stray();
        }
        let sessions = store.sessions().await.unwrap();
        let tombstone = sessions.iter().find(|session| session.beat.id == other);
        assert_eq!(tombstone.map(|session| session.prepared), lands_first.then_some(1));
        store.sweep(other, 10).await.unwrap();
        assert_eq!((store.sessions().await.unwrap().len(), bench.claim().await.len()), (1, 1));
    }
}

#[tokio::test]
async fn a_finish_that_is_repeated_until_it_is_heard_records_once() {
    let (bench, store) = faulty().await;
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    store.faults().at("finish", 1, Fault::AnswerLost);
    let finished = carillon_store::Finished {
        at: running,
        ending: carillon_tests::conformance::fixture::ending(Status::Succeeded, bench.clock_in(0)),
        next: None,
        output: Default::default(),
    };
    store.finish(Me::new(bench.me), std::slice::from_ref(&finished), &[]).await.unwrap_err();
    assert_eq!(store.finish(Me::new(bench.me), &[finished], &[]).await.unwrap(), [FinishAnswer::AlreadyGone]);
    assert_eq!((bench.records("a").await.len(), store.record_conflicts()), (1, 0));
}
