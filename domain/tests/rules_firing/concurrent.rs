//! Concurrent runs: every event in every phase.

use carillon_domain::firing::{Event, FiringKey, Rejected, TransitionKind};
use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, ending, me, retrying};

/// A concurrent run of second 60, which is retried once after 30 s.
fn concurrent() -> (JobFixture, FiringKey, RunId) {
    concurrent_of(retrying(Overlap::Allow, 2, 30))
}

fn concurrent_of(job: Job) -> (JobFixture, FiringKey, RunId) {
    let mut fixture = JobFixture::new(job);
    fixture.claim(60).unwrap();
    assert_eq!(fixture.start(60), Ok(TransitionKind::StartedConcurrently));
    let (key, row) = fixture.concurrent.iter().next().map(|(key, row)| (*key, row.phase)).unwrap();
    (fixture, key, row.held().unwrap().run)
}

fn finish(fixture: &mut JobFixture, key: FiringKey, now: i64, status: Status) -> Result<TransitionKind, Rejected> {
    fixture.now = at(now);
    let run = fixture.concurrent[&key].phase.held().unwrap().run;
    fixture.apply_concurrent(key, &Event::Finish { session: me(), run, ending: ending(status, at(now)) })
}

#[test]
fn no_concurrent_run_of_a_paused_job_starts() {
    let (mut failed, key, _) = concurrent();
    failed.pause(61, None).unwrap();
    assert_eq!(finish(&mut failed, key, 62, Status::Failed), Ok(TransitionKind::Finished), "no further attempt");
    assert!(failed.concurrent.is_empty());

    let (mut released, key, run) = concurrent();
    released.pause(61, None).unwrap();
    released.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
    assert!(released.concurrent.is_empty(), "a start whose outcome was unknown when the pause was answered");
    let reason = "the job was paused or deleted before the start";
    assert_eq!(released.history(), [format!("schedule 60 skipped({reason})")]);

    let (mut unstarted, key, run) = concurrent();
    unstarted.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
    unstarted.pause(61, None).unwrap();
    assert_eq!(unstarted.history(), ["schedule 60 skipped(paused)"]);

    let (mut backing_off, key, _) = concurrent();
    finish(&mut backing_off, key, 62, Status::Failed).unwrap();
    backing_off.pause(63, None).unwrap();
    assert_eq!((backing_off.concurrent.len(), backing_off.history().len()), (0, 1), "its first attempt has its record");
}

/// The result of an event in second 65 for the concurrent run of second 60 in one phase.
fn after(phase: &str, event: &str) -> String {
    let (mut fixture, key, run) = concurrent();
    match phase {
        "executing" => {}
        "idle" => drop(fixture.apply_concurrent(key, &Event::Reset { session: me(), run })),
        "prepared" => {
            fixture.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
            fixture
                .apply_concurrent(key, &Event::Claim { session: me(), run, until: at(60), losses_until: None })
                .unwrap();
        }
        _ => unreachable!("{phase}"),
    }
    fixture.now = at(65);
    let session = me();
    let finished = |status| Event::Finish { session, run, ending: ending(status, at(65)) };
    let event = match event {
        "claim" => Event::Claim { session, run, until: at(65), losses_until: None },
        "start" => Event::Start { session, run },
        "succeed" => finished(Status::Succeeded),
        "fail" => finished(Status::Failed),
        "reset" => Event::Reset { session, run },
        "sweep" => Event::Sweep { session },
        "pause" => Event::Pause { until: None, reason: None },
        "resume" => Event::Resume,
        "delete" => Event::Delete,
        "cancel" => Event::Cancel { run },
        _ => unreachable!("{event}"),
    };
    let answer = fixture.apply_concurrent(key, &event);
    let row = fixture.concurrent.get(&key).map_or("gone", |row| row.phase.as_str());
    match answer {
        Err(refused) => format!("{refused:?}").split(['(', ' ']).next().unwrap().to_owned(),
        Ok(kind) => [format!("{kind:?} -> {row}")].into_iter().chain(fixture.history()).collect::<Vec<_>>().join("; "),
    }
}

