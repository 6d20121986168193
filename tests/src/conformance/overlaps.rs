//! Runs beside the job's row, and those that must not overlap them.

use std::time::Duration;

use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap, Retry};
use carillon_domain::node::port::{FinishAnswer, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_doubles::author;

use super::fixture::{StoreFixture, at, job, key};

fn of(overlap: Overlap) -> Job {
    Job { overlap, ..job("a") }
}

/// S1 after an update: `skip` records what comes due while one lives, `delay` waits.
pub async fn older_runs_beside_are_waited_for(bench: &StoreFixture) {
    bench.create(of(Overlap::Allow)).await;
    let older = [bench.run_next().await, bench.run_next().await];
    bench.put(of(Overlap::Skip)).await;
    let claimed = bench.claim_one().await;
    bench.go_to(30);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
    assert_eq!(bench.story("a").await, [(30, 30, "skipped", "overlap".into())]);

    bench.put(of(Overlap::Delay)).await;
    bench.go_to(40);
    for (second, running) in older.into_iter().enumerate() {
        let claimed = bench.claim_one().await;
        assert_eq!(claimed.held.firing.due_at, at(40));
        bench.go_to(41 + second as u64);
        assert_eq!(bench.start(&claimed).await, StartAnswer::Gone, "run {second} lives");
        bench.finish(running, Status::Succeeded).await;
    }
    let claimed = bench.claim_one().await;
    assert_eq!(claimed.held.firing.start_at, at(43), "the store was not asked all the time");
    bench.go_to(43);
    bench.started(&claimed).await;
    assert_eq!(bench.records("a").await.len(), 3, "and is no misfire");
}

/// S1 after an update: `replace` asks all of them to end.
pub async fn older_runs_beside_are_replaced(bench: &StoreFixture) {
    bench.create(of(Overlap::Allow)).await;
    let older = [bench.run_next().await, bench.run_next().await];
    bench.put(of(Overlap::Replace)).await;
    let claimed = bench.claim_one().await;
    bench.go_to(30);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
    let mut cancels = bench.peek().await.cancels;
    cancels.sort_unstable();
    assert_eq!(cancels, older.map(|running| running.run));
    for running in older {
        bench.finish(running, Status::Cancelled).await;
    }
    assert_eq!(bench.story("a").await[1], (20, 20, "cancelled", "replaced".into()));
    let claimed = bench.claim_one().await;
    assert_eq!(claimed.held.firing.due_at, at(30));
    bench.go_to(31);
    bench.started(&claimed).await;
}

/// `catch_up` says one at a time.
pub async fn a_backlog_runs_one_at_a_time_though_overlap_is_allowed(bench: &StoreFixture) {
    let misfire = Misfire { policy: MisfirePolicy::CatchUp, grace: Duration::ZERO };
    bench.create(Job { misfire, ..of(Overlap::Allow) }).await;
    bench.go_to(35);
    for due in [10, 20, 30] {
        let claimed = bench.claim_one().await;
        assert_eq!(claimed.held.firing.due_at, at(due));
        let running = bench.started(&claimed).await;
        assert!(bench.claim().await.is_empty(), "one at a time");
        bench.finish(running, Status::Succeeded).await;
    }
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(40));
}

/// S7, whichever table a run starts in.
pub async fn tokens_grow_over_all_rows_of_a_job(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 5, backoff: Duration::from_secs(1), max_backoff: Duration::from_secs(1) };
    bench.create(Job { retry, ..of(Overlap::Allow) }).await;
    let mut last = 0;
    for second in 10..40 {
        bench.go_to(second);
        for claimed in bench.claim().await {
            let SettleAnswer::Prepared(claimed) = bench.store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0)
            else {
                panic!("not prepared");
            };
            if claimed.held.firing.start_at > at(second) {
                bench.store.release(bench.me, &[claimed.at]).await.unwrap();
                continue;
            }
            let StartAnswer::Started { at, held, .. } = bench.start(&claimed).await else { panic!("not started") };
            assert!(held.fencing_token > last, "second {second}: {} after {last}", held.fencing_token);
            last = held.fencing_token;
            assert_ne!(bench.finish(at, Status::Failed).await, FinishAnswer::AlreadyGone);
        }
    }
    assert_eq!(bench.records("a").await.len(), 15);
}

/// A start at an older version of a row that still carries the run is to be settled, not given up.
pub async fn a_row_that_was_written_to_since_says_so(bench: &StoreFixture) {
    bench.create(of(Overlap::Allow)).await;
    let claimed = bench.claim_one().await;
    bench.store.trigger(&key("a"), bench.draw(), &author()).await.unwrap();
    bench.go_to(10);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Moved);
    let SettleAnswer::Prepared(settled) = bench.store.settle(bench.me, &[claimed.at]).await.unwrap().remove(0) else {
        panic!("not prepared");
    };
    bench.started(&settled).await;
}
