//! The output of runs that run, between the node that runs them and readers at other nodes.

use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::{RowKey, WantedOutput};
use carillon_domain::run::Status;
use carillon_store::LivePart;

use super::fixture::{StoreFixture, at, job};

fn printed(text: &str) -> LivePart {
    LivePart { written: text.len() as u64, tail: text.into() }
}

async fn wanted(bench: &StoreFixture) -> Vec<WantedOutput> {
    bench.peek().await.wanted_outputs
}

async fn publish(bench: &StoreFixture, run: RunId, text: &str) {
    bench.store.publish_output(&[(run, printed(text))]).await.unwrap();
}

async fn ask(bench: &StoreFixture, run: RunId) -> Option<LivePart> {
    bench.store.ask_output(run).await.unwrap()
}

/// The node that runs it learns of it, and no other; readers get the newest state.
pub async fn what_is_asked_for_is_published(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let run = bench.run_next().await.run;
    let other = bench.session(2).await;
    publish(bench, run, "nobody asked").await;
    assert_eq!(wanted(bench).await, []);
    assert_eq!(ask(bench, run).await, None);
    assert_eq!(wanted(bench).await, [WantedOutput { run, published: None }]);
    assert_eq!(bench.store.peek(&bench.peek_request(other, &[], bench.clock_in(0))).await.unwrap().wanted_outputs, []);
    publish(bench, run, "").await;
    assert_eq!(ask(bench, run).await, Some(printed("")), "that nothing was printed is an answer");
    publish(bench, run, "hello").await;
    publish(bench, run, "he").await;
    assert_eq!(ask(bench, run).await, Some(printed("hello")), "a stray one takes nothing back");
    assert_eq!(wanted(bench).await, [WantedOutput { run, published: Some(5) }]);
}

/// Bytes are bytes, as many as there may be.
pub async fn a_full_part_comes_through(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let run = bench.run_next().await.run;
    ask(bench, run).await;
    let part = LivePart { written: 1 << 40, tail: (0..64 * 1024_u32).map(|n| (n * 7) as u8).collect() };
    bench.store.publish_output(&[(run, part.clone())]).await.unwrap();
    assert_eq!(ask(bench, run).await, Some(part));
}

/// A run beside its job's row is asked for like any other; one that ended is not wanted any more.
pub async fn runs_beside_are_asked_for_until_they_end(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    let beside = bench.run_next().await;
    assert!(matches!(beside.row, RowKey::Concurrent(_)));
    ask(bench, beside.run).await;
    assert_eq!(wanted(bench).await, [WantedOutput { run: beside.run, published: None }]);
    bench.finish(beside, Status::Succeeded).await;
    assert_eq!(wanted(bench).await, []);
}

/// It is published while somebody asks; who comes later gets nothing from before.
pub async fn what_nobody_asks_for_is_not_published(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let run = bench.run_next().await.run;
    for secs in [10, 13, 16, 19] {
        bench.go_to(secs);
        assert_eq!(ask(bench, run).await.is_some(), secs > 10, "at {secs}");
        publish(bench, run, "some").await;
        assert_eq!(wanted(bench).await, [WantedOutput { run, published: Some(4) }]);
    }
    bench.go_to(30);
    assert_eq!(wanted(bench).await, []);
    assert_eq!(ask(bench, run).await, None, "it is not known what was printed since");
    assert_eq!(wanted(bench).await, [WantedOutput { run, published: None }]);
}

/// The leftovers of readers go, and not before the readers have gone.
pub async fn purge_forgets_what_nobody_reads(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let run = bench.run_next().await.run;
    for (purge_at, left) in [(40, Some(printed("some"))), (80, None)] {
        bench.go_to(10);
        ask(bench, run).await;
        publish(bench, run, "some").await;
        bench.go_to(purge_at);
        bench.store.purge(at(0), 1000, 100).await.unwrap();
        bench.go_to(10);
        assert_eq!(ask(bench, run).await, left, "purged at {purge_at}");
    }
}
