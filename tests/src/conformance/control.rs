//! Pause, resume, update, run now, cancel: each may come at any moment.

use carillon_domain::firing::{CancelledBy, Phase, Rejected};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::{Status, Trigger};
use carillon_domain::store::Refusal;
use carillon_doubles::author;
use carillon_store::{ControlError, RunStage};

use super::fixture::{StoreFixture, at, job, key};

/// A prepared firing goes back and does not start; a running one goes on.
pub async fn pause_and_resume_in_every_phase(bench: &StoreFixture) {
    bench.create(job("prepared")).await;
    let prepared = bench.claim_one().await;
    bench.store.pause(&key("prepared"), None, None, &author()).await.unwrap();
    bench.create(job("running")).await;
    let running = bench.run_next().await;
    assert_eq!(bench.start(&prepared).await, StartAnswer::Gone);
    bench.store.pause(&key("running"), None, None, &author()).await.unwrap();
    bench.finish(running, Status::Succeeded).await;
    assert!(bench.claim().await.is_empty());
    bench.go_to(25);
    for name in ["prepared", "running"] {
        let view = bench.store.resume(&key(name), &author()).await.unwrap();
        assert_eq!(view.state.next_due_at(), Some(at(30)), "{name}");
    }
    assert_eq!(bench.story("prepared").await, [(10, 20, "skipped", "paused".into())]);
    let ran = (10, 10, "succeeded", String::new());
    assert_eq!(bench.story("running").await, [ran, (20, 20, "skipped", "paused".into())]);
    assert!(matches!(
        bench.store.resume(&key("ghost"), &author()).await,
        Err(ControlError::Refused(Refusal::NoJob(_)))
    ));
}

/// A prepared firing goes back; what runs, runs on with what it has.
pub async fn an_update_in_every_phase(bench: &StoreFixture) {
    let new = |name: &str| Job { params: "new".into(), ..job(name) };
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.put(new("a")).await;
    bench.go_to(10);
    assert_eq!(bench.start(&claimed).await, StartAnswer::Gone);
    let again = bench.claim_one().await;
    assert_eq!((again.held.firing.due_at, again.job.params.as_str(), again.generation), (at(10), "new", 2));
    let running = bench.started(&again).await;
    let timing = bench.put(Job { schedule: "@every 60s".into(), ..new("a") }).await;
    assert!(matches!(timing.view.state.phase, Phase::Executing(held) if held.run == running.run));
    bench.go_to(15);
    bench.finish(running, Status::Succeeded).await;
    assert_eq!(bench.view("a").await.state.next_due_at(), Some(at(70)));
}

/// A manual run waits, starts under the id that was told, and is subject to the overlap policy.
pub async fn trigger_in_every_phase(bench: &StoreFixture) {
    bench.create(Job { schedule: "@every 1000s".into(), ..job("a") }).await;
    bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    let run = bench.draw();
    bench.store.trigger(&key("a"), run, &author()).await.unwrap();
    let view = bench.store.run(run).await.unwrap();
    assert!(matches!(view.stage, RunStage::Waiting { trigger: Trigger::Manual, session: None, .. }), "{view:?}");
    let twice = bench.store.trigger(&key("a"), bench.draw(), &author()).await.unwrap_err();
    assert_eq!(twice, ControlError::Refused(Refusal::Rejected(Rejected::ManualWaiting(run))));
    let claimed = bench.claim_one().await;
    assert_eq!(claimed.at.run, run);
    let running = bench.started(&claimed).await;
    assert!(matches!(bench.store.run(run).await.unwrap().stage, RunStage::Running { cancelling: false, .. }));
    let skipped = bench.draw();
    bench.store.trigger(&key("a"), skipped, &author()).await.unwrap();
    bench.finish(running, Status::Succeeded).await;
    let statuses: Vec<_> = bench.records("a").await.iter().map(|record| (record.id, record.status)).collect();
    assert_eq!(statuses, [(skipped, Status::Skipped), (run, Status::Succeeded)]);
}

