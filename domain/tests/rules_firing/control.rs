//! Calls of operators, in every phase in which they may come.

use carillon_domain::firing::{Rejected, TransitionKind};
use carillon_domain::job::{Job, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, every, misfire, overlap, retrying};

#[test]
fn a_firing_released_by_an_update_hides_no_due_time_of_the_new_timing() {
    let mut fixture = JobFixture::new(every(60));
    fixture.claim_ahead(31, 30).unwrap();
    assert_eq!(fixture.update(32, every(10)), Ok(TransitionKind::Updated));
    assert_eq!(fixture.armed().due_at, at(42));
    fixture.run(42);
    fixture.finish(43, Status::Succeeded).unwrap();
    assert_eq!(fixture.armed().due_at, at(52));
}

#[test]
fn a_resume_without_a_pause_changes_nothing() {
    let mut fixture = JobFixture::new(every(60));
    fixture.resume(61).unwrap();
    assert_eq!((fixture.history(), fixture.armed().due_at), (vec![], at(60)), "the firing that is due stays due");
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 30));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    fixture.resume(62).unwrap();
    assert_eq!(fixture.armed().attempt, 2, "the retry stays");
}

#[test]
fn due_times_after_the_end_of_a_pause_were_not_paused() {
    let mut fixture = JobFixture::new(every(60));
    fixture.pause(10, Some(180)).unwrap();
    assert_eq!(fixture.claim(179), Err(Rejected::NothingDue));
    assert_eq!(fixture.claim(181), Ok(TransitionKind::Claimed), "claimed a moment after the pause ended");
    assert_eq!(fixture.held().firing.due_at, at(180), "due exactly as the pause ended");
    assert_eq!(fixture.history(), ["schedule 60..120 x2 skipped(paused)"]);

    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    fixture.pause(10, Some(130)).unwrap();
    assert_eq!(fixture.claim(400), Ok(TransitionKind::Claimed), "no node ran when it ended");
    assert_eq!(fixture.history(), ["schedule 60..120 x2 skipped(paused)"]);
    assert_eq!((fixture.held().firing.due_at, fixture.row().catch_up_until), (at(180), Some(at(360))));
}

#[test]
fn a_pause_that_has_ended_affects_no_later_event() {
    let paused = |job: Job| {
        let mut fixture = JobFixture::new(job);
        fixture.pause(10, Some(100)).unwrap();
        fixture
    };
    let mut resumed = paused(every(60));
    resumed.resume(130).unwrap();
    assert_eq!((resumed.history(), resumed.armed().due_at), (vec!["schedule 60 skipped(paused)".into()], at(120)));
    let mut deleted = paused(every(60));
    deleted.delete(130).unwrap();
    assert_eq!(deleted.history(), ["schedule 60 skipped(paused)", "schedule 120 skipped(deleted)"]);
    let mut updated = paused(every(60));
    updated.update(130, every(10)).unwrap();
    assert_eq!(updated.history(), ["schedule 60 skipped(paused)", "schedule 120 skipped(updated)"]);
    assert_eq!(updated.row().pause, None);
    let mut again = paused(every(60));
    again.pause(130, None).unwrap();
    assert_eq!(again.row().pause.as_ref().map(|pause| pause.since), Some(at(130)), "that is another pause");
    let mut retried = JobFixture::new(retrying(Overlap::Skip, 2, 1));
    retried.run(60);
    retried.pause(61, Some(70)).unwrap();
    assert_eq!(retried.finish(80, Status::Failed), Ok(TransitionKind::Retried));
}

#[test]
fn due_times_during_a_pause_never_fire_even_if_a_run_outlives_it() {
    for policy in Overlap::ALL {
        let mut fixture = JobFixture::new(overlap(policy));
        fixture.claim(60).unwrap();
        fixture.start(60).unwrap();
        fixture.pause(70, None).unwrap();
        fixture.resume(250).unwrap();
        assert_eq!(fixture.history(), ["schedule 120..240 x3 skipped(paused)"], "{policy:?}");
        if policy == Overlap::Allow {
            continue;
        }
        fixture.finish(310, Status::Succeeded).unwrap();
        let armed = fixture.armed().due_at;
        assert_eq!(armed, if policy == Overlap::Skip { at(360) } else { at(300) }, "{policy:?}");
    }
}

