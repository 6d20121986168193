//! A start in the commit that claims, of what is due already.

use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap};
use carillon_domain::node::port::{Claimed, FinishAnswer, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::ClaimRequest;

use super::fixture::{StoreFixture, at, job, key};
use super::successor_claim::{claimed, finish_as};

/// A firing that falls due while a run lives waits for its end.
fn delayed(name: &str) -> Job {
    Job { overlap: Overlap::Delay, ..job(name) }
}

/// Ends a run as a node does that has a place for what comes up next.
async fn finish(bench: &StoreFixture, running: RunRef, next: RunId) -> FinishAnswer {
    finish_as(bench, bench.me, running, (next, true), "shell").await
}

async fn claim_with(bench: &StoreFixture, places: usize) -> Vec<Claimed> {
    let request = ClaimRequest { places, ..bench.claim_request(bench.me, bench.clock_in(30), 10) };
    bench.store.claim(&request).await.unwrap()
}

/// It runs, as the row says, from now on and under the token that the row has now.
async fn must_execute(bench: &StoreFixture, one: &Claimed) {
    assert_eq!((one.held.started_at, one.held.fencing_token), (Some(bench.clock_in(0)), one.at.version));
    let view = bench.view(&one.job.name).await;
    assert_eq!((view.state.phase, view.state.version), (Phase::Executing(one.held), one.at.version));
}

/// Finish, claim and start, in one commit; the next of the same job again, until nothing is due.
pub async fn a_finish_starts_what_is_due_already(bench: &StoreFixture) {
    bench.create(delayed("a")).await;
    let first = bench.run_next().await;
    bench.go_to(21);
    let second = claimed(finish(bench, first, bench.draw()).await);
    assert_eq!(second.held.firing.due_at, at(20));
    must_execute(bench, &second).await;
    assert!(bench.claim().await.is_empty(), "it is held");
    bench.go_to(22);
    let third = claimed(finish(bench, second.at, bench.draw()).await);
    assert_eq!((third.held.firing.due_at, third.held.started_at), (at(30), None), "it is not due");
    bench.go_to(30);
    bench.started(&third).await;
    let told = [(10, 10, "succeeded", String::new()), (20, 20, "succeeded", String::new())];
    assert_eq!(bench.story("a").await, told);
}

/// `catch_up`: each run of a backlog costs one commit.
pub async fn a_backlog_is_worked_off_by_finishes(bench: &StoreFixture) {
    let misfire = Misfire { policy: MisfirePolicy::CatchUp, grace: Duration::ZERO };
    bench.create(Job { misfire, ..job("a") }).await;
    bench.go_to(35);
    let mut one = claim_with(bench, 1).await.remove(0);
    let mut due = Vec::new();
    while one.held.started_at.is_some() {
        must_execute(bench, &one).await;
        due.push(one.held.firing.due_at);
        one = claimed(finish(bench, one.at, bench.draw()).await);
    }
    assert_eq!((due, one.held.firing.due_at), (vec![at(10), at(20), at(30)], at(40)));
}

/// The answer was lost: the same finish again finds what it has started, and settles it, unless it was withdrawn meanwhile.
pub async fn a_repeated_finish_settles_what_it_has_started(bench: &StoreFixture) {
    bench.create(delayed("a")).await;
    let running = bench.run_next().await;
    bench.go_to(21);
    let next = bench.draw();
    let first = claimed(finish(bench, running, next).await);
    let again = claimed(finish(bench, running, next).await);
    assert_eq!((again.held, again.at.run), (first.held, next));
    assert!(again.at.version > first.at.version, "what an earlier attempt still does matches nothing");
    assert_eq!(bench.view("a").await.state.version, again.at.version);
    assert_eq!(bench.records("a").await.len(), 1);
    bench.store.cancel(next, &author()).await.unwrap();
    assert_eq!(finish(bench, running, next).await, FinishAnswer::AlreadyGone);
    let held = bench.store.list_held(bench.me).await.unwrap();
    assert_eq!(held.len(), 1, "recovery finds it, and gives it back");
    bench.store.release(bench.me, &held).await.unwrap();
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
}

/// As many as there are places, those that came due first; what is not due is prepared.
pub async fn a_claim_starts_what_is_due_already(bench: &StoreFixture) {
    for (name, every) in [("a", "@every 10s"), ("b", "@every 11s"), ("c", "@every 12s"), ("d", "@every 25s")] {
        bench.create(Job { schedule: every.into(), ..job(name) }).await;
    }
    bench.go_to(15);
    let all = claim_with(bench, 2).await;
    let told: Vec<_> = all.iter().map(|one| (one.job.name.as_str(), one.held.started_at.is_some())).collect();
    assert_eq!(told, [("a", true), ("b", true), ("c", false), ("d", false)]);
    for one in &all[..2] {
        must_execute(bench, one).await;
        bench.finish(one.at, Status::Succeeded).await;
    }
    bench.started(&all[2]).await;
}

/// A run of a job that allows overlap goes beside its row at once; one that may not overlap those that do so still waits.
pub async fn what_starts_along_keeps_to_the_overlap(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    bench.go_to(11);
    let beside = claim_with(bench, 5).await.remove(0);
    assert!(matches!(beside.at.row, RowKey::Concurrent(_)) && beside.held.started_at.is_some(), "{beside:?}");
    bench.put(delayed("a")).await;
    bench.go_to(21);
    let waits = claim_with(bench, 5).await.remove(0);
    assert_eq!((waits.held.firing.due_at, waits.held.started_at), (at(20), None));
    assert_eq!(bench.start(&waits).await, StartAnswer::Gone);
    bench.finish(beside.at, Status::Succeeded).await;
    bench.go_to(23);
    let started = claim_with(bench, 5).await.remove(0);
    must_execute(bench, &started).await;
}

/// A newer firing takes the place of what started along as it does of any other.
pub async fn what_starts_along_is_replaced_in_its_time(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Replace, ..job("a") }).await;
    bench.go_to(11);
    let one = claim_with(bench, 5).await.remove(0);
    assert_eq!((one.held.started_at, one.replace_at), (Some(at(11)), Some(at(20))));
}

/// A manual run keeps its own id, by which its node does not know it before the answer has come.
pub async fn a_manual_run_starts_by_itself(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let run = bench.draw();
    bench.store.trigger(&key("a"), run, &author()).await.unwrap();
    let manual = claim_with(bench, 5).await.remove(0);
    assert_eq!((manual.at.run, manual.held.started_at), (run, None));
    bench.started(&manual).await;
}

/// A claim whose answer was lost: recovery settles what it has started.
pub async fn what_an_unanswered_claim_has_started_is_found(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.go_to(11);
    let one = claim_with(bench, 5).await.remove(0);
    let held = bench.store.list_held(bench.me).await.unwrap();
    assert_eq!(held, [one.at]);
    let seen = bench.store.settle(bench.me, &held).await.unwrap().remove(0);
    assert!(matches!(seen, SettleAnswer::Executing { withdrawn: false, held, .. } if held == one.held), "{seen:?}");
}
