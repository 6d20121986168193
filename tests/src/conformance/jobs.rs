//! Storing jobs.

use carillon_domain::job::Job;
use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{Change, ControlError, PutIf, PutJob};

use super::fixture::{StoreFixture, at, job, key};

/// Create, unchanged, replaced; due times are computed anew only where the timing changed.
pub async fn creates_replaces_and_leaves_unchanged(bench: &StoreFixture) {
    let created = bench.create(job("a")).await;
    assert_eq!((created.state.generation, created.state.next_due_at()), (1, Some(at(10))));
    assert_eq!(created.job.as_ref(), &job("a"));
    bench.go_to(4);
    let same = bench.put(job("a")).await;
    assert_eq!((same.change, same.view.state.version), (Change::Unchanged, created.state.version));

    let other = Job { params: r#"{"command":"true"}"#.into(), ..job("a") };
    let replaced = bench.put(other.clone()).await;
    assert_eq!(replaced.change, Change::Updated);
    assert_eq!((replaced.view.state.generation, replaced.view.state.next_due_at()), (2, Some(at(10))));
    assert_eq!((replaced.view.created_at, replaced.view.updated_at), (at(0), at(4)));

    let timing = bench.put(Job { schedule: "@every 60s".into(), ..other }).await;
    assert_eq!((timing.view.state.generation, timing.view.state.next_due_at()), (3, Some(at(64))));
    assert_eq!(bench.view("a").await, timing.view);
    assert_eq!(bench.put_if(job("a"), None, PutIf::Absent).await.unwrap_err().to_string(), taken().to_string());
}

fn taken() -> ControlError {
    ControlError::Refused(Refusal::NameTaken(key("a")))
}

/// A refused job leaves the others of its batch alone.
pub async fn one_refused_job_does_not_hold_up_the_batch(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let over = Job { end_at: Some(Timestamp::from_ms(5)), ..job("over") };
    let put = |job, when| PutJob { job, paused: None, when, author: author() };
    let puts = [
        put(job("b"), PutIf::Any),
        put(job("a"), PutIf::Absent),
        put(over, PutIf::Any),
        put(job("ghost"), PutIf::Generation(1)),
        put(job("c"), PutIf::Absent),
    ];
    let answers = bench.store.put_jobs(&puts).await.unwrap();
    let names: Vec<_> = answers.iter().map(|answer| answer.as_ref().map(|saved| saved.view.job.name.clone())).collect();
    assert_eq!((names[0].clone().unwrap(), names[4].clone().unwrap()), ("b".into(), "c".into()));
    assert_eq!(names[1], Err(&taken()));
    assert!(matches!(names[2], Err(ControlError::Refused(Refusal::Rejected(_)))), "{:?}", names[2]);
    assert!(matches!(names[3], Err(ControlError::Refused(Refusal::NoJob(_)))), "{:?}", names[3]);
    assert!(bench.store.job(&key("over")).await.is_err());
}

/// The second put of a name sees the first.
pub async fn a_name_twice_in_one_batch_is_put_twice(bench: &StoreFixture) {
    let put = |params: &str| PutJob {
        job: Job { params: params.into(), ..job("a") },
        paused: None,
        when: PutIf::Any,
        author: author(),
    };
    let answers = bench.store.put_jobs(&[put("1"), put("2"), put("2")]).await.unwrap();
    let changes: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().change).collect();
    assert_eq!(changes, [Change::Created, Change::Updated, Change::Unchanged]);
    assert_eq!(bench.view("a").await.job.params, "2");
}

/// `If-Match`.
pub async fn a_lost_update_is_refused(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let new = |params: &str| Job { params: params.into(), ..job("a") };
    bench.put_if(new("1"), None, PutIf::Generation(1)).await.unwrap();
    let stale = ControlError::Refused(Refusal::Stale { expected: 1, current: 2 });
    assert_eq!(bench.put_if(new("2"), None, PutIf::Generation(1)).await.unwrap_err(), stale);
    assert_eq!(bench.store.delete_job(&key("a"), Some(1), &author()).await.unwrap_err(), stale);
    assert_eq!(bench.view("a").await.job.params, "1");
    bench.store.delete_job(&key("a"), Some(2), &author()).await.unwrap();
    assert!(matches!(
        bench.store.delete_job(&key("a"), None, &author()).await,
        Err(ControlError::Refused(Refusal::NoJob(_)))
    ));
}

/// A put without `paused` does not unpause; one with it does both in one commit.
pub async fn pausing_with_a_put(bench: &StoreFixture) {
    let paused = bench.put_if(job("a"), Some(true), PutIf::Any).await.unwrap();
    assert!(paused.view.pause().is_some());
    assert!(bench.claim().await.is_empty());
    let silent = bench.put_if(Job { params: "1".into(), ..job("a") }, None, PutIf::Any).await.unwrap();
    assert!(silent.view.pause().is_some());
    let again = bench.put_if(silent.view.job.as_ref().clone(), Some(true), PutIf::Any).await.unwrap();
    assert_eq!(again.change, Change::Unchanged);
    let resumed = bench.put_if(silent.view.job.as_ref().clone(), Some(false), PutIf::Any).await.unwrap();
    assert_eq!(resumed.change, Change::Updated);
    assert!(resumed.view.pause().is_none());
    assert_eq!(bench.claim().await.len(), 1);
}