/// Waiting, prepared, running, over.
pub async fn cancel_in_every_phase(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let manual = bench.draw();
    bench.store.trigger(&key("a"), manual, &author()).await.unwrap();
    bench.store.cancel(manual, &author()).await.unwrap();
    let prepared = bench.claim_one().await;
    let view = bench.store.cancel(prepared.at.run, &author()).await.unwrap();
    assert!(matches!(view.stage, RunStage::Recorded { record, .. } if record.status == Status::Cancelled));
    let running = bench.run_next().await;
    let view = bench.store.cancel(running.run, &author()).await.unwrap();
    assert!(matches!(view.stage, RunStage::Running { cancelling: true, .. }));
    let peek = bench.peek().await;
    assert_eq!(peek.cancels, [running.run]);
    assert_eq!(bench.view("a").await.state.cancel, Some(CancelledBy::Person));
    bench.finish(running, Status::Failed).await;
    assert!(bench.peek().await.cancels.is_empty());
    assert_eq!(
        bench.store.cancel(running.run, &author()).await.unwrap_err(),
        ControlError::Refused(Refusal::RunEnded(running.run))
    );
    let ghost = bench.draw();
    assert_eq!(bench.store.cancel(ghost, &author()).await.unwrap_err(), ControlError::Refused(Refusal::NoRun(ghost)));
    let statuses: Vec<_> = bench.records("a").await.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [Status::Cancelled; 3]);
    assert_eq!(bench.story("a").await.iter().map(|(due, ..)| *due).collect::<Vec<_>>(), [0, 10, 20]);
}

/// The same for runs beside their job's row.
pub async fn cancel_beside(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Allow, schedule: "@every 1000s".into(), ..job("a") }).await;
    let runs = [bench.draw(), bench.draw(), bench.draw()];
    for run in runs {
        bench.store.trigger(&key("a"), run, &author()).await.unwrap();
    }
    bench.store.cancel(runs[0], &author()).await.unwrap();
    bench.go_to(1);
    let claimed = bench.claim().await;
    assert_eq!(claimed.iter().map(|one| one.at.run).collect::<Vec<_>>(), runs[1..]);
    bench.store.cancel(runs[1], &author()).await.unwrap();
    assert_eq!(bench.start(&claimed[0]).await, StartAnswer::Gone);
    let running = bench.started(&claimed[1]).await;
    bench.store.cancel(runs[2], &author()).await.unwrap();
    assert_eq!(bench.peek().await.cancels, [runs[2]]);
    bench.finish(running, Status::Failed).await;
    let records = bench.records("a").await;
    assert!(records.iter().all(|record| record.status == Status::Cancelled && runs.contains(&record.id)));
    assert_eq!(records.len(), 3);
}

/// `until`: the claim finds the pause over and records what it swallowed.
pub async fn a_pause_ends_by_itself(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let view = bench.store.pause(&key("a"), Some(at(25)), Some("deploy".into()), &author()).await.unwrap();
    assert_eq!(view.pause().unwrap().reason.as_deref(), Some("deploy"));
    bench.go_to(20);
    assert!(bench.claim().await.is_empty());
    bench.go_to(26);
    assert_eq!(bench.claim_one().await.held.firing.due_at, at(30));
    assert!(bench.view("a").await.pause().is_none());
    assert_eq!(bench.story("a").await, [(10, 20, "skipped", "paused".into())]);
}

/// A manual run that is given back while another waits: neither disappears.
pub async fn two_waiting_manual_runs_are_both_accounted_for(bench: &StoreFixture) {
    bench.create(Job { overlap: Overlap::Delay, schedule: "@every 1000s".into(), ..job("a") }).await;
    let (first, second) = (bench.draw(), bench.draw());
    bench.store.trigger(&key("a"), first, &author()).await.unwrap();
    let claimed = bench.claim_one().await;
    bench.go_to(1);
    bench.store.trigger(&key("a"), second, &author()).await.unwrap();
    let version = bench.view("a").await.state.version;
    let at = carillon_domain::node::port::RunRef { version, ..claimed.at };
    bench.store.release(bench.me, &[at]).await.unwrap();
    for run in [first, second] {
        bench.store.run(run).await.unwrap_or_else(|error| panic!("{run} disappeared: {error}"));
    }
}
