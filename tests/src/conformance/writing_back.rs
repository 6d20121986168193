//! After lost commits runs are written back into their rows, and only then the loss is accepted.

use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::id::SessionId;
use carillon_domain::job::{Job, OnLost, Overlap, Retry};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, RowKey, RunRef, StartAnswer};
use carillon_domain::run::Status;
use carillon_domain::store::Refusal;
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::{ControlError, KnownRun, Me, RunStage, WriteBackAnswer, WriteBackRequest};

use super::fixture::{StoreFixture, at, ending, job};

/// How long a session may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

async fn beat(bench: &StoreFixture, me: Me) {
    let answer = bench.store.heartbeat(me, me.acked + 1, false).await.unwrap();
    assert!(matches!(answer, BeatAnswer::Alive { .. }), "{answer:?}");
}

/// A heartbeat is acknowledged, and what follows is lost.
async fn keep(bench: &StoreFixture) {
    bench.go_to(5);
    beat(bench, Me::new(bench.me)).await;
    bench.back_up().await;
    beat(bench, Me { session: bench.me, acked: 1 }).await;
}

/// The session as it is once its loss was noticed.
fn me(bench: &StoreFixture) -> Me {
    Me { session: bench.me, acked: 3 }
}

async fn go_back(bench: &StoreFixture) {
    bench.restore().await;
    beat(bench, Me { session: bench.me, acked: 2 }).await;
}

async fn until(bench: &StoreFixture) -> Timestamp {
    bench.store.recorded_losses().await.unwrap().last().expect("a window").window.until_at
}

async fn start(bench: &StoreFixture, claimed: &Claimed) -> KnownRun {
    match bench.start(claimed).await {
        StartAnswer::Started { at, held, .. } => KnownRun { at, held, ended: None },
        other => panic!("{} did not start: {other:?}", claimed.job.name),
    }
}

async fn ended(bench: &StoreFixture, run: KnownRun, status: Status) -> KnownRun {
    bench.finish(run.at, status).await;
    KnownRun { ended: Some(ending(status, bench.store.now().await.unwrap())), ..run }
}

/// Writes back everything that a session knows.
async fn write_back(bench: &StoreFixture, me: Me, runs: Vec<KnownRun>) -> Option<Vec<WriteBackAnswer>> {
    let request = WriteBackRequest { me, until: until(bench).await, runs, last: true };
    bench.store.write_back(&request).await.unwrap()
}

fn row_of(answer: Option<Vec<WriteBackAnswer>>) -> RunRef {
    match answer.as_deref() {
        Some([WriteBackAnswer::Executing { at, .. }]) => *at,
        other => panic!("{other:?}"),
    }
}

async fn accept(bench: &StoreFixture) -> Result<usize, ControlError> {
    Ok(bench.store.accept_losses(PATIENCE, &author()).await?.len())
}

/// The second in which everything that was forgotten is dead.
async fn accept_in_time(bench: &StoreFixture) {
    bench.clock.set(until(bench).await + PATIENCE);
    assert_eq!(accept(bench).await.unwrap(), 1);
}

/// The row went back to Idle. Its run is there again, is no second time started, and ends as any other.
pub async fn a_living_run_has_its_row_again(bench: &StoreFixture) {
    bench.create(job("a")).await;
    keep(bench).await;
    bench.go_to(10);
    let claimed = bench.claim_one().await;
    let run = start(bench, &claimed).await;
    go_back(bench).await;
    assert_eq!(bench.view("a").await.state.phase, Phase::Idle);
    let at = row_of(write_back(bench, me(bench), vec![run.clone()]).await);
    assert_eq!(at.row, run.at.row, "it waited there");
    assert!(at.version > run.held.fencing_token, "above every token of the lost commits");
    let row = bench.view("a").await.state;
    assert_eq!((row.phase, row.version), (Phase::Executing(run.held), at.version));
    let again = row_of(write_back(bench, me(bench), vec![run.clone()]).await);
    assert_eq!(again, at, "a second time changes nothing");
    accept_in_time(bench).await;
    assert!(bench.claim().await.is_empty(), "it runs");
    bench.finish(at, Status::Succeeded).await;
    assert_eq!(
        bench.records("a").await.last().map(|record| (record.id, record.status)),
        Some((run.held.run, Status::Succeeded))
    );
    bench.go_to(40);
    let next = bench.claim_one().await;
    assert!(next.held.firing.due_at > claimed.held.firing.due_at, "{next:?}");
}

