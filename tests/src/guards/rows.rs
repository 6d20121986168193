//! Stories of a job's row.

use carillon_domain::firing::{Event, JobState, Phase, TransitionKind, apply};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::SettleAnswer;
use carillon_domain::run::{Status, Trigger};
use carillon_doubles::author;
use carillon_store::Me;

use super::fixtures::{child_has_its_row, may_start, memory, pause, run, state, try_start};
use crate::conformance::StoreFixture;
use crate::conformance::fixture::{at, job, key};

/// Claims for another session.
async fn claim_as(
    bench: &StoreFixture,
    session: carillon_domain::id::SessionId,
) -> Vec<carillon_domain::node::port::Claimed> {
    bench.store.claim(&bench.claim_request(session, bench.clock_in(30), 10)).await.expect("an answer")
}

/// A manual run waits while another firing is prepared: the row has something that is due, and somebody who holds it.
pub fn another_claims_what_is_held() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(Job { overlap: Overlap::Delay, ..job("a") }).await;
        bench.claim_one().await;
        bench.go_to(10);
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let before = state(&bench, "a").await;
        let other = bench.session(2).await;
        claim_as(&bench, other).await;
        let after = state(&bench, "a").await;
        must::prepared_is_kept(&before.phase, Some(&after.phase), TransitionKind::Claimed)
    })
}

/// The answer to a finish was lost, and by the time it is repeated the next firing runs.
pub fn a_finish_is_repeated_after_the_next_start() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let first = bench.run_next().await;
        bench.finish(first, Status::Succeeded).await;
        let second = bench.run_next().await;
        bench.finish(first, Status::Succeeded).await;
        child_has_its_row(&bench, bench.me, second.run).await
    })
}

/// A manual run keeps its id: it was swept from one session and runs in another when the first one says that it ended.
pub fn a_finish_speaks_of_a_manual_run_that_another_has() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let mine = bench.claim_one().await;
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        bench.store.sweep(bench.me, 10).await.expect("an answer");
        let other = bench.session(2).await;
        let theirs = claim_as(&bench, other).await.remove(0);
        assert_eq!(theirs.at.run, mine.at.run, "it keeps its id");
        try_start(&bench, Me::new(other), &theirs).await.expect("it starts");
        bench.finish(mine.at, Status::Succeeded).await;
        child_has_its_row(&bench, other, theirs.at.run).await
    })
}

/// A row that was swept, and that another session has taken since.
pub fn a_sweep_meets_what_another_holds() -> Verdict {
    run(async {
        let bench = memory().await;
        let view = bench.create(job("a")).await;
        let running = bench.run_next().await;
        let row = state(&bench, "a").await;
        let timeline = view.job.timeline(row.anchor_at).expect("a schedule");
        let gone = bench.session(2).await;
        let swept = apply(&view.job, &timeline, &row, &Event::Sweep { session: gone }, bench.clock_in(0));
        let after = swept.ok().map_or(Some(row), |transition| transition.next);
        must::child_has_its_row(bench.me, running.run, after.map(|row: JobState| row.phase).as_ref())
    })
}

/// A node whose clock runs ahead.
pub fn a_start_comes_early() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        may_start(&bench, &state(&bench, "a").await, &claimed).await
    })
}

/// A node that was busy for longer than the grace.
pub fn a_start_comes_late() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        bench.go_to(60);
        may_start(&bench, &state(&bench, "a").await, &claimed).await
    })
}

/// The node settles and asks again, as it does when its row was written to.
pub fn a_pause_meets_what_is_prepared() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        pause(&bench, "a").await;
        bench.go_to(10);
        let seen = bench.store.settle(bench.me, &[claimed.at]).await.expect("an answer").remove(0);
        let SettleAnswer::Prepared(settled) = seen else { return Ok(()) };
        may_start(&bench, &state(&bench, "a").await, &settled).await
    })
}

/// The firing that was armed before the pause is due as well.
pub fn a_manual_run_of_a_paused_job() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        pause(&bench, "a").await;
        bench.go_to(10);
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let claimed = bench.claim_one().await;
        may_start(&bench, &state(&bench, "a").await, &claimed).await
    })
}

