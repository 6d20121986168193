//! Calls of monitors: one for each run that ended, and one for a failure whose next attempt never comes.

use std::time::Duration;

use carillon_domain::alert::{Ping, PingKind};
use carillon_domain::job::{Job, Overlap, Retry};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::alerts::{DeliveryQuery, IncidentQuery, Message};

use super::alerts::{notices, run_once, step};
use super::deliveries::claim;
use super::fixture::{StoreFixture, job, key};

/// A monitor is called at the end of each run, also where there is no route.
pub async fn a_monitor_is_called_at_the_end_of_a_run(bench: &StoreFixture) {
    let ping = Some(Ping::of_url("https://hc-ping.com/x"));
    let view = bench.create(Job { ping, ..job("a") }).await;
    for status in [Status::Succeeded, Status::Failed] {
        for _ in 0..2 {
            run_once(bench, status).await;
        }
        step(bench).await;
    }
    let mut claimed = claim(bench, bench.me, 9).await;
    claimed.sort_by_key(|claimed| claimed.id);
    let kinds: Vec<(PingKind, String)> = claimed
        .iter()
        .map(|claimed| match &claimed.message {
            Message::Ping(ping) => (ping.kind, ping.url.clone()),
            other @ Message::Notice(_) => panic!("{other:?}"),
        })
        .collect();
    assert!(
        !kinds.is_empty() && claimed.iter().all(|claimed| claimed.target.is_none() && claimed.host == "hc-ping.com")
    );
    let last = bench.store.last_ping(view.state.id).await.unwrap().unwrap();
    assert_eq!(Some(&last.message), claimed.last().map(|claimed| &claimed.message));
    let records = bench.records("a").await;
    let expected: Vec<(PingKind, String)> = records
        .iter()
        .rev()
        .map(|record| match record.status {
            Status::Succeeded => (PingKind::Success, "https://hc-ping.com/x".to_owned()),
            _ => (PingKind::Failure, "https://hc-ping.com/x/fail".to_owned()),
        })
        .collect();
    assert_eq!(kinds, expected);
    assert!(notices(bench).await.is_empty());
    bench.put(job("a")).await;
    run_once(bench, Status::Failed).await;
    step(bench).await;
    assert_eq!(bench.store.last_ping(view.state.id).await.unwrap().unwrap().id, last.id, "it has no monitor any more");
}

/// A job with a monitor of its name, whose first due time is 1,000 s away, and whose failures are tried again 5 s later.
fn tried_again(name: &str, overlap: Overlap) -> Job {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(5), ..Retry::default() };
    let ping = Some(Ping::of_url(&format!("https://hc-ping.com/{name}")));
    Job { retry, overlap, ping, schedule: "@every 1000s".into(), ..job(name) }
}

/// Every call of the monitor of that name, oldest first.
async fn calls(bench: &StoreFixture, name: &str) -> Vec<PingKind> {
    let all = DeliveryQuery { limit: 100, ..DeliveryQuery::default() };
    let found = bench.store.deliveries(&all).await.unwrap().items;
    let of_job = found.iter().rev().filter_map(|delivery| match &delivery.message {
        Message::Ping(ping) if ping.url.contains(name) => Some(ping.kind),
        _ => None,
    });
    of_job.collect()
}

/// Its first attempt fails, and nobody is called. The attempt is left alone, and time goes on until the store has looked for it.
async fn fails(bench: &StoreFixture, job: Job, mut then: impl AsyncFnMut(&StoreFixture)) -> Vec<PingKind> {
    let name = job.name.clone();
    bench.create(job).await;
    bench.clock.advance(Duration::from_secs(990));
    run_once(bench, Status::Failed).await;
    assert_eq!(step(bench).await.pings, 0, "{name}");
    then(bench).await;
    for _ in 0..3 {
        step(bench).await;
        bench.clock.advance(Duration::from_secs(70));
    }
    step(bench).await;
    // Nothing that waits is left behind, and it is no incident.
    assert_eq!(step(bench).await.next_look, None, "{name}");
    let _gone_already = bench.store.delete_job(&key(&name), None, &author()).await;
    step(bench).await;
    calls(bench, &name).await
}

/// A failure calls its monitor once, whichever way its next attempt is dropped, also where there is no route.
pub async fn a_failure_whose_next_attempt_is_dropped_calls_its_monitor(bench: &StoreFixture) {
    let failure = [PingKind::Failure];
    let paused = fails(bench, tried_again("paused", Overlap::Skip), async |bench| {
        bench.store.pause(&key("paused"), None, None, &author()).await.unwrap();
    });
    assert_eq!(paused.await, failure, "while the pause lasts");
    let retimed = tried_again("retimed", Overlap::Skip);
    let changed = fails(bench, retimed.clone(), async |bench| {
        bench.put(Job { schedule: "@every 5000s".into(), ..retimed.clone() }).await;
    });
    assert_eq!(changed.await, failure);
    let deleted = fails(bench, tried_again("deleted", Overlap::Skip), async |bench| {
        bench.store.delete_job(&key("deleted"), None, &author()).await.unwrap();
    });
    assert_eq!(deleted.await, failure);
    let cancelled = fails(bench, tried_again("cancelled", Overlap::Skip), async |bench| {
        let attempt = bench.claim_one().await;
        bench.store.cancel(attempt.at.run, &author()).await.unwrap();
    });
    assert_eq!(cancelled.await, failure);
    let replaced = fails(bench, tried_again("replaced", Overlap::Replace), async |bench| {
        bench.store.trigger(&key("replaced"), bench.draw(), &author()).await.unwrap();
    });
    assert_eq!(replaced.await, failure);
    for (name, delete) in [("withdrawn", false), ("gone-beside", true)] {
        let beside = fails(bench, tried_again(name, Overlap::Allow), async |bench| {
            if delete {
                bench.store.delete_job(&key(name), None, &author()).await.unwrap();
            } else {
                bench.store.pause(&key(name), None, None, &author()).await.unwrap();
            }
        });
        assert_eq!(beside.await, failure, "{name}");
    }
}

/// An attempt that comes has the last word; a monitor that is taken away hears nothing more.
pub async fn a_failure_that_is_tried_again_calls_its_monitor_once(bench: &StoreFixture) {
    for (name, status, kind) in
        [("well", Status::Succeeded, PingKind::Success), ("ill", Status::Failed, PingKind::Failure)]
    {
        let heard = fails(bench, tried_again(name, Overlap::Skip), async |bench| run_once(bench, status).await);
        assert_eq!(heard.await, [kind], "{name}");
    }
    let waiting = fails(bench, tried_again("waiting", Overlap::Skip), async |bench| {
        bench.clock.advance(Duration::from_secs(100));
        assert_eq!(step(bench).await.pings, 0, "no node has started the attempt yet");
        let incidents = bench.store.incidents(&IncidentQuery { limit: 9, ..IncidentQuery::default() }).await.unwrap();
        assert_eq!((incidents, bench.store.unreadable_alerts().await.unwrap()), (vec![], vec![]), "it is no incident");
        run_once(bench, Status::Succeeded).await;
    });
    assert_eq!(waiting.await, [PingKind::Success]);
    let unmonitored = fails(bench, tried_again("unmonitored", Overlap::Skip), async |bench| {
        bench.put(Job { ping: None, ..tried_again("unmonitored", Overlap::Skip) }).await;
    });
    assert_eq!(unmonitored.await, []);
}
