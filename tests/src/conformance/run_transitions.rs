//! Prepared -> Executing -> Idle.

use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap, Retry};
use carillon_domain::measured::{ClaimedAt, Usage};
use carillon_domain::node::port::{FinishAnswer, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::{Ending, Status, Trigger};
use carillon_doubles::author;
use carillon_store::{Finished, MAX_OUTPUT_BYTES, Me, Output, RunStage};

use super::fixture::{StoreFixture, at, ending, job, key, refs};

/// Not before its time by the store's clock, and only once.
pub async fn starts_on_time_only(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    assert_eq!(bench.start(&claimed).await, StartAnswer::Early { start_at: at(10) });
    bench.go_to(10);
    let StartAnswer::Started { at: running, held, replace_at } = bench.start(&claimed).await else {
        panic!("not started");
    };
    assert_eq!((running.version, held.fencing_token), (claimed.at.version + 1, claimed.at.version + 1));
    assert_eq!((held.started_at, replace_at), (Some(at(10)), None));
    assert_eq!(bench.view("a").await.state.phase, Phase::Executing(held));
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
}

/// A firing that became late after its claim: the policy makes the latest good, under the run that was claimed.
pub async fn a_late_start_carries_the_latest(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(45);
    let StartAnswer::Started { at: running, held, .. } = bench.start(&claimed).await else { panic!("not started") };
    assert_eq!((held.run, held.firing.due_at, held.firing.trigger), (claimed.at.run, at(40), Trigger::Misfire));
    assert_eq!(bench.view("a").await.state.phase, Phase::Executing(held));
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
    bench.finish(running, Status::Succeeded).await;
    let (skipped, ran) = ((10, 30, "skipped", "misfire".into()), (40, 40, "succeeded", String::new()));
    assert_eq!(bench.story("a").await, [skipped, ran]);
}

/// The same where the policy makes nothing good: the row goes back, and what comes up next is claimed.
pub async fn a_late_start_goes_back_where_misfires_are_skipped(bench: &StoreFixture) {
    let skip = Misfire { policy: MisfirePolicy::Skip, ..Misfire::default() };
    bench.create(Job { misfire: skip, ..job("a") }).await;
    let claimed = bench.claim_one().await;
    bench.go_to(45);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
    let again = bench.claim_one().await;
    assert_eq!((again.held.firing.due_at, again.held.firing.trigger), (at(50), Trigger::Schedule));
    assert_ne!(again.at.run, claimed.at.run);
    assert_eq!(bench.story("a").await, [(10, 40, "skipped", "misfire".into())]);
}

/// As many as are worth a statement for what ran and another for what was skipped.
pub async fn many_that_outlive_due_times_are_recorded_together(bench: &StoreFixture) {
    let names: Vec<String> = (0..60).map(|n| format!("job-{n}")).collect();
    for name in &names {
        bench.create(job(name)).await;
    }
    let claimed = bench.claim().await;
    bench.go_to(10);
    let answers = bench.store.start(Me::new(bench.me), &refs(&claimed)).await.unwrap();
    bench.go_to(35);
    let ended = answers.iter().map(|answer| match answer {
        StartAnswer::Started { at: running, .. } => {
            Finished { at: *running, ending: ending(Status::Succeeded, at(35)), next: None, output: Default::default() }
        }
        other => panic!("not started: {other:?}"),
    });
    let ended: Vec<_> = ended.collect();
    bench.store.finish(Me::new(bench.me), &ended, &[]).await.unwrap();
    for name in &names {
        let (ran, skipped) = ((10, 10, "succeeded", String::new()), (20, 30, "skipped", "overlap".into()));
        assert_eq!(bench.story(name).await, [ran, skipped], "{name}");
    }
}

/// `allow`: both run, each in a row of its own.
pub async fn allow_runs_beside(bench: &StoreFixture) {
    bench
        .create(Job { overlap: Overlap::Allow, retry: Retry { max_attempts: 2, ..Retry::default() }, ..job("a") })
        .await;
    let first = bench.run_next().await;
    let second = bench.run_next().await;
    assert!(matches!((first.row, second.row), (RowKey::Concurrent(_), RowKey::Concurrent(_))));
    assert_eq!(bench.store.list_held(bench.me).await.unwrap().len(), 2);
    assert_eq!(bench.view("a").await.state.next_due_at(), Some(at(30)));
    bench.finish(second, Status::Succeeded).await;
    let answer = bench.finish(first, Status::Failed).await;
    assert_eq!(answer, FinishAnswer::Recorded { claim_at: Some(at(30)) });
    bench.go_to(30);
    let claimed = bench.claim().await;
    let attempts: Vec<_> = claimed.iter().map(|one| (one.held.firing.due_at, one.held.firing.attempt)).collect();
    assert_eq!(attempts, [(at(30), 1), (at(10), 2)]);
    let answers = bench.store.start(Me::new(bench.me), &refs(&claimed)).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, StartAnswer::Started { .. })), "{answers:?}");
}

