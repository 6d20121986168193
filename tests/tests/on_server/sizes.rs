//! The largest of everything, by the server's own clock.

use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::job::Job;
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::Me;
use carillon_store::mysql::Options;
use carillon_store::{ControlStore, Finished, NewSession, NodeStore, Output, PutIf, PutJob};
use carillon_tests::conformance::fixture::{ending, job, key, refs};

use super::{open, server, wait_until};

#[tokio::test]
async fn large_definitions_and_outputs_fit_and_the_servers_clock_is_the_clock() {
    let database = server().database().await;
    let store = open(&database.url(), Options { clock: None, ..Options::default() }).await;
    let me = SessionId::from_random(1);
    let new = NewSession { id: me, node: "n".into(), address: "a".into(), version: "v".into() };
    let opened = store.open_session(&new).await.unwrap();
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    assert!((opened.now.as_ms() - here).abs() < 5_000, "{} against {here}", opened.now.as_ms());
    let odd = "\"\\\u{0}é😀\n";
    let params = format!("{{\"command\":\"{}{odd}\"}}", "x".repeat(256 * 1024));
    let put = |n: usize| PutJob {
        job: Job { params: params.clone(), schedule: "@every 1s".into(), ..job(&format!("j{n}")) },
        paused: None,
        when: PutIf::Any,
        author: author(),
    };
    let puts: Vec<_> = (0..60).map(put).collect();
    assert!(store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(store.job(&key("j59")).await.unwrap().job.params, params);

    let runs = (1..=60).map(|n| carillon_domain::id::RunId::drawn(me, n)).collect();
    let until = store.now().await.unwrap() + Duration::from_secs(30);
    let request = carillon_store::ClaimRequest {
        me: Me::new(me),
        partitions: (0..opened.partitions).collect(),
        until,
        runs,
        places: 0,
        executors: vec!["shell".into()],
    };
    let claimed = store.claim(&request).await.unwrap();
    assert_eq!(claimed.len(), 60);
    let last = claimed.iter().map(|claimed| claimed.held.firing.start_at).max().unwrap();
    wait_until("all are due", async || store.now().await.unwrap() >= last).await;
    let output = Output { bytes: (0..=255).cycle().take(65 * 1024).collect(), truncated: true };
    let mut ended = Vec::new();
    for answer in store.start(Me::new(me), &refs(&claimed)).await.unwrap() {
        let StartAnswer::Started { at, .. } = answer else { panic!("{answer:?}") };
        let request = Finished {
            at,
            ending: ending(Status::Succeeded, store.now().await.unwrap()),
            next: None,
            output: Default::default(),
        };
        ended.push(Finished { output: output.clone().into(), ..request });
    }
    store.finish(Me::new(me), &ended, &[]).await.unwrap();
    assert_eq!(store.output(ended[59].at.run).await.unwrap(), Some(output));
    assert!(store.list_held(me).await.unwrap().is_empty());
}