#[test]
fn due_times_of_a_pause_do_not_overlap_with_a_manual_run() {
    for policy in [Overlap::Skip, Overlap::Delay, Overlap::Replace] {
        let mut fixture = JobFixture::new(overlap(policy));
        fixture.pause(10, None).unwrap();
        fixture.trigger(190).unwrap();
        fixture.run(190);
        fixture.finish(250, Status::Succeeded).unwrap();
        fixture.resume(310).unwrap();
        assert_eq!(fixture.history(), ["manual 190 succeeded", "schedule 60..300 x5 skipped(paused)"], "{policy:?}");
        assert_eq!(fixture.armed().due_at, at(360), "{policy:?}");
    }
}

/// At second 310 the oldest of five missed due times runs, and four wait.
fn catching_up() -> JobFixture {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    fixture.claim(310).unwrap();
    fixture.start(310).unwrap();
    fixture
}

#[test]
fn the_call_that_ends_a_backlog_records_it_even_during_a_run() {
    let mut updated = catching_up();
    updated.update(370, every(10)).unwrap();
    assert_eq!(updated.history(), ["schedule 120..360 x5 skipped(updated)"]);
    let mut deleted = catching_up();
    deleted.delete(370).unwrap();
    assert_eq!(deleted.history(), ["schedule 120..360 x5 skipped(deleted)"]);
    let mut paused = catching_up();
    paused.pause(320, None).unwrap();
    paused.resume(370).unwrap();
    paused.finish(371, Status::Succeeded).unwrap();
    assert_eq!(paused.history()[0], "schedule 120..360 x5 skipped(paused)");
    assert_eq!(paused.armed().due_at, at(420));
}

#[test]
fn a_record_covers_only_due_times_without_another_record() {
    let mut fixture = JobFixture::new(overlap(Overlap::Delay));
    fixture.run(60);
    fixture.finish(250, Status::Succeeded).unwrap();
    fixture.pause(251, None).unwrap();
    fixture.resume(370).unwrap();
    assert_eq!(
        fixture.history(),
        [
            "schedule 60 succeeded",
            "schedule 180..240 x2 skipped(overlap)",
            "schedule 120 skipped(paused)",
            "schedule 300..360 x2 skipped(paused)"
        ]
    );
}

/// A manual run is prepared, and another waits for its end.
fn two_manual() -> (JobFixture, carillon_domain::id::RunId, carillon_domain::id::RunId) {
    let mut fixture = JobFixture::new(retrying(Overlap::Delay, 2, 30));
    let (_, first) = fixture.trigger(1).unwrap();
    fixture.claim(1).unwrap();
    let (_, second) = fixture.trigger(2).unwrap();
    (fixture, first, second)
}

#[test]
fn neither_of_two_manual_runs_is_forgotten() {
    let (mut reset, first, second) = two_manual();
    reset.reset(3).unwrap();
    assert_eq!(reset.row().manual.and_then(|manual| manual.run), Some(first), "the earlier one waits on");
    assert_eq!((reset.records[0].id, reset.history()[0].as_str()), (second, "manual 2 skipped(overlap)"));

    let (mut swept, first, second) = two_manual();
    swept.sweep(3).unwrap();
    assert_eq!((swept.row().manual.and_then(|manual| manual.run), swept.records[0].id), (Some(first), second));

    let (mut deleted, first, second) = two_manual();
    deleted.delete(3).unwrap();
    let recorded: Vec<_> = deleted.records.iter().map(|record| record.id).collect();
    assert_eq!((recorded, deleted.state), (vec![first, second], None));

    let (mut failed, _, second) = two_manual();
    failed.start(2).unwrap();
    assert_eq!(failed.finish(4, Status::Failed), Ok(TransitionKind::Finished));
    assert_eq!(failed.row().manual.and_then(|manual| manual.run), Some(second), "it replaces the next attempt");
}

#[test]
fn an_unstarted_manual_run_is_recorded_when_its_job_is_deleted() {
    let mut fixture = JobFixture::new(every(60));
    let (_, run) = fixture.trigger(1).unwrap();
    fixture.run(1);
    fixture.delete(2).unwrap();
    assert_eq!(fixture.reset(3), Ok(TransitionKind::FinishedDeleted));
    assert_eq!((fixture.records[0].id, fixture.history()), (run, vec!["manual 1 skipped(deleted)".into()]));
}

/// The first attempt failed at second 61, and the next is due at 91.
fn backing_off(policy: Overlap) -> JobFixture {
    let mut fixture = JobFixture::new(retrying(policy, 2, 30));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    fixture
}