#[test]
fn every_event_in_every_phase_of_a_concurrent_run() {
    let lost = "schedule 60 lost(the node's session ended while it ran)";
    let table = [
        ("idle", "claim", "Claimed -> prepared"),
        ("idle", "start", "NotHeld"),
        ("idle", "succeed", "NotHeld"),
        ("idle", "reset", "NotHeld"),
        ("idle", "sweep", "NothingDue"),
        ("idle", "pause", "Paused -> gone; schedule 60 skipped(paused)"),
        ("idle", "resume", "NothingDue"),
        ("idle", "delete", "Deleted -> gone; schedule 60 skipped(deleted)"),
        ("idle", "cancel", "CancelledUnstarted -> gone; schedule 60 cancelled(cancelled)"),
        ("prepared", "claim", "AlreadyHeld"),
        ("prepared", "start", "Started -> executing"),
        ("prepared", "succeed", "NotHeld"),
        ("prepared", "reset", "Reset -> idle"),
        ("prepared", "sweep", "SweptUnstarted -> idle"),
        ("prepared", "pause", "Paused -> gone; schedule 60 skipped(paused)"),
        ("prepared", "delete", "Deleted -> gone; schedule 60 skipped(deleted)"),
        ("prepared", "cancel", "CancelledUnstarted -> gone; schedule 60 cancelled(cancelled)"),
        ("executing", "claim", "AlreadyHeld"),
        ("executing", "start", "NotHeld"),
        ("executing", "succeed", "Finished -> gone; schedule 60 succeeded"),
        ("executing", "fail", "Retried -> idle; schedule 60 failed"),
        ("executing", "reset", "Reset -> idle"),
        ("executing", "sweep", &format!("SweptLost -> gone; {lost}")),
        ("executing", "pause", "Paused -> executing"),
        ("executing", "delete", "DeletedLater -> executing"),
        ("executing", "cancel", "CancelRequested -> executing"),
    ];
    for (phase, event, expected) in table {
        assert_eq!(after(phase, event), expected, "{phase} + {event}");
    }
}

#[test]
fn a_pause_does_not_stop_a_concurrent_manual_run() {
    let mut fixture = JobFixture::new(retrying(Overlap::Allow, 1, 1));
    fixture.pause(1, None).unwrap();
    let (kind, run) = fixture.trigger(2).unwrap();
    assert_eq!(kind, TransitionKind::TriggeredConcurrently);
    let key = *fixture.concurrent.keys().next().unwrap();
    fixture.pause(3, None).unwrap();
    fixture
        .apply_concurrent(
            key,
            &Event::Claim { session: me(), run: fixture.clone().draw(), until: at(3), losses_until: None },
        )
        .unwrap();
    assert_eq!(
        fixture.concurrent[&key].phase.held().map(|held| held.run),
        Some(run),
        "it keeps the id that its caller knows"
    );
    fixture.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    assert_eq!(finish(&mut fixture, key, 4, Status::Succeeded), Ok(TransitionKind::Finished));
}

#[test]
fn a_cancelled_concurrent_run_gets_no_retry_and_records_the_first_reason() {
    let (mut fixture, key, run) = concurrent();
    assert_eq!(fixture.cancel(61, run), Ok(TransitionKind::CancelRequested));
    assert_eq!(fixture.apply_concurrent(key, &Event::Supersede), Err(Rejected::NothingDue), "the first reason is kept");
    assert_eq!(finish(&mut fixture, key, 62, Status::Failed), Ok(TransitionKind::Finished), "no further attempt");
    assert_eq!(fixture.history(), ["schedule 60 cancelled(cancelled)"]);

    let (mut superseded, key, _) = concurrent();
    assert_eq!(superseded.apply_concurrent(key, &Event::Supersede), Ok(TransitionKind::CancelRequested));
    assert_eq!(superseded.apply_concurrent(key, &Event::Supersede), Err(Rejected::NothingDue), "it is asked once");
    finish(&mut superseded, key, 62, Status::Failed).unwrap();
    assert_eq!(superseded.history(), ["schedule 60 cancelled(replaced)"]);
}

#[test]
fn a_withdrawn_run_is_not_written_again() {
    for event in [Event::Pause { until: None, reason: None }, Event::Delete] {
        let (mut fixture, key, _) = concurrent();
        fixture.apply_concurrent(key, &event).unwrap();
        assert_eq!(fixture.apply_concurrent(key, &event), Err(Rejected::NothingDue), "{event:?}");
    }
}

#[test]
fn an_end_in_the_future_counts_as_now() {
    let (mut fixture, key, run) = concurrent();
    fixture.now = at(70);
    let early = Event::Finish { session: me(), run, ending: ending(Status::Failed, at(500)) };
    assert_eq!(fixture.apply_concurrent(key, &early), Ok(TransitionKind::Retried));
    assert_eq!((fixture.records[0].finished_at, fixture.concurrent[&key].claim_at()), (at(70), Some(at(100))));
}
