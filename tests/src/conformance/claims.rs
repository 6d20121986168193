//! Idle -> Prepared.

use std::collections::BTreeSet;
use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap};
use carillon_domain::node::port::{Peek, RowKey, UNCLAIMED_PER_PARTITION};
use carillon_domain::partition::partition_of;
use carillon_domain::run::{Status, Trigger};
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{ClaimRequest, Me, PeekRequest, StoreError};

use super::fixture::{PARTITIONS, StoreFixture, at, job, key};

/// Only what comes up; nobody claims it twice.
pub async fn takes_what_comes_up_within_the_horizon(bench: &StoreFixture) {
    bench.create(job("soon")).await;
    bench.create(Job { schedule: "@every 31s".into(), ..job("later") }).await;
    let claimed = bench.claim_one().await;
    assert_eq!((claimed.job.name.as_str(), claimed.held.firing.due_at), ("soon", at(10)));
    assert_eq!(bench.view("soon").await.state.phase, Phase::Prepared(claimed.held));
    assert_eq!(bench.view("soon").await.node.as_deref(), Some("node-1"));
    assert!(bench.claim().await.is_empty());
    bench.go_to(1);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(31));
    let held = bench.store.list_held(bench.me).await.unwrap();
    assert_eq!(held.len(), 2);
    assert!(held.contains(&claimed.at));
}

/// Partitions, limit, executors; what comes up first is taken first.
pub async fn keeps_to_partitions_limit_and_executors(bench: &StoreFixture) {
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

/// One partition has all that comes up first.
pub async fn the_first_are_taken_wherever_they_are(bench: &StoreFixture) {
    let names = (0..).map(|n| format!("j{n}"));
    let of =
        |wanted: bool| names.clone().filter(move |name| (partition_of("default", name, PARTITIONS) == 1) == wanted);
    let crowd: Vec<String> = of(true).take(30).collect();
    for name in &crowd {
        bench.create(job(name)).await;
    }
    for name in of(false).take(10) {
        bench.create(Job { schedule: "@every 20s".into(), ..job(&name) }).await;
    }
    for limit in [12, 18, 5, 5] {
        let claimed = bench.store.claim(&bench.claim_request(bench.me, at(30), limit)).await.unwrap();
        let due: Vec<Timestamp> = claimed.iter().map(|claimed| claimed.held.firing.due_at).collect();
        let expected = if limit > 5 { at(10) } else { at(20) };
        assert_eq!(due, vec![expected; limit]);
    }
    assert!(bench.claim().await.is_empty());
}

/// Paused jobs stay.
pub async fn a_paused_job_is_not_claimed(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.store.pause(&key("a"), None, Some("holiday".into()), &author()).await.unwrap();
    assert!(bench.claim().await.is_empty());
    bench.go_to(25);
    assert!(bench.claim().await.is_empty());
    bench.store.resume(&key("a"), &author()).await.unwrap();
    assert_eq!(bench.story("a").await, [(10, 20, "skipped", "paused".into())]);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(30));
}

/// Neither ended nor draining nor unknown sessions claim.
pub async fn an_ended_session_claims_nothing(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    let request = bench.claim_request(other, at(30), 5);
    assert!(bench.store.expire(None, other, 0).await.unwrap());
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
pub async fn skipped_misfires_are_recorded(bench: &StoreFixture) {
    bench.create(misfire(MisfirePolicy::Skip)).await;
    bench.go_to(47);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(50));
    assert_eq!(bench.story("a").await, [(10, 40, "skipped", "misfire".into())]);
    assert_eq!(bench.records("a").await[0].count, 4);
}