/// The row is armed for an older firing whose run nobody remembers. The run stands beside it and keeps others from starting.
pub async fn a_run_whose_row_stands_elsewhere_gets_one_beside_it(bench: &StoreFixture) {
    bench.create(Job { on_lost: OnLost::Rerun, ..job("a") }).await;
    keep(bench).await;
    bench.go_to(10);
    let forgotten = bench.run_next().await;
    bench.finish(forgotten, Status::Succeeded).await;
    bench.go_to(20);
    let claimed = bench.claim_one().await;
    let run = start(bench, &claimed).await;
    go_back(bench).await;
    let beside = row_of(write_back(bench, me(bench), vec![run.clone()]).await);
    assert!(matches!(beside.row, RowKey::Concurrent(_)), "{beside:?}");
    accept_in_time(bench).await;
    let claimed = bench.claim_one().await;
    assert_eq!(claimed.held.firing.due_at, at(40), "20 is known, and 30 passed meanwhile");
    let answer = bench.start(&claimed).await;
    assert!(!matches!(answer, StartAnswer::Started { .. }), "the older one lives: {answer:?}");
    bench.finish(beside, Status::Succeeded).await;
    let story = bench.story("a").await;
    let lost: Vec<_> = story.iter().filter(|(.., status, _)| *status == "lost").map(|one| (one.0, one.1)).collect();
    assert_eq!(lost, [(10, 10)], "{story:?}");
    assert!(story.iter().any(|one| (one.1, one.2) == (20, "succeeded")), "{story:?}");
}

/// The record of a run that ended is lost. It is kept again, once, and the row goes on behind it.
pub async fn an_end_that_was_lost_is_recorded_again(bench: &StoreFixture) {
    bench.create(job("a")).await;
    keep(bench).await;
    bench.go_to(10);
    let claimed = bench.claim_one().await;
    let run = start(bench, &claimed).await;
    let run = ended(bench, run, Status::Succeeded).await;
    go_back(bench).await;
    assert!(bench.records("a").await.is_empty());
    for _ in 0..2 {
        assert_eq!(write_back(bench, me(bench), vec![run.clone()]).await, Some(vec![WriteBackAnswer::Recorded]));
        assert_eq!(bench.story("a").await, [(10, 10, "succeeded", String::new())]);
    }
    accept_in_time(bench).await;
    bench.go_to(31);
    bench.claim().await;
    let story = bench.story("a").await;
    assert!(story.iter().filter(|one| one.0 == 10).count() == 1, "{story:?}");
}

/// A run failed and its second attempt succeeded. Its node comes late, after that of the second attempt: nothing runs a third time.
pub async fn a_firing_that_was_tried_again_is_not_run_once_more(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 2, backoff: Duration::from_secs(1), ..Retry::default() };
    bench.create(Job { retry, on_lost: OnLost::Rerun, ..job("a") }).await;
    keep(bench).await;
    bench.go_to(10);
    let claimed = bench.claim_one().await;
    let first = start(bench, &claimed).await;
    let first = ended(bench, first, Status::Failed).await;
    bench.go_to(12);
    let claimed = bench.claim_one().await;
    let second = start(bench, &claimed).await;
    assert_eq!(second.held.firing.attempt, 2);
    let second = ended(bench, second, Status::Succeeded).await;
    go_back(bench).await;
    let attempts = async || {
        let records = bench.records("a").await;
        let of_second_10 = records.iter().filter(|record| record.due_at == at(10));
        let mut told: Vec<_> = of_second_10.map(|record| (record.attempt, record.status)).collect();
        told.sort_unstable_by_key(|(attempt, _)| *attempt);
        told
    };
    for run in [second, first] {
        assert_eq!(write_back(bench, me(bench), vec![run]).await, Some(vec![WriteBackAnswer::Recorded]));
    }
    let both = [(1, Status::Failed), (2, Status::Succeeded)];
    assert_eq!(attempts().await, both);
    accept_in_time(bench).await;
    bench.go_to(60);
    let claimed = bench.claim().await;
    assert!(claimed.iter().all(|one| one.held.firing.due_at > at(10)), "{claimed:?}");
    assert_eq!(attempts().await, both);
}

