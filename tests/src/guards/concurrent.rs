//! Stories of runs beside the job's row.

use std::time::Duration;

use carillon_domain::id::JobId;
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::{Job, Overlap, Retry};
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::Me;

use super::fixtures::{may_start, memory, pause, run, state, try_start};
use crate::conformance::StoreFixture;
use crate::conformance::fixture::{job, key};

/// A job whose runs may overlap, and which is tried again after a second.
pub fn overlapping() -> Job {
    let second = Duration::from_secs(1);
    let retry = Retry { max_attempts: 3, backoff: second, max_backoff: second };
    Job { overlap: Overlap::Allow, retry, ..job("a") }
}

/// Whatever is claimed now starts as soon as it may.
pub async fn start_what_comes(bench: &StoreFixture) -> Verdict {
    for claimed in bench.claim().await {
        bench.clock.set(bench.clock_in(0).max(claimed.held.firing.start_at));
        may_start(bench, &state(bench, "a").await, &claimed).await?;
    }
    Ok(())
}

/// It is told of the pause while it runs.
pub fn a_run_beside_fails_after_a_pause() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(overlapping()).await;
        let running = bench.run_next().await;
        pause(&bench, "a").await;
        bench.finish(running, Status::Failed).await;
        start_what_comes(&bench).await
    })
}

/// Nobody holds it when the pause comes.
pub fn a_further_attempt_waits_beside_when_a_pause_comes() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(overlapping()).await;
        let running = bench.run_next().await;
        bench.finish(running, Status::Failed).await;
        pause(&bench, "a").await;
        start_what_comes(&bench).await
    })
}

/// Its run goes on under the old rule; the next one starts under the new.
pub fn an_older_run_lives_beside_when_overlap_ends() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(overlapping()).await;
        let older = bench.run_next().await;
        bench.put(job("a")).await;
        let next = bench.claim_one().await;
        bench.go_to(20);
        let newer = try_start(&bench, Me::new(bench.me), &next).await;
        let id = state(&bench, "a").await.id;
        let live = [Some(older), newer].into_iter().flatten().map(|at| (id, at.run));
        must::one_live_run(live, |_: JobId| false)
    })
}

/// One that was asked for early starts after others of its job have.
pub fn tokens_of_all_rows() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(overlapping()).await;
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let (mut beside, mut own) = (bench.claim().await, Vec::new());
        own.extend(beside.pop_if(|claimed| claimed.held.firing.due_at > bench.clock_in(0)));
        assert_eq!((beside.len(), own.len()), (1, 1));
        bench.store.resume(&key("a"), &author()).await.expect("an answer");
        bench.go_to(10);
        let mut tokens = Vec::new();
        let own_row = bench.store.settle(bench.me, &[own[0].at]).await.expect("an answer").remove(0);
        let carillon_domain::node::port::SettleAnswer::Prepared(own) = own_row else { panic!("{own_row:?}") };
        for claimed in [&own, &beside[0]] {
            match bench.start(claimed).await {
                StartAnswer::Started { held, .. } => tokens.push(held.fencing_token),
                other => panic!("{other:?}"),
            }
        }
        must::never_decreases("the fencing token", tokens[0], tokens[1])
    })
}
