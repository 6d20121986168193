//! Runs beside the job's row: every event in every phase.

use carillon_domain::firing::{Event, FiringKey, Rejected, TransitionKind};
use carillon_domain::id::RunId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, ending, me, retrying};

/// A run of second 60 beside its row, retried once after 30 s.
fn beside() -> (Desk, FiringKey, RunId) {
    beside_of(retrying(Overlap::Allow, 2, 30))
}

fn beside_of(job: Job) -> (Desk, FiringKey, RunId) {
    let mut desk = Desk::new(job);
    desk.claim(60).unwrap();
    assert_eq!(desk.start(60), Ok(TransitionKind::StartedConcurrently));
    let (key, row) = desk.concurrent.iter().next().map(|(key, row)| (*key, row.phase)).unwrap();
    (desk, key, row.held().unwrap().run)
}

fn finish(desk: &mut Desk, key: FiringKey, now: i64, status: Status) -> Result<TransitionKind, Rejected> {
    desk.now = at(now);
    let run = desk.concurrent[&key].phase.held().unwrap().run;
    desk.apply_concurrent(key, &Event::Finish { session: me(), run, ending: ending(status, at(now)) })
}

#[test]
fn nothing_beside_a_paused_job_starts() {
    let (mut failed, key, _) = beside();
    failed.pause(61, None).unwrap();
    assert_eq!(finish(&mut failed, key, 62, Status::Failed), Ok(TransitionKind::Finished), "no further attempt");
    assert!(failed.concurrent.is_empty());

    let (mut given_back, key, run) = beside();
    given_back.pause(61, None).unwrap();
    given_back.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
    assert!(given_back.concurrent.is_empty(), "a start that was in doubt when the pause was answered");
    let reason = "the job was paused or deleted before the start";
    assert_eq!(given_back.history(), [format!("schedule 60 skipped({reason})")]);

    let (mut unstarted, key, run) = beside();
    unstarted.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
    unstarted.pause(61, None).unwrap();
    assert_eq!(unstarted.history(), ["schedule 60 skipped(paused)"]);

    let (mut backing_off, key, _) = beside();
    finish(&mut backing_off, key, 62, Status::Failed).unwrap();
    backing_off.pause(63, None).unwrap();
    assert_eq!((backing_off.concurrent.len(), backing_off.history().len()), (0, 1), "its first attempt has its record");
}

/// What an event does to the run of second 60 in each phase, in second 65.
fn after(phase: &str, event: &str) -> String {
    let (mut desk, key, run) = beside();
    match phase {
        "executing" => {}
        "idle" => drop(desk.apply_concurrent(key, &Event::Reset { session: me(), run })),
        "prepared" => {
            desk.apply_concurrent(key, &Event::Reset { session: me(), run }).unwrap();
            desk.apply_concurrent(key, &Event::Claim { session: me(), run, until: at(60), losses_until: None })
                .unwrap();
        }
        _ => unreachable!("{phase}"),
    }
    desk.now = at(65);
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
    let answer = desk.apply_concurrent(key, &event);
    let row = desk.concurrent.get(&key).map_or("gone", |row| row.phase.as_str());
    match answer {
        Err(refused) => format!("{refused:?}").split(['(', ' ']).next().unwrap().to_owned(),
        Ok(kind) => [format!("{kind:?} -> {row}")].into_iter().chain(desk.history()).collect::<Vec<_>>().join("; "),
    }
}

#[test]
fn every_event_in_every_phase_beside_the_row() {
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
fn a_manual_run_beside_a_paused_job_goes_on() {
    let mut desk = Desk::new(retrying(Overlap::Allow, 1, 1));
    desk.pause(1, None).unwrap();
    let (kind, run) = desk.trigger(2).unwrap();
    assert_eq!(kind, TransitionKind::TriggeredConcurrently);
    let key = *desk.concurrent.keys().next().unwrap();
    desk.pause(3, None).unwrap();
    desk.apply_concurrent(
        key,
        &Event::Claim { session: me(), run: desk.clone().draw(), until: at(3), losses_until: None },
    )
    .unwrap();
    assert_eq!(desk.concurrent[&key].phase.held().map(|held| held.run), Some(run), "it keeps the id that was told");
    desk.apply_concurrent(key, &Event::Start { session: me(), run }).unwrap();
    assert_eq!(finish(&mut desk, key, 4, Status::Succeeded), Ok(TransitionKind::Finished));
}

#[test]
fn a_run_beside_its_row_that_was_asked_to_end_goes_on_no_further_and_says_who_asked() {
    let (mut desk, key, run) = beside();
    assert_eq!(desk.cancel(61, run), Ok(TransitionKind::CancelRequested));
    assert_eq!(desk.apply_concurrent(key, &Event::Supersede), Err(Rejected::NothingDue), "who asked first is kept");
    assert_eq!(finish(&mut desk, key, 62, Status::Failed), Ok(TransitionKind::Finished), "no further attempt");
    assert_eq!(desk.history(), ["schedule 60 cancelled(cancelled)"]);

    let (mut superseded, key, _) = beside();
    assert_eq!(superseded.apply_concurrent(key, &Event::Supersede), Ok(TransitionKind::CancelRequested));
    assert_eq!(superseded.apply_concurrent(key, &Event::Supersede), Err(Rejected::NothingDue), "once is enough");
    finish(&mut superseded, key, 62, Status::Failed).unwrap();
    assert_eq!(superseded.history(), ["schedule 60 cancelled(replaced)"]);
}

#[test]
fn what_was_withdrawn_is_not_written_again() {
    for event in [Event::Pause { until: None, reason: None }, Event::Delete] {
        let (mut desk, key, _) = beside();
        desk.apply_concurrent(key, &event).unwrap();
        assert_eq!(desk.apply_concurrent(key, &event), Err(Rejected::NothingDue), "{event:?}");
    }
}

#[test]
fn an_end_that_is_told_of_the_future_counts_from_now() {
    let (mut desk, key, run) = beside();
    desk.now = at(70);
    let early = Event::Finish { session: me(), run, ending: ending(Status::Failed, at(500)) };
    assert_eq!(desk.apply_concurrent(key, &early), Ok(TransitionKind::Retried));
    assert_eq!((desk.records[0].finished_at, desk.concurrent[&key].claim_at()), (at(70), Some(at(100))));
}