#[test]
fn a_backoff_counts_as_running_for_a_manual_run() {
    let mut skip = backing_off(Overlap::Skip);
    assert_eq!(skip.trigger(62).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    assert_eq!((skip.history()[1].as_str(), skip.armed().attempt), ("manual 62 skipped(overlap)", 2));
    let mut claimed = backing_off(Overlap::Skip);
    claimed.claim_ahead(63, 30).unwrap();
    assert_eq!(claimed.trigger(64).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    assert_eq!(claimed.held().firing.attempt, 2, "the prepared retry stays");

    let mut delay = backing_off(Overlap::Delay);
    let (kind, run) = delay.trigger(62).unwrap();
    assert_eq!(
        (kind, delay.row().claim_at()),
        (TransitionKind::Triggered, Some(at(91))),
        "it waits for the last attempt"
    );
    assert_eq!(delay.claim(63), Err(Rejected::NothingDue));
    assert_eq!(delay.trigger(64).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped), "one waits");
    assert_eq!(delay.run(91).firing.attempt, 2);
    delay.finish(92, Status::Succeeded).unwrap();
    assert_eq!(delay.run(92).run, run);

    let mut replace = backing_off(Overlap::Replace);
    let (kind, run) = replace.trigger(62).unwrap();
    assert_eq!((kind, replace.armed().due_at), (TransitionKind::Triggered, at(120)), "the newer firing replaces it");
    assert_eq!(replace.run(62).run, run);
}

#[test]
fn a_backoff_of_a_manual_run_counts_as_running_too() {
    let backing_off = |policy| {
        let mut fixture = JobFixture::new(retrying(policy, 2, 30));
        fixture.trigger(1).unwrap();
        fixture.run(1);
        assert_eq!(fixture.finish(2, Status::Failed), Ok(TransitionKind::Retried));
        fixture
    };
    for policy in [Overlap::Skip, Overlap::Delay] {
        let mut fixture = backing_off(policy);
        assert_eq!(
            fixture.trigger(3).map(|(kind, _)| kind),
            Ok(TransitionKind::TriggerSkipped),
            "{policy:?}: its retry waits"
        );
    }
    let mut replace = backing_off(Overlap::Replace);
    let (kind, run) = replace.trigger(3).unwrap();
    assert_eq!((kind, replace.row().manual.and_then(|manual| manual.run)), (TransitionKind::Triggered, Some(run)));
}

#[test]
fn a_due_firing_never_starts_with_a_newer_definition() {
    let newer = |policy| Job { params: "newer".into(), ..overlap(policy) };
    let mut due = JobFixture::new(overlap(Overlap::Skip));
    due.claim(60).unwrap();
    due.update(61, newer(Overlap::Skip)).unwrap();
    assert_eq!((due.history(), due.armed().due_at), (vec!["schedule 60 skipped(updated)".into()], at(120)));

    let mut waits = JobFixture::new(overlap(Overlap::Delay));
    waits.run(60);
    waits.update(130, newer(Overlap::Delay)).unwrap();
    waits.finish(131, Status::Succeeded).unwrap();
    assert_eq!((waits.history()[0].as_str(), waits.armed().due_at), ("schedule 120 skipped(updated)", at(180)));

    let mut ahead = JobFixture::new(overlap(Overlap::Skip));
    ahead.claim_ahead(40, 30).unwrap();
    ahead.update(41, newer(Overlap::Skip)).unwrap();
    assert_eq!(
        (ahead.history(), ahead.armed().due_at),
        (vec![], at(60)),
        "a firing that is not due yet starts with the new definition"
    );

    let mut retried = backing_off(Overlap::Skip);
    retried.update(62, Job { params: "newer".into(), ..retrying(Overlap::Skip, 2, 30) }).unwrap();
    assert_eq!(retried.armed().attempt, 2, "it has started before");

    let mut paused = JobFixture::new(overlap(Overlap::Skip));
    paused.pause(10, None).unwrap();
    paused.update(130, newer(Overlap::Skip)).unwrap();
    paused.resume(190).unwrap();
    assert_eq!(paused.history(), ["schedule 60..180 x3 skipped(paused)"], "one record per pause");
}

#[test]
fn a_start_released_after_a_resume_makes_no_batch_with_recorded_due_times() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::Skip, 0));
    fixture.run(60);
    fixture.pause(61, None).unwrap();
    fixture.resume(130).unwrap();
    fixture.reset(131).unwrap();
    fixture.claim(132).unwrap();
    assert_eq!(
        (fixture.history(), fixture.held().firing.due_at),
        (vec!["schedule 120 skipped(paused)".into()], at(60))
    );
}

