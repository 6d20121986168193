//! A claim in the commit that finishes the run before.

use carillon_domain::firing::Phase;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::{Claimed, FinishAnswer, Next, RunRef};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::{Finished, Me};

use super::fixture::{StoreFixture, at, ending, job, key};

/// Ends a run of `session` as the machine does it: what comes up within 30 seconds is to be claimed under `run`, and, where it
/// `has_place`, started if it is due.
pub(super) async fn finish_as(
    bench: &StoreFixture,
    session: SessionId,
    running: RunRef,
    (run, has_place): (RunId, bool),
    executor: &str,
) -> FinishAnswer {
    let now = bench.store.now().await.unwrap();
    let next = Some(Next { run, until: bench.clock_in(30), has_place });
    let request = Finished { at: running, ending: ending(Status::Succeeded, now), next, output: Default::default() };
    let finished = request;
    bench.store.finish(Me::new(session), &[finished], &[executor.to_owned()]).await.unwrap().remove(0)
}

async fn finish(bench: &StoreFixture, running: RunRef, next: RunId) -> FinishAnswer {
    finish_as(bench, bench.me, running, (next, false), "shell").await
}

pub(super) fn claimed(answer: FinishAnswer) -> Claimed {
    match answer {
        FinishAnswer::RecordedAndClaimed(claimed) => *claimed,
        other => panic!("nothing was claimed along: {other:?}"),
    }
}

/// The record is kept and the next firing held, at once; it starts in its time.
pub async fn a_finish_claims_what_comes_up_next(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    let next = bench.draw();
    let claimed = claimed(finish(bench, running, next).await);
    assert_eq!((claimed.at.run, claimed.at.row), (next, running.row));
    assert_eq!((claimed.held.firing.due_at, claimed.job.name.as_str()), (at(20), "a"));
    assert_eq!(bench.view("a").await.state.phase, Phase::Prepared(claimed.held));
    assert!(bench.claim().await.is_empty(), "it is held");
    bench.go_to(20);
    let running = bench.started(&claimed).await;
    bench.finish(running, Status::Succeeded).await;
    assert_eq!(bench.story("a").await, [(10, 10, "succeeded", String::new()), (20, 20, "succeeded", String::new())]);
}

/// The answer was lost: the same finish again finds what it has claimed, as long as nobody else has written to it.
pub async fn a_finish_that_is_repeated_finds_what_it_has_claimed(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    let next = bench.draw();
    let first = claimed(finish(bench, running, next).await);
    assert_eq!(claimed(finish(bench, running, next).await), first);
    assert_eq!(bench.records("a").await.len(), 1);
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    assert_eq!(finish(bench, running, next).await, FinishAnswer::AlreadyGone);
}

/// Neither a paused job nor a deleted one, nor what is far away, nor what the node cannot run; nor one that waits for a manual
/// run, which has an id of its own.
pub async fn a_finish_claims_nothing_that_is_not_to_be_had(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Delay, ..job("asked-for") }).await;
    for name in ["paused", "deleted", "elsewhere"] {
        bench.create(job(name)).await;
    }
    bench.create(Job { schedule: "@yearly".into(), ..job("rare") }).await;
    bench.store.trigger(&key("rare"), bench.draw(), &author()).await.unwrap();
    bench.go_to(10);
    let mut running = Vec::new();
    for one in bench.claim().await {
        running.push((one.job.name.clone(), bench.started(&one).await));
    }
    assert_eq!(running.len(), 5);
    bench.store.pause(&key("paused"), None, None, &author()).await.unwrap();
    bench.store.trigger(&key("asked-for"), bench.draw(), &author()).await.unwrap();
    bench.store.delete_job(&key("deleted"), None, &author()).await.unwrap();
    for (name, running) in running {
        let executor = if name == "elsewhere" { "http" } else { "shell" };
        let answer = finish_as(bench, bench.me, running, (bench.draw(), false), executor).await;
        assert!(matches!(answer, FinishAnswer::Recorded { .. }), "{name}: {answer:?}");
    }
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
}

/// A session that was ended, or that drains, takes nothing new; what it ran is recorded or lost as ever.
pub async fn a_session_that_does_not_claim_gets_nothing_along(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.store.heartbeat(Me::new(bench.me), 1, true).await.unwrap();
    assert_eq!(finish(bench, running, bench.draw()).await, FinishAnswer::Recorded { claim_at: Some(at(20)) });

    let other = bench.session(7).await;
    let one = bench.store.claim(&bench.claim_request(other, at(30), 1)).await.unwrap().remove(0);
    bench.go_to(20);
    bench.store.start(Me::new(other), &[one.at]).await.unwrap();
    assert!(bench.store.expire(None, other, 0).await.unwrap());
    let answer = finish_as(bench, other, one.at, (bench.draw(), false), "shell").await;
    assert!(!matches!(answer, FinishAnswer::RecordedAndClaimed(_)), "{answer:?}");
}

/// A row of a session that ends then goes back as ever.
pub async fn what_was_claimed_along_is_swept_with_its_session(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    let first = claimed(finish(bench, running, bench.draw()).await);
    assert_eq!(bench.store.list_held(bench.me).await.unwrap(), [first.at]);
    assert!(bench.store.expire(None, bench.me, 0).await.unwrap());
    assert_eq!(bench.store.sweep(bench.me, 10).await.unwrap(), 1);
    let other = bench.session(7).await;
    let again = bench.store.claim(&bench.claim_request(other, at(30), 1)).await.unwrap().remove(0);
    assert_eq!((again.held.firing.due_at, again.at.run != first.at.run), (at(20), true));
}
