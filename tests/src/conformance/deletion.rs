//! Deleting jobs.

use std::time::Duration;

use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::{FinishAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_domain::store::Refusal;
use carillon_doubles::author;
use carillon_store::{ControlError, RunStage};

use super::fixture::{BEGIN, StoreFixture, at, job, key};

/// Idle and prepared ones go at once; a running one ends first.
pub async fn delete_in_every_phase(bench: &StoreFixture) {
    for name in ["idle", "prepared", "running"] {
        bench
            .create(Job { schedule: if name == "idle" { "@every 60s" } else { "@every 10s" }.into(), ..job(name) })
            .await;
    }
    let claimed = bench.claim().await;
    bench.go_to(10);
    let running = claimed.iter().find(|one| one.job.name == "running").unwrap();
    let prepared = claimed.iter().find(|one| one.job.name == "prepared").unwrap();
    let running = bench.started(running).await;
    for name in ["idle", "prepared", "running"] {
        bench.store.delete_job(&key(name), None, &author()).await.unwrap();
        assert!(matches!(bench.store.job(&key(name)).await, Err(ControlError::Refused(Refusal::NoJob(_)))), "{name}");
    }
    assert_eq!(bench.start(prepared).await, StartAnswer::Gone);
    assert_eq!(bench.store.list_held(bench.me).await.unwrap().len(), 1);
    assert_eq!(bench.finish(running, Status::Succeeded).await, FinishAnswer::Recorded { claim_at: None });
    assert_eq!(bench.story("prepared").await, [(10, 10, "skipped", "deleted".into())]);
    assert_eq!(bench.story("running").await, [(10, 10, "succeeded", String::new())]);
    bench.go_to(1000);
    assert!(bench.claim().await.is_empty());
}

/// The new one runs beside the old one's last run, with a larger token.
pub async fn a_deleted_name_is_free_at_once(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let old = bench.run_next().await;
    bench.clock.advance(Duration::from_micros(1500));
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    bench.clock.advance(Duration::from_micros(1500));
    let new = bench.create(job("a")).await;
    assert!(new.state.version > bench.store.list_held(bench.me).await.unwrap()[0].version, "a token would go back");
    let claimed = bench.claim_one().await;
    bench.clock.set(claimed.held.firing.start_at);
    let running = bench.started(&claimed).await;
    assert!(running.version > old.version);
    bench.finish(old, Status::Succeeded).await;
    bench.finish(running, Status::Succeeded).await;
    assert_eq!(bench.records("a").await.len(), 2);
    assert!(bench.view("a").await.state.next_due_at().is_some());
}

/// Under the old name, until it is purged.
pub async fn history_outlives_its_job(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.finish(running, Status::Succeeded).await;
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    assert_eq!(bench.runs("a").await[0].key, key("a"));
    assert_eq!(bench.store.run(running.run).await.unwrap().key, key("a"));
    bench.go_to(100);
    assert_eq!(bench.store.purge(at(50), 1000, 100).await.unwrap(), 1);
    let gone = carillon_store::RunQuery { job: Some(key("a")), limit: 1, ..Default::default() };
    assert!(matches!(bench.store.runs(&gone).await, Err(ControlError::Refused(Refusal::NoJob(_)))));
    assert!(bench.create(job("a")).await.state.id.0 > 1, "a number is never used twice");
}

/// A concurrent run ends, a waiting one is recorded.
pub async fn delete_of_runs_beside(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    let running = bench.run_next().await;
    let manual = bench.draw();
    bench.store.trigger(&key("a"), manual, &author()).await.unwrap();
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    bench.create(job("a")).await;
    assert_eq!(bench.finish(running, Status::Failed).await, FinishAnswer::Recorded { claim_at: None });
    let story: Vec<_> = bench.records("a").await.iter().map(|record| (record.id, record.status)).collect();
    assert!(story.contains(&(manual, Status::Skipped)) && story.contains(&(running.run, Status::Failed)), "{story:?}");
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
}

/// Whatever the clock shows when the name is used again: the tokens go on growing (S7).
pub async fn tokens_of_a_name_grow_though_the_clock_goes_back(bench: &StoreFixture) {
    let mut last = 0;
    for (round, while_it_runs) in [false, true, false, true].into_iter().enumerate() {
        bench.clock.set(BEGIN - Duration::from_secs(3_600 * round as u64));
        bench.create(job("a")).await;
        let running = bench.run_next().await;
        let RunStage::Running { held, .. } = bench.store.run(running.run).await.unwrap().stage else {
            panic!("not running");
        };
        let token = held.fencing_token;
        assert!(token > last, "round {round}: {token} after {last}");
        last = token;
        if !while_it_runs {
            bench.finish(running, Status::Succeeded).await;
        }
        bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    }
}