#[test]
fn with_replace_a_manual_run_replaces_a_due_firing_before_its_start() {
    let mut fixture = JobFixture::new(overlap(Overlap::Replace));
    fixture.claim(60).unwrap();
    let (kind, run) = fixture.trigger(61).unwrap();
    assert_eq!((kind, fixture.armed().due_at), (TransitionKind::Triggered, at(120)));
    assert_eq!(fixture.history(), ["schedule 60 cancelled(replaced)"], "it counts as running");
    assert_eq!(fixture.run(61).run, run);

    let mut manual = JobFixture::new(overlap(Overlap::Replace));
    let (_, first) = manual.trigger(1).unwrap();
    manual.claim(1).unwrap();
    let (_, second) = manual.trigger(2).unwrap();
    assert_eq!((manual.records[0].id, manual.history()[0].as_str()), (first, "manual 1 cancelled(replaced)"));
    assert_eq!((manual.armed().due_at, manual.run(2).run), (at(60), second));

    let mut ahead = JobFixture::new(overlap(Overlap::Replace));
    ahead.claim_ahead(40, 30).unwrap();
    ahead.trigger(41).unwrap();
    assert_eq!((ahead.history(), ahead.armed().due_at), (vec![], at(60)), "a firing that is not due yet stays");
}

#[test]
fn a_firing_cancelled_ahead_of_its_time_does_not_come_due_again() {
    let mut fixture = JobFixture::new(every(60));
    fixture.claim_ahead(31, 30).unwrap();
    let run = fixture.held().run;
    fixture.cancel(32, run).unwrap();
    fixture.update(45, every(15)).unwrap();
    assert_eq!(fixture.armed().due_at, at(75), "60 is due by the new timing too, and has its record");
    assert_eq!(fixture.history(), ["schedule 60 cancelled(cancelled)"]);
}

#[test]
fn a_released_start_is_not_lost_to_a_manual_run() {
    let released_before_a_manual_run = || {
        let mut fixture = JobFixture::new(every(60));
        fixture.run(60);
        fixture.reset(61).unwrap();
        fixture.pause(62, None).unwrap();
        fixture.trigger(63).unwrap();
        fixture.run(63);
        fixture
    };
    let mut ended = released_before_a_manual_run();
    ended.finish(64, Status::Succeeded).unwrap();
    ended.resume(65).unwrap();
    assert_eq!(ended.history()[1..], ["schedule 60 skipped(paused)"]);
    // The clock is set back, so that the manual run is due before the run that executes already.
    let mut earlier = JobFixture::new(overlap(Overlap::Delay));
    earlier.run(60);
    earlier.trigger(55).unwrap();
    earlier.reset(56).unwrap();
    earlier.run(57);
    earlier.finish(61, Status::Succeeded).unwrap();
    assert_eq!((earlier.history(), earlier.armed().due_at), (vec!["manual 55 succeeded".into()], at(60)));
    let mut lost = released_before_a_manual_run();
    lost.sweep(64).unwrap();
    assert_eq!(lost.armed().due_at, at(60));
}

#[test]
fn every_new_definition_has_a_new_generation() {
    let mut fixture = JobFixture::new(every(60));
    let mut seen = vec![fixture.row().generation];
    for job in [every(60), Job { params: "newer".into(), ..every(60) }, every(10)] {
        fixture.update(1, job).unwrap();
        seen.push(fixture.row().generation);
    }
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[test]
fn an_update_that_records_due_times_keeps_the_retry() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 100));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    fixture.update(130, Job { params: "newer".into(), ..retrying(Overlap::Skip, 2, 100) }).unwrap();
    assert_eq!(fixture.history()[1..], ["schedule 120 skipped(updated)"]);
    assert_eq!((fixture.armed().due_at, fixture.armed().start_at, fixture.armed().attempt), (at(60), at(161), 2));
}

#[test]
fn no_firing_is_armed_while_one_of_the_schedule_executes() {
    let mut fixture = JobFixture::new(overlap(Overlap::Delay));
    fixture.run(60);
    fixture.update(130, Job { params: "newer".into(), ..overlap(Overlap::Delay) }).unwrap();
    assert_eq!(fixture.row().next_due_at(), None);
}

#[test]
fn a_deleted_job_has_no_next_due_time_during_its_last_run() {
    let mut fixture = JobFixture::new(every(60));
    fixture.trigger(1).unwrap();
    fixture.run(1);
    assert_eq!((fixture.row().next_due_at(), fixture.delete(2)), (Some(at(60)), Ok(TransitionKind::DeletedLater)));
    assert_eq!(fixture.row().next_due_at(), None);
}