/// History keeps how long a run was prepared and what it used, alone and among others that differ.
pub async fn a_record_keeps_what_was_measured(bench: &StoreFixture) {
    let none = Usage::default();
    let large = Usage { cpu_ms: Some(1 << 40), peak_memory_kib: Some(1 << 50) };
    let told = [(Some(at(4)), large), (None, none), (Some(at(10)), Usage { cpu_ms: Some(0), ..none })];
    let mut ended = Vec::new();
    for n in 0..told.len() {
        bench.create(job(&format!("j{n}"))).await;
    }
    let claimed = bench.claim().await;
    bench.go_to(10);
    let answers = bench.store.start(Me::new(bench.me), &refs(&claimed)).await.unwrap();
    bench.go_to(12);
    for (answer, (claimed_at, usage)) in answers.iter().zip(told) {
        let StartAnswer::Started { at: running, .. } = answer else { panic!("not started: {answer:?}") };
        let claimed_at = ClaimedAt(claimed_at);
        let ending = Ending { claimed_at, usage, ..ending(Status::Succeeded, at(12)) };
        ended.push(Finished { at: *running, ending, next: None, output: Default::default() });
    }
    let last = ended.pop().expect("three ran");
    bench.store.finish(Me::new(bench.me), &ended, &[]).await.unwrap();
    bench.store.finish(Me::new(bench.me), std::slice::from_ref(&last), &[]).await.unwrap();
    for (of, (claimed_at, usage)) in ended.iter().chain([&last]).zip(told) {
        let view = bench.store.run(of.at.run).await.unwrap();
        let RunStage::Recorded { record, .. } = view.stage else { panic!("not recorded: {view:?}") };
        assert_eq!((record.claimed_at(), record.usage), (claimed_at, usage));
        let listed = bench.records(&view.key.name).await;
        assert_eq!((listed[0].claimed_at(), listed[0].usage), (claimed_at, usage));
    }
}

/// The same finish twice is one record.
pub async fn a_run_ends_once(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.go_to(13);
    assert_eq!(bench.finish(running, Status::Succeeded).await, FinishAnswer::Recorded { claim_at: Some(at(20)) });
    assert_eq!(bench.finish(running, Status::Failed).await, FinishAnswer::AlreadyGone);
    let records = bench.records("a").await;
    assert_eq!((records.len(), records[0].status, records[0].exit_code), (1, Status::Succeeded, Some(0)));
    assert_eq!((records[0].started_at, records[0].finished_at), (Some(at(10)), at(13)));
    assert_eq!(bench.store.run(running.run).await.unwrap().node.as_deref(), Some("node-1"));
    assert!(bench.store.list_held(bench.me).await.unwrap().is_empty());
}

fn finished(at: RunRef, bytes: Vec<u8>) -> Finished {
    let request = Finished {
        at,
        ending: ending(Status::Succeeded, super::fixture::at(10)),
        next: None,
        output: Default::default(),
    };
    Finished { output: Output { bytes, truncated: false }.into(), ..request }
}

/// Output belongs to its run.
pub async fn output_is_kept(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    assert_eq!(bench.store.output(running.run).await.unwrap(), None);
    bench.store.finish(Me::new(bench.me), &[finished(running, vec![0, 159, 146, 150])], &[]).await.unwrap();
    assert_eq!(bench.store.output(running.run).await.unwrap().unwrap().bytes, [0, 159, 146, 150]);
    assert_eq!(bench.store.output(bench.draw()).await.unwrap(), None);
}

/// Each attempt is a run of its own.
pub async fn a_retry_draws_a_new_run(bench: &StoreFixture) {
    let retry = Retry { max_attempts: 3, backoff: Duration::from_secs(1), max_backoff: Duration::from_secs(60) };
    bench.create(Job { retry, ..job("a") }).await;
    let mut seen = Vec::new();
    for (attempt, start) in [(1, 10), (2, 11), (3, 13)] {
        let claimed = bench.claim_one().await;
        assert_eq!((claimed.held.firing.attempt, claimed.held.firing.due_at), (attempt, at(10)));
        assert!(!seen.contains(&claimed.at.run));
        seen.push(claimed.at.run);
        bench.go_to(start);
        let running = bench.started(&claimed).await;
        bench.finish(running, Status::Failed).await;
    }
    assert_eq!(bench.records("a").await.iter().map(|record| record.attempt).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(20));
}

/// `skip`: one record for what passed meanwhile.
pub async fn overlap_skip_records_what_passed(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    bench.go_to(35);
    bench.finish(running, Status::Succeeded).await;
    let skipped = (20, 30, "skipped", "overlap".into());
    assert_eq!(bench.story("a").await, [(10, 10, "succeeded", String::new()), skipped]);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(40));
}