/// Several runs of a job that allows overlap, one of which has ended.
pub async fn runs_beside_are_written_back_too(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, ..job("a") }).await;
    keep(bench).await;
    let mut runs = Vec::new();
    for secs in [10, 20, 30] {
        bench.go_to(secs);
        let claimed = bench.claim_one().await;
        runs.push(start(bench, &claimed).await);
    }
    runs[1] = ended(bench, runs[1].clone(), Status::Failed).await;
    go_back(bench).await;
    let answers = write_back(bench, me(bench), runs.clone()).await.expect("answers");
    assert!(matches!(answers[1], WriteBackAnswer::Recorded), "{answers:?}");
    let living = bench.runs("a").await.into_iter().filter(|run| matches!(run.stage, RunStage::Running { .. }));
    let mut living: Vec<_> = living.map(|run| run.id).collect();
    living.sort_unstable();
    assert_eq!(living, [runs[0].held.run, runs[2].held.run]);
    assert_eq!(bench.story("a").await, [(20, 20, "failed", String::new())]);
    assert_eq!(bench.view("a").await.state.armed.map(|armed| armed.due_at), Some(at(40)));
}

/// A job that only the lost commits knew has no row to write to.
pub async fn a_run_of_a_job_that_is_forgotten_has_no_row(bench: &StoreFixture) {
    keep(bench).await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.clock.set(claimed.held.firing.start_at);
    let run = start(bench, &claimed).await;
    go_back(bench).await;
    assert_eq!(write_back(bench, me(bench), vec![run]).await, Some(vec![WriteBackAnswer::Nowhere]));
}

/// Only while a loss is open, and only for a session that lives.
pub async fn nothing_is_written_where_nothing_is_open(bench: &StoreFixture) {
    bench.create(job("a")).await;
    bench.go_to(10);
    let claimed = bench.claim_one().await;
    let run = start(bench, &claimed).await;
    let request = |me: Me| WriteBackRequest { me, until: at(10), runs: vec![run.clone()], last: true };
    let before = bench.view("a").await.state;
    assert_eq!(bench.store.write_back(&request(Me::new(bench.me))).await.unwrap(), None, "nothing is open");
    assert_eq!(bench.store.write_back(&request(Me::new(SessionId::from_random(9)))).await.unwrap(), None, "no session");
    assert_eq!(bench.view("a").await.state, before);
}

/// Each live session says that it has written back; one that is silent for long enough does not count.
pub async fn a_loss_is_accepted_once_every_live_session_has_written_back(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let other = bench.session(2).await;
    let refused = async || match accept(bench).await {
        Err(ControlError::Refused(Refusal::StillUnknown(still))) => still.nodes,
        other => panic!("{other:?}"),
    };
    keep(bench).await;
    bench.go_to(12);
    go_back(bench).await;
    assert_eq!(refused().await, ["node-1", "node-2"]);
    assert_eq!(write_back(bench, me(bench), vec![]).await, Some(vec![]));
    assert_eq!(refused().await, ["node-2"]);
    bench.go_to(30);
    beat(bench, Me::new(other)).await;
    bench.go_to(32);
    assert_eq!(refused().await, ["node-2"], "it lives");
    assert_eq!(write_back(bench, Me { session: other, acked: 1 }, vec![]).await, Some(vec![]));
    assert_eq!(accept(bench).await.unwrap(), 1);
    assert_eq!(accept(bench).await.unwrap(), 0, "once");
}

/// A node that died, and those that the database has forgotten, are dead after their time.
pub async fn a_node_that_is_dead_holds_nothing_up_for_long(bench: &StoreFixture) {
    bench.session(2).await;
    keep(bench).await;
    bench.go_to(12);
    go_back(bench).await;
    write_back(bench, me(bench), vec![]).await;
    bench.go_to(31);
    let Err(ControlError::Refused(refusal)) = accept(bench).await else { panic!("refused") };
    assert!(refusal.to_string().contains("node-2"), "{refusal}");
    bench.go_to(32);
    assert_eq!(accept(bench).await.unwrap(), 1);
}