/// `fire_once`: the latest runs as a misfire, the others are recorded.
pub async fn fire_once_carries_the_latest(bench: &StoreFixture) {
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
pub async fn catch_up_works_off_the_newest_hundred(bench: &StoreFixture) {
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

/// The earliest time of my partitions at which something comes up that I can run; nothing where nothing comes in time.
pub async fn peek_tells_what_comes_up(bench: &StoreFixture) {
    let earliest = async |mine: &[u16], until| {
        bench.store.peek(&bench.peek_request(bench.me, mine, until)).await.unwrap().earliest_claim_at
    };
    let all: Vec<u16> = (0..PARTITIONS).collect();
    assert_eq!(earliest(&all, at(1_000)).await, None);
    bench.create(Job { schedule: "@every 500s".into(), ..job("a") }).await;
    bench.create(Job { schedule: "@every 400s".into(), ..job("b") }).await;
    bench.create(Job { schedule: "@every 300s".into(), executor: "http".into(), ..job("c") }).await;
    assert_eq!(earliest(&all, at(400)).await, Some(at(400)));
    assert_eq!(earliest(&all, at(399)).await, None);
    assert_eq!(earliest(&[], at(1_000)).await, None);
    let own = partition_of("default", "b", PARTITIONS);
    assert_eq!(earliest(&[own], at(400)).await, Some(at(400)));
    let http = PeekRequest { executors: vec!["http".into()], ..bench.peek_request(bench.me, &all, at(1_000)) };
    assert_eq!(bench.store.peek(&http).await.unwrap().earliest_claim_at, Some(at(300)));
    let none = PeekRequest { executors: vec![], ..bench.peek_request(bench.me, &[own], at(1_000)) };
    let nothing = Peek { claimants: vec![bench.me], ..Peek::default() };
    assert_eq!(bench.store.peek(&none).await.unwrap(), nothing);
    for name in ["a", "b"] {
        bench.store.pause(&key(name), None, None, &author()).await.unwrap();
    }
    assert_eq!(earliest(&all, at(1_000)).await, None);
    bench.store.trigger(&key("a"), bench.draw(), &author()).await.unwrap();
    assert_eq!(earliest(&all, at(1_000)).await, Some(at(0)));
}

/// The rows that others ignore: each where it is, at its version, in the order of due times. None that this node cannot run, that
/// falls due later, or that somebody holds.
pub async fn peek_tells_what_others_leave_unclaimed(bench: &StoreFixture) {
    let seen = async |mine: &[u16], until| {
        bench.store.peek(&bench.peek_request(bench.me, mine, until)).await.unwrap().unclaimed
    };
    for n in 0..40 {
        bench.create(Job { schedule: format!("@every {}s", 60 - n), ..job(&format!("j{n}")) }).await;
    }
    bench.create(Job { executor: "http".into(), schedule: "@every 1s".into(), ..job("other") }).await;
    assert_eq!(seen(&(0..PARTITIONS).collect::<Vec<_>>(), at(100)).await, []);
    assert_eq!(seen(&[], at(20)).await, []);
    let (mut expected, mut more): (Vec<(u16, Timestamp, RowKey, u64)>, _) = (Vec::new(), false);
    for partition in [0, 2, 3] {
        let mut rows = Vec::new();
        for n in (0..40).filter(|n| partition_of("default", &format!("j{n}"), PARTITIONS) == partition) {
            let state = bench.view(&format!("j{n}")).await.state;
            rows.push((partition, at(60 - n), RowKey::Job(state.id), state.version));
        }
        rows.sort_unstable();
        more |= rows.len() > UNCLAIMED_PER_PARTITION;
        expected.extend(rows.into_iter().take(UNCLAIMED_PER_PARTITION));
    }
    assert!(more, "some partition has more than is told");
    let all = seen(&[1], at(60)).await;
    assert!(all.iter().all(|row| row.executor == "shell"));
    let told: Vec<_> = all.iter().map(|row| (row.partition, row.claim_at, row.row, row.version)).collect();
    assert_eq!(told, expected);
    assert_eq!(seen(&[1], at(40)).await, all.into_iter().filter(|row| row.claim_at <= at(40)).collect::<Vec<_>>());
    bench.store.claim(&bench.claim_request(bench.me, at(60), 100)).await.unwrap();
    assert_eq!(seen(&[], at(60)).await, []);
}

/// Runs beside the job's own are left lying as well.
pub async fn peek_tells_what_waits_beside(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, schedule: "@every 60s".into(), ..job("a") }).await;
    for second in 0..10 {
        bench.go_to(second);
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.unwrap();
    }
    let own = partition_of("default", "a", PARTITIONS);
    let look = async |mine: &[u16]| bench.store.peek(&bench.peek_request(bench.me, mine, at(9))).await.unwrap();
    let expected = Peek { earliest_claim_at: Some(at(0)), claimants: vec![bench.me], ..Peek::default() };
    assert_eq!(look(&[own]).await, expected);
    let seen = look(&[]).await.unclaimed;
    let told: Vec<_> = seen.iter().map(|row| (row.partition, row.claim_at)).collect();
    assert_eq!(told, (0..8).map(|second| (own, at(second))).collect::<Vec<_>>());
    let claimed = bench.store.claim(&bench.claim_request(bench.me, at(7), 100)).await.unwrap();
    let taken: Vec<_> = claimed.iter().map(|one| (one.at.row, one.at.version)).collect();
    assert_eq!(taken, seen.iter().map(|row| (row.row, row.version + 1)).collect::<Vec<_>>());
    assert_eq!(look(&[]).await.unclaimed.len(), 2);
}

/// A lock that is not there is no free pass.
pub async fn an_unknown_partition_is_an_error(bench: &StoreFixture) {
    let request = ClaimRequest { partitions: vec![PARTITIONS], ..bench.claim_request(bench.me, at(30), 5) };
    assert!(matches!(bench.store.claim(&request).await, Err(StoreError::Permanent(_))));
}
