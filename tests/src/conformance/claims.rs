//! Idle -> Prepared.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_adapters::store::{ClaimRequest, Me, StoreError};
use carillon_domain::firing::Phase;
use carillon_domain::job::{Job, Misfire, MisfirePolicy};
use carillon_domain::partition::partition_of;
use carillon_domain::run::{Status, Trigger};

use super::bench::{Bench, PARTITIONS, at, job, key};

/// Only what comes up; nobody claims it twice.
pub async fn takes_what_comes_up_within_the_horizon(bench: &Bench) {
    bench.create(job("soon")).await;
    bench.create(Job { schedule: "@every 31s".into(), ..job("later") }).await;
    let claimed = bench.claim_one().await;
    assert_eq!((claimed.job.name.as_str(), claimed.held.firing.due_at), ("soon", at(10)));
    assert_eq!(bench.view("soon").await.state.phase, Phase::Prepared(claimed.held));
    assert_eq!(bench.view("soon").await.node.as_deref(), Some("node-1"));
    assert!(bench.claim().await.is_empty());
    bench.go_to(1);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(31));
    let held = bench.store.held(bench.me).await.unwrap();
    assert_eq!(held.len(), 2);
    assert!(held.contains(&claimed.at));
}

/// Partitions, limit, executors; what comes up first is taken first.
pub async fn keeps_to_partitions_limit_and_executors(bench: &Bench) {
    for n in 0..20 {
        bench.create(Job { schedule: format!("@every {}s", 29 - n), ..job(&format!("j{n}")) }).await;
    }
    bench.create(Job { executor: "http".into(), schedule: "@every 1s".into(), ..job("other") }).await;
    let first = bench.store.claim(&bench.claim_request(bench.me, at(30), 3)).await.unwrap();
    let names: Vec<_> = first.iter().map(|claimed| claimed.job.name.as_str()).collect();
    assert_eq!(names, ["j19", "j18", "j17"]);
    let mut all = BTreeSet::new();
    for partition in 0..PARTITIONS {
        let request = ClaimRequest { partitions: vec![partition], ..bench.claim_request(bench.me, at(30), 50) };
        for claimed in bench.store.claim(&request).await.unwrap() {
            assert_eq!(partition_of("default", &claimed.job.name, PARTITIONS), partition);
            all.insert(claimed.job.name.clone());
        }
    }
    assert_eq!(all.len(), 17);
    let request = ClaimRequest { executors: vec!["http".into()], ..bench.claim_request(bench.me, at(30), 5) };
    assert_eq!(bench.store.claim(&request).await.unwrap().len(), 1);
}

/// Paused jobs stay.
pub async fn a_paused_job_is_not_claimed(bench: &Bench) {
    bench.create(job("a")).await;
    bench.store.pause(&key("a"), None, Some("holiday".into())).await.unwrap();
    assert!(bench.claim().await.is_empty());
    bench.go_to(25);
    assert!(bench.claim().await.is_empty());
    bench.store.resume(&key("a")).await.unwrap();
    assert_eq!(bench.story("a").await, [(10, 20, "skipped", "paused".into())]);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(30));
}

/// Neither ended nor draining nor unknown sessions claim.
pub async fn an_ended_session_claims_nothing(bench: &Bench) {
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    let request = bench.claim_request(other, at(30), 5);
    assert!(bench.store.expire(other, 0).await.unwrap());
    assert!(bench.store.claim(&request).await.unwrap().is_empty());
    assert_eq!(bench.store.sweep(other, 10).await.unwrap(), 0);
    assert!(bench.store.claim(&request).await.unwrap().is_empty());
    bench.store.heartbeat(Me::new(bench.me), 1, true).await.unwrap();
    assert!(bench.claim().await.is_empty());
    bench.store.heartbeat(Me::new(bench.me), 2, false).await.unwrap();
    assert_eq!(bench.claim().await.len(), 1);
}

fn misfire(policy: MisfirePolicy) -> Job {
    Job { misfire: Misfire { policy, grace: Duration::from_secs(5) }, ..job("a") }
}

/// `skip`: one record for the stretch, the next due time is claimed.
pub async fn skipped_misfires_are_recorded(bench: &Bench) {
    bench.create(misfire(MisfirePolicy::Skip)).await;
    bench.go_to(47);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(50));
    assert_eq!(bench.story("a").await, [(10, 40, "skipped", "misfire".into())]);
    assert_eq!(bench.records("a").await[0].count, 4);
}

/// `fire_once`: the latest runs as a misfire, the others are recorded.
pub async fn fire_once_carries_the_latest(bench: &Bench) {
    bench.create(misfire(MisfirePolicy::FireOnce)).await;
    bench.go_to(47);
    let claimed = bench.claim_one().await;
    assert_eq!((claimed.held.firing.due_at, claimed.held.firing.trigger), (at(40), Trigger::Misfire));
    assert_eq!(bench.story("a").await, [(10, 30, "skipped", "misfire".into())]);
    let running = bench.started(&claimed).await;
    bench.finish(running, Status::Succeeded).await;
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(50));
}

/// `catch_up`: the newest hundred, oldest first, one at a time.
pub async fn catch_up_works_off_the_newest_hundred(bench: &Bench) {
    bench.create(misfire(MisfirePolicy::CatchUp)).await;
    bench.go_to(1205);
    for n in 0..100 {
        let claimed = bench.claim_one().await;
        assert_eq!((claimed.held.firing.due_at, claimed.held.firing.trigger), (at(210 + 10 * n), Trigger::Misfire));
        let running = bench.started(&claimed).await;
        bench.finish(running, Status::Succeeded).await;
    }
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(1210));
    let story = bench.story("a").await;
    assert_eq!((story.len(), story[0].clone()), (101, (10, 200, "skipped", "misfire".into())));
}

/// The earliest time of my partitions, whatever the horizon; nothing where nothing comes.
pub async fn peek_tells_what_comes_up(bench: &Bench) {
    let all: Vec<u16> = (0..PARTITIONS).collect();
    assert_eq!(bench.store.peek(bench.me, &all).await.unwrap().earliest_claim_at, None);
    bench.create(Job { schedule: "@every 500s".into(), ..job("a") }).await;
    bench.create(Job { schedule: "@every 400s".into(), ..job("b") }).await;
    assert_eq!(bench.store.peek(bench.me, &all).await.unwrap().earliest_claim_at, Some(at(400)));
    let own = partition_of("default", "b", PARTITIONS);
    assert_eq!(bench.store.peek(bench.me, &[own]).await.unwrap().earliest_claim_at, Some(at(400)));
    for name in ["a", "b"] {
        bench.store.pause(&key(name), None, None).await.unwrap();
    }
    assert_eq!(bench.store.peek(bench.me, &all).await.unwrap().earliest_claim_at, None);
    bench.store.trigger(&key("a"), bench.draw()).await.unwrap();
    assert_eq!(bench.store.peek(bench.me, &all).await.unwrap().earliest_claim_at, Some(at(0)));
}

/// A lock that is not there is no free pass.
pub async fn an_unknown_partition_is_an_error(bench: &Bench) {
    let request = ClaimRequest { partitions: vec![PARTITIONS], ..bench.claim_request(bench.me, at(30), 5) };
    assert!(matches!(bench.store.claim(&request).await, Err(StoreError::Permanent(_))));
}
