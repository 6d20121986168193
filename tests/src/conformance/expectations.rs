//! Expectations: due times that did not start or succeed in time are told once, also where nobody was there.

use std::time::Duration;

use carillon_domain::alert::{Expect, State, When};
use carillon_domain::job::Job;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::alerts::Watched;

use super::alerts::{notices, put, route, run_once, step};
use super::fixture::{StoreFixture, at, job, key};

/// A job of each hour that starts within a minute.
fn punctual(name: &str) -> Job {
    let expect = Some(Expect { start_within: Some(Duration::from_secs(60)), ..Expect::default() });
    Job { schedule: "@every 3600s".into(), expect, ..job(name) }
}

async fn watch(bench: &StoreFixture) -> Watched {
    bench.store.watch_expectations(100).await.unwrap()
}

async fn told(bench: &StoreFixture) -> Vec<(When, State)> {
    notices(bench).await.into_iter().map(|notice| (notice.when, notice.state)).collect()
}

/// Everything was down for hours: the due times are told once, together, and with the times that were meant.
pub async fn what_broke_while_everything_was_down_is_told_once(bench: &StoreFixture) {
    bench.create(punctual("a")).await;
    put(bench, &route("ops", &[When::LateStart])).await;
    bench.go_to(5 * 3_600 + 100);
    let (one, two) = tokio::join!(watch(bench), watch(bench));
    assert_eq!(one.verdicts + two.verdicts, 1, "two nodes looked");
    assert_eq!(watch(bench).await.verdicts, 0);
    assert_eq!(step(bench).await.notices, 1);
    assert_eq!(step(bench).await.notices, 0);
    let notice = notices(bench).await.remove(0);
    assert_eq!((notice.when, notice.due_at, notice.job.as_deref()), (When::LateStart, Some(at(5 * 3_600)), Some("a")));
    assert!(notice.sentence.contains('5'), "{}", notice.sentence);
}

/// A due time in time is no news, unless one before it was late.
pub async fn an_expectation_that_is_kept_again_ends_the_trouble(bench: &StoreFixture) {
    bench.create(punctual("a")).await;
    put(bench, &route("ops", &[When::LateStart, When::Recovered])).await;
    bench.go_to(3_590);
    run_once(bench, Status::Succeeded).await;
    bench.go_to(3_700);
    assert_eq!((watch(bench).await.verdicts, step(bench).await.notices), (0, 0));
    bench.go_to(7_300);
    assert_eq!((watch(bench).await.verdicts, step(bench).await.notices), (1, 1));
    bench.go_to(10_790);
    run_what_is_due(bench).await;
    bench.go_to(10_900);
    assert_eq!((watch(bench).await.verdicts, step(bench).await.notices), (1, 1));
    assert_eq!(told(bench).await, [(When::LateStart, State::Open), (When::LateStart, State::Recovered)]);
}

/// Nobody has judged the late start when the next due time is in time.
pub async fn what_is_kept_again_before_the_next_step_ends_the_trouble(bench: &StoreFixture) {
    bench.create(punctual("a")).await;
    put(bench, &route("ops", &[When::LateStart, When::Recovered])).await;
    bench.go_to(3_700);
    assert_eq!(watch(bench).await.verdicts, 1);
    bench.go_to(7_190);
    run_what_is_due(bench).await;
    bench.go_to(7_300);
    watch(bench).await;
    step(bench).await;
    assert_eq!(told(bench).await, [(When::LateStart, State::Open), (When::LateStart, State::Recovered)]);
}

async fn run_what_is_due(bench: &StoreFixture) {
    while let Some(claimed) = bench.claim().await.pop() {
        bench.clock.set(bench.clock_in(0).max(claimed.held.firing.start_at));
        let running = bench.started(&claimed).await;
        bench.finish(running, Status::Succeeded).await;
    }
}

/// Nobody is told of a job that was deleted, or of which nothing is expected any more.
pub async fn those_of_a_deleted_job_are_dropped(bench: &StoreFixture) {
    for name in ["a", "b"] {
        bench.create(punctual(name)).await;
    }
    put(bench, &route("ops", &[When::LateStart])).await;
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    bench.put(Job { expect: None, ..punctual("b") }).await;
    bench.go_to(3_700);
    assert_eq!(watch(bench).await.verdicts, 0);
    assert_eq!(watch(bench).await, Watched::default());
    assert_eq!(step(bench).await.notices, 0);
}

/// A change of the definition neither forgets a due time under watch nor judges those from before the expectation.
pub async fn a_change_of_the_job_keeps_what_is_under_watch(bench: &StoreFixture) {
    let plain = Job { expect: None, ..punctual("a") };
    bench.create(plain.clone()).await;
    put(bench, &route("ops", &[When::LateStart])).await;
    bench.go_to(3_700);
    bench.put(punctual("a")).await;
    assert_eq!(watch(bench).await.verdicts, 0, "nothing was expected of that due time");
    bench.go_to(7_210);
    bench.put(Job { labels: [("team".into(), "data".into())].into(), ..punctual("a") }).await;
    bench.go_to(7_300);
    assert_eq!(watch(bench).await.verdicts, 1);
    assert_eq!(step(bench).await.notices, 1);
    assert_eq!(notices(bench).await[0].due_at, Some(at(7_200)));
    bench.put(plain).await;
    bench.go_to(10_900);
    bench.put(punctual("a")).await;
    assert_eq!(watch(bench).await.verdicts, 0);
}

/// A look tells when the next one is due.
pub async fn a_look_tells_when_the_next_is_due(bench: &StoreFixture) {
    assert_eq!(watch(bench).await, Watched::default());
    bench.create(punctual("a")).await;
    let first = watch(bench).await;
    assert_eq!((first.jobs, first.verdicts), (1, 0));
    let next = first.next_look.unwrap();
    assert!(next > at(3_660) && next < at(3_670), "{next}");
    assert_eq!(watch(bench).await, Watched { next_look: Some(next), ..Watched::default() });
}
