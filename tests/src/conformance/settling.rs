//! Settling doubt: a write that disarms whatever is still under way, then a look.

use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::{RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::Me;

use super::fixture::{StoreFixture, at, job, key};

async fn settle(bench: &StoreFixture, at: RunRef) -> SettleAnswer {
    bench.store.settle(bench.me, &[at]).await.unwrap().remove(0)
}

/// The start that was guarded on the old version matches nothing; the one on the new version starts.
pub async fn a_settled_start_disarms_the_stray(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let SettleAnswer::Prepared(settled) = settle(bench, claimed.at).await else { panic!("not prepared") };
    assert_eq!((settled.at.run, settled.held), (claimed.at.run, claimed.held));
    assert_eq!(bench.start(&claimed).await, StartAnswer::Moved);
    bench.store.release(bench.me, &[claimed.at]).await.unwrap();
    bench.started(&settled).await;
}

/// A start whose answer was lost is adopted, with the token of the start.
pub async fn a_settled_run_that_started_is_found(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    bench.started(&claimed).await;
    let SettleAnswer::Executing { at, held, withdrawn, .. } = settle(bench, claimed.at).await else {
        panic!("not executing")
    };
    assert_eq!((held.fencing_token, withdrawn), (claimed.at.version + 1, false));
    bench.finish(at, Status::Succeeded).await;
    assert_eq!(settle(bench, at).await, SettleAnswer::Gone);
}

/// Paused, deleted or cancelled meanwhile.
pub async fn a_withdrawn_run_says_so(bench: &StoreFixture) {
    for name in ["paused", "deleted", "cancelled"] {
        bench.create(job(name)).await;
    }
    let claimed = bench.claim().await;
    bench.go_to(10);
    bench.store.start(Me::new(bench.me), &super::fixture::refs(&claimed)).await.unwrap();
    bench.store.pause(&key("paused"), None, None, &author()).await.unwrap();
    bench.store.delete_job(&key("deleted"), None, &author()).await.unwrap();
    let cancelled = claimed.iter().find(|one| one.job.name == "cancelled").unwrap();
    bench.store.cancel(cancelled.at.run, &author()).await.unwrap();
    for one in &claimed {
        let seen = settle(bench, one.at).await;
        let SettleAnswer::Executing { at, withdrawn: true, .. } = seen else { panic!("{}: {seen:?}", one.job.name) };
        bench.store.release(bench.me, &[at]).await.unwrap();
    }
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
    assert_eq!(bench.story("deleted").await, [(10, 10, "skipped", "deleted".into())]);
    assert_eq!(bench.story("cancelled").await, [(10, 10, "cancelled", "cancelled".into())]);
}

/// An `allow` start has moved its run to another row.
pub async fn a_settled_run_beside_is_found(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let running = bench.started(&claimed).await;
    let SettleAnswer::Executing { at, withdrawn: false, .. } = settle(bench, claimed.at).await else {
        panic!("not found")
    };
    assert_eq!(at.row, running.row);
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    let SettleAnswer::Executing { at, withdrawn: true, .. } = settle(bench, claimed.at).await else {
        panic!("not withdrawn")
    };
    bench.finish(at, Status::Succeeded).await;
}

/// Nothing is found of what was given back, and of another session's nothing either.
pub async fn what_is_gone_is_gone(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    let other = bench.session(2).await;
    assert_eq!(bench.store.settle(other, &[claimed.at]).await.unwrap(), [SettleAnswer::Gone]);
    let SettleAnswer::Prepared(settled) = settle(bench, claimed.at).await else { panic!("not prepared") };
    bench.store.release(bench.me, &[settled.at]).await.unwrap();
    assert_eq!(settle(bench, settled.at).await, SettleAnswer::Gone);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(10));
}