/// `delay`: the first waits, the others are recorded.
pub async fn overlap_delay_keeps_one_waiter(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Delay, ..job("a") }).await;
    let running = bench.run_next().await;
    bench.go_to(45);
    bench.finish(running, Status::Succeeded).await;
    let waiter = bench.claim_one().await;
    assert_eq!((waiter.held.firing.due_at, waiter.held.firing.trigger), (at(20), Trigger::Schedule));
    bench.started(&waiter).await;
    assert_eq!(bench.story("a").await[1], (30, 40, "skipped", "overlap".into()));
}

/// `replace`: the start tells when the next takes its place; the newest starts.
pub async fn overlap_replace_arms_the_newest(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Replace, ..job("a") }).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let StartAnswer::Started { at: running, replace_at, .. } = bench.start(&claimed).await else {
        panic!("not started");
    };
    assert_eq!(replace_at, Some(at(20)));
    bench.go_to(31);
    bench.finish(running, Status::Cancelled).await;
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(30));
    assert_eq!(bench.story("a").await[1], (20, 20, "skipped", "overlap".into()));
}

/// Whether a newer firing takes the place of what runs is told by the row as it stands now.
pub async fn overlap_replace_follows_what_was_changed_since(bench: &StoreFixture) {
    let replace = || Job { overlap: Overlap::Replace, ..job("a") };
    bench.create(replace()).await;
    let running = bench.run_next().await;
    let replace_at = async || match bench.store.settle(bench.me, &[running]).await.unwrap().remove(0) {
        SettleAnswer::Executing { replace_at, .. } => replace_at,
        other => panic!("not executing: {other:?}"),
    };
    assert_eq!(replace_at().await, Some(at(20)));
    bench.go_to(21);
    assert_eq!(replace_at().await, Some(at(20)), "it has come");
    bench.go_to(15);
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    bench.go_to(21);
    assert_eq!(replace_at().await, Some(at(30)), "what comes due during a pause replaces nothing");
    bench.store.resume(&key("a"), &author()).await.unwrap();
    assert_eq!(replace_at().await, Some(at(30)));
    bench.put(job("a")).await;
    assert_eq!(replace_at().await, None, "the overlap changed");
    bench.put(replace()).await;
    assert_eq!(replace_at().await, Some(at(30)));
    bench.store.delete_job(&key("a"), None, &author()).await.unwrap();
    assert_eq!(replace_at().await, None);
}

/// A schedule that has ended leaves the job completed.
pub async fn a_one_shot_completes(bench: &StoreFixture) {
    bench.create(Job { end_at: Some(at(15)), ..job("a") }).await;
    let running = bench.run_next().await;
    bench.go_to(300);
    assert_eq!(
        bench.finish(running, Status::Succeeded).await,
        FinishAnswer::Recorded { claim_at: Some(carillon_domain::time::Timestamp::MAX) }
    );
    assert!(bench.view("a").await.state.is_completed());
    assert!(bench.claim().await.is_empty());
}

/// The one that the database refuses is recorded without its output.
pub async fn a_poisoned_member_does_not_wedge_the_batch(bench: &StoreFixture) {
    for n in 0..7 {
        bench.create(job(&format!("j{n}"))).await;
    }
    let claimed = bench.claim().await;
    bench.go_to(10);
    let mut ended = Vec::new();
    for (n, claimed) in claimed.iter().enumerate() {
        let bytes = if n == 4 { vec![b'x'; MAX_OUTPUT_BYTES + 1] } else { vec![b'y'] };
        ended.push(finished(bench.started(claimed).await, bytes));
    }
    let answers = bench.store.finish(Me::new(bench.me), &ended, &[]).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, FinishAnswer::Recorded { .. })), "{answers:?}");
    for (n, ended) in ended.iter().enumerate() {
        let run = ended.at.run;
        let view = bench.store.run(run).await.unwrap();
        assert!(matches!(view.stage, RunStage::Recorded { output_truncated, .. } if output_truncated == (n == 4)));
        assert_eq!(bench.store.output(run).await.unwrap().unwrap_or_default().bytes.len(), usize::from(n != 4));
    }
}

/// A run that was never spawned comes again for the same due time; an older version matches nothing.
pub async fn reset_gives_back(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    let older = RunRef { version: claimed.at.version - 1, ..claimed.at };
    bench.store.release(bench.me, &[older]).await.unwrap();
    assert_eq!(bench.store.list_held(bench.me).await.unwrap(), [claimed.at]);
    bench.store.release(bench.me, &[claimed.at]).await.unwrap();
    bench.store.release(bench.me, &[claimed.at]).await.unwrap();
    let again = bench.claim_one().await;
    assert_eq!(again.held.firing, claimed.held.firing);
    bench.go_to(10);
    let running = bench.started(&again).await;
    bench.store.release(bench.me, &[running]).await.unwrap();
    assert_eq!(bench.claim_one().await.held.firing.attempt, 1);
    assert!(bench.records("a").await.is_empty());
}
