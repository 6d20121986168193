//! Params that a person gives for one manual run.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::job::{Job, OnLost, Overlap, Retry};
use carillon_domain::node::port::{RunRef, SettleAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::Me;

use super::fixture::{StoreFixture, at, job, key};

const OWN: &str = r#"{"command":"true","env":{"A":"1"}}"#;
const GIVEN: &str = r#"{"env":{"B":"2"}}"#;
const LAID_OVER: &str = r#"{"command":"true","env":{"A":"1","B":"2"}}"#;

/// A job that is never due while the test lasts.
fn rare(name: &str) -> Job {
    Job { schedule: "@every 1000000s".into(), params: OWN.into(), ..job(name) }
}

async fn asked(bench: &StoreFixture, name: &str) -> RunId {
    let run = bench.draw();
    bench.store.trigger_with(&key(name), run, Some(Arc::from(GIVEN)), &author()).await.unwrap();
    run
}

async fn shown(bench: &StoreFixture, run: RunId) -> Option<String> {
    bench.store.run(run).await.unwrap().params.map(|params| params.to_string())
}

/// Claims the only run that is due; answers it and the params that it is to run with.
async fn claimed(bench: &StoreFixture) -> (RunRef, String) {
    let claimed = bench.claim_one().await;
    (claimed.at, claimed.job.params.clone())
}

/// They are used and shown from the request to the record, and by no other run.
pub async fn they_are_used_by_the_run_alone(bench: &StoreFixture) {
    for (name, overlap) in [("a", Overlap::Skip), ("b", Overlap::Allow)] {
        bench.create(Job { overlap, ..rare(name) }).await;
        let run = asked(bench, name).await;
        assert_eq!(shown(bench, run).await.as_deref(), Some(GIVEN));
        let (prepared, params) = claimed(bench).await;
        assert_eq!((prepared.run, params.as_str()), (run, LAID_OVER));
        assert_eq!(shown(bench, run).await.as_deref(), Some(GIVEN));
        let one = bench.store.start(Me::new(bench.me), &[prepared]).await.unwrap().remove(0);
        let carillon_domain::node::port::StartAnswer::Started { at, .. } = one else { panic!("{one:?}") };
        assert_eq!(shown(bench, run).await.as_deref(), Some(GIVEN));
        bench.finish(at, Status::Succeeded).await;
        assert_eq!(shown(bench, run).await.as_deref(), Some(GIVEN));
        assert_eq!(bench.view(name).await.job.params, OWN);

        let plain = bench.draw();
        bench.store.trigger(&key(name), plain, &author()).await.unwrap();
        let (prepared, params) = claimed(bench).await;
        assert_eq!((prepared.run, params.as_str(), shown(bench, plain).await), (plain, OWN, None));
        bench.store.cancel(plain, &author()).await.unwrap();
    }
}

/// A retry is another run of the same firing.
pub async fn retries_keep_them(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(5), ..Retry::default() };
    for (name, overlap) in [("a", Overlap::Skip), ("b", Overlap::Allow)] {
        bench.create(Job { overlap, retry, ..rare(name) }).await;
        let first = asked(bench, name).await;
        let running = bench.run_next().await;
        assert_eq!(running.run, first);
        bench.finish(running, Status::Failed).await;
        let (again, params) = claimed(bench).await;
        assert_ne!(again.run, first);
        assert_eq!((params.as_str(), shown(bench, again.run).await.as_deref()), (LAID_OVER, Some(GIVEN)));
        bench.store.cancel(again.run, &author()).await.unwrap();
    }
}

/// A node dies before or after the start, and another one goes on.
pub async fn they_survive_the_node_that_held_the_run(bench: &StoreFixture) {
    bench.create(Job { on_lost: OnLost::Rerun, ..rare("a") }).await;
    let run = asked(bench, "a").await;
    let until = at(30);
    for number in [2, 3] {
        let session = bench.session(number).await;
        let claimed = bench.store.claim(&bench.claim_request(session, until, 5)).await.unwrap().remove(0);
        assert_eq!((claimed.at.run, claimed.job.params.as_str()), (run, LAID_OVER));
        if number == 3 {
            bench.store.start(Me::new(session), &[claimed.at]).await.unwrap();
        }
        assert!(bench.store.expire(None, session, 0).await.unwrap());
        while bench.store.sweep(session, 10).await.unwrap() > 0 {}
    }
    let (again, params) = claimed(bench).await;
    assert_ne!(again.run, run, "the run was lost, and its firing starts again");
    assert_eq!(params, LAID_OVER);
    let settled = bench.store.settle(bench.me, &[again]).await.unwrap().remove(0);
    let SettleAnswer::Prepared(settled) = settled else { panic!("{settled:?}") };
    assert_eq!(settled.job.params, LAID_OVER, "a claim without an answer is found with them");
}

/// A run that never started is shown with them too.
pub async fn a_skipped_run_keeps_them(bench: &StoreFixture) {
    bench.create(rare("a")).await;
    let (first, second) = (asked(bench, "a").await, bench.draw());
    let running = bench.run_next().await;
    assert_eq!(running.run, first);
    bench.store.trigger_with(&key("a"), second, Some(Arc::from(r#"{"dir":"/"}"#)), &author()).await.unwrap();
    assert_eq!(bench.records("a").await.len(), 1, "it is skipped, as the first one lives");
    assert_eq!(shown(bench, second).await.as_deref(), Some(r#"{"dir":"/"}"#));
    bench.finish(running, Status::Succeeded).await;
}

/// They go with the last record of their firing, and not while an attempt is still to come.
pub async fn purge_takes_them_with_the_last_record(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(5), ..Retry::default() };
    bench.create(Job { retry, ..rare("a") }).await;
    asked(bench, "a").await;
    let running = bench.run_next().await;
    bench.finish(running, Status::Failed).await;
    assert_eq!(bench.store.purge(at(1_000), 100, 10).await.unwrap(), 1);
    let (again, params) = claimed(bench).await;
    assert_eq!(params, LAID_OVER, "the second attempt still needs them");
    bench.go_to(10);
    let started = bench.store.start(Me::new(bench.me), &[again]).await.unwrap().remove(0);
    let carillon_domain::node::port::StartAnswer::Started { at: running, .. } = started else { panic!("{started:?}") };
    bench.finish(running, Status::Succeeded).await;
    assert_eq!(shown(bench, again.run).await.as_deref(), Some(GIVEN));
    assert_eq!(bench.store.purge(at(1_000), 100, 10).await.unwrap(), 1);
    assert!(bench.store.run(again.run).await.is_err());
}