/// After the deletion was answered: whatever is claimed and starts.
async fn starts_after_deletion(bench: &StoreFixture, before: JobState) -> Verdict {
    let deleted = JobState { deleted: true, ..before };
    for claimed in bench.claim().await {
        bench.clock.set(bench.clock_in(0).max(claimed.held.firing.start_at));
        may_start(bench, &deleted, &claimed).await?;
    }
    Ok(())
}

/// A run that lives may finish; then the row goes.
pub fn a_run_ends_after_its_job_was_deleted() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let running = bench.run_next().await;
        let before = state(&bench, "a").await;
        bench.store.delete_job(&key("a"), None, &author()).await.expect("an answer");
        bench.finish(running, Status::Succeeded).await;
        starts_after_deletion(&bench, before).await
    })
}

/// The start was applied and its answer lost; the node finds the deletion and gives the row back.
pub fn a_start_in_doubt_is_given_back_after_its_job_was_deleted() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        bench.go_to(10);
        bench.started(&claimed).await;
        let before = state(&bench, "a").await;
        bench.store.delete_job(&key("a"), None, &author()).await.expect("an answer");
        let seen = bench.store.settle(bench.me, &[claimed.at]).await.expect("an answer").remove(0);
        let SettleAnswer::Executing { at, withdrawn: true, .. } = seen else { panic!("{seen:?}") };
        bench.store.release(bench.me, &[at]).await.expect("an answer");
        starts_after_deletion(&bench, before).await
    })
}

/// The start was applied and its answer lost; the job is paused before the node settles.
pub fn a_start_in_doubt_is_settled_after_a_pause() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let claimed = bench.claim_one().await;
        bench.go_to(10);
        bench.started(&claimed).await;
        pause(&bench, "a").await;
        let seen = bench.store.settle(bench.me, &[claimed.at]).await.expect("an answer").remove(0);
        // Only what is not withdrawn is spawned.
        let SettleAnswer::Executing { withdrawn: false, .. } = seen else { return Ok(()) };
        must::starts_where_allowed(&state(&bench, "a").await, Trigger::Schedule, bench.clock_in(0))
    })
}

/// A start that was given back has moved the cursor to its own due time.
pub fn a_manual_run_is_lost_before_what_was_given_back() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        let running = bench.run_next().await;
        bench.store.release(bench.me, &[running]).await.expect("an answer");
        // The clock is set back, so that a person asks before the time of what was given back.
        bench.go_to(5);
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let manual = bench.claim_one().await;
        bench.started(&manual).await;
        bench.go_to(11);
        let before = state(&bench, "a").await;
        bench.store.expire(None, bench.me, 0).await.expect("an answer");
        bench.store.sweep(bench.me, 10).await.expect("an answer");
        let after = state(&bench, "a").await;
        assert_eq!(after.phase, Phase::Idle);
        must::row_goes_forward(&before, &after)
    })
}

/// A reset that was long on its way finds the run that it speaks of: a manual run keeps its id from claim to claim.
pub fn a_stray_reset_lands_on_the_same_manual_run() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.create(job("a")).await;
        bench.store.trigger(&key("a"), bench.draw(), &author()).await.expect("an answer");
        let first = bench.claim_one().await;
        bench.store.release(bench.me, &[first.at]).await.expect("an answer");
        let again = bench.claim_one().await;
        let running = bench.started(&again).await;
        bench.store.release(bench.me, &[first.at]).await.expect("an answer");
        child_has_its_row(&bench, bench.me, running.run).await
    })
}

/// Tokens of a name must grow, whatever the clock does.
pub fn a_name_is_used_again_after_the_clock_was_set_back() -> Verdict {
    run(async {
        let bench = memory().await;
        bench.go_to(100);
        bench.create(job("a")).await;
        let first = bench.run_next().await;
        bench.store.delete_job(&key("a"), None, &author()).await.expect("an answer");
        bench.finish(first, Status::Succeeded).await;
        bench.clock.set(at(0));
        bench.create(job("a")).await;
        let second = bench.run_next().await;
        must::never_decreases("the fencing token", first.version, second.version)
    })
}
