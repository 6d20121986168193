//! What people do, at every moment at which they may do it.

use carillon_domain::firing::{Rejected, TransitionKind};
use carillon_domain::job::{Job, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, every, misfire, overlap, retrying};

#[test]
fn a_firing_claimed_ahead_and_put_back_hides_no_due_time_of_a_new_timing() {
    let mut desk = Desk::new(every(60));
    desk.claim_ahead(31, 30).unwrap();
    assert_eq!(desk.update(32, every(10)), Ok(TransitionKind::Updated));
    assert_eq!(desk.armed().due_at, at(42));
    desk.run(42);
    desk.finish(43, Status::Succeeded).unwrap();
    assert_eq!(desk.armed().due_at, at(52));
}

#[test]
fn resuming_a_job_that_is_not_paused_takes_nothing_from_it() {
    let mut desk = Desk::new(every(60));
    desk.resume(61).unwrap();
    assert_eq!((desk.history(), desk.armed().due_at), (vec![], at(60)), "the firing that is due stays due");
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 30));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    desk.resume(62).unwrap();
    assert_eq!(desk.armed().attempt, 2, "the further attempt stays");
}

#[test]
fn what_comes_due_after_the_end_of_a_pause_was_not_paused() {
    let mut desk = Desk::new(every(60));
    desk.pause(10, Some(180)).unwrap();
    assert_eq!(desk.claim(179), Err(Rejected::NothingDue));
    assert_eq!(desk.claim(181), Ok(TransitionKind::Claimed), "claimed a moment after the pause ended");
    assert_eq!(desk.held().firing.due_at, at(180), "due exactly as the pause ended");
    assert_eq!(desk.history(), ["schedule 60..120 x2 skipped(paused)"]);

    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
    desk.pause(10, Some(130)).unwrap();
    assert_eq!(desk.claim(400), Ok(TransitionKind::Claimed), "nobody was there when it ended");
    assert_eq!(desk.history(), ["schedule 60..120 x2 skipped(paused)"]);
    assert_eq!((desk.held().firing.due_at, desk.row().catch_up_until), (at(180), Some(at(360))));
}

#[test]
fn a_pause_that_ended_holds_nothing_up_whoever_looks_first() {
    let paused = |job: Job| {
        let mut desk = Desk::new(job);
        desk.pause(10, Some(100)).unwrap();
        desk
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
    let mut retried = Desk::new(retrying(Overlap::Skip, 2, 1));
    retried.run(60);
    retried.pause(61, Some(70)).unwrap();
    assert_eq!(retried.finish(80, Status::Failed), Ok(TransitionKind::Retried));
}

#[test]
fn due_times_during_a_pause_never_fire_even_if_a_run_outlives_it() {
    for policy in Overlap::ALL {
        let mut desk = Desk::new(overlap(policy));
        desk.claim(60).unwrap();
        desk.start(60).unwrap();
        desk.pause(70, None).unwrap();
        desk.resume(250).unwrap();
        assert_eq!(desk.history(), ["schedule 120..240 x3 skipped(paused)"], "{policy:?}");
        if policy == Overlap::Allow {
            continue;
        }
        desk.finish(310, Status::Succeeded).unwrap();
        let armed = desk.armed().due_at;
        assert_eq!(armed, if policy == Overlap::Skip { at(360) } else { at(300) }, "{policy:?}");
    }
}

#[test]
fn what_comes_due_in_a_pause_is_no_overlap_of_a_manual_run() {
    for policy in [Overlap::Skip, Overlap::Delay, Overlap::Replace] {
        let mut desk = Desk::new(overlap(policy));
        desk.pause(10, None).unwrap();
        desk.trigger(190).unwrap();
        desk.run(190);
        desk.finish(250, Status::Succeeded).unwrap();
        desk.resume(310).unwrap();
        assert_eq!(desk.history(), ["manual 190 succeeded", "schedule 60..300 x5 skipped(paused)"], "{policy:?}");
        assert_eq!(desk.armed().due_at, at(360), "{policy:?}");
    }
}

/// At second 400 the oldest of five missed due times runs and four wait.
fn catching_up() -> Desk {
    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
    desk.claim(310).unwrap();
    desk.start(310).unwrap();
    desk
}

#[test]
fn a_backlog_is_recorded_by_whatever_ends_it_also_while_one_of_it_runs() {
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
fn one_record_covers_only_due_times_that_have_no_other() {
    let mut desk = Desk::new(overlap(Overlap::Delay));
    desk.run(60);
    desk.finish(250, Status::Succeeded).unwrap();
    desk.pause(251, None).unwrap();
    desk.resume(370).unwrap();
    assert_eq!(
        desk.history(),
        [
            "schedule 60 succeeded",
            "schedule 180..240 x2 skipped(overlap)",
            "schedule 120 skipped(paused)",
            "schedule 300..360 x2 skipped(paused)"
        ]
    );
}

/// A manual run executes and another waits for its end.
fn two_manual() -> (Desk, carillon_domain::id::RunId, carillon_domain::id::RunId) {
    let mut desk = Desk::new(retrying(Overlap::Delay, 2, 30));
    let (_, first) = desk.trigger(1).unwrap();
    desk.claim(1).unwrap();
    let (_, second) = desk.trigger(2).unwrap();
    (desk, first, second)
}

#[test]
fn of_two_manual_runs_neither_is_forgotten() {
    let (mut reset, first, second) = two_manual();
    reset.reset(3).unwrap();
    assert_eq!(reset.row().manual.and_then(|manual| manual.run), Some(first), "the earlier keeps its place");
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
    assert_eq!(failed.row().manual.and_then(|manual| manual.run), Some(second), "it takes the next attempt's place");
}

#[test]
fn a_manual_run_that_never_started_leaves_a_record_when_its_job_goes() {
    let mut desk = Desk::new(every(60));
    let (_, run) = desk.trigger(1).unwrap();
    desk.run(1);
    desk.delete(2).unwrap();
    assert_eq!(desk.reset(3), Ok(TransitionKind::FinishedDeleted));
    assert_eq!((desk.records[0].id, desk.history()), (run, vec!["manual 1 skipped(deleted)".into()]));
}

/// Its first attempt failed at second 61; the next is due at 91.
fn backing_off(policy: Overlap) -> Desk {
    let mut desk = Desk::new(retrying(policy, 2, 30));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    desk
}

#[test]
fn a_backoff_counts_as_running_for_a_manual_run() {
    let mut skip = backing_off(Overlap::Skip);
    assert_eq!(skip.trigger(62).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    assert_eq!((skip.history()[1].as_str(), skip.armed().attempt), ("manual 62 skipped(overlap)", 2));
    let mut claimed = backing_off(Overlap::Skip);
    claimed.claim_ahead(63, 30).unwrap();
    assert_eq!(claimed.trigger(64).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    assert_eq!(claimed.held().firing.attempt, 2, "what is prepared stays prepared");

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
    assert_eq!(
        (kind, replace.armed().due_at),
        (TransitionKind::Triggered, at(120)),
        "the newer firing takes its place"
    );
    assert_eq!(replace.run(62).run, run);
}

#[test]
fn a_backoff_of_a_manual_run_counts_as_running_too() {
    let backing_off = |policy| {
        let mut desk = Desk::new(retrying(policy, 2, 30));
        desk.trigger(1).unwrap();
        desk.run(1);
        assert_eq!(desk.finish(2, Status::Failed), Ok(TransitionKind::Retried));
        desk
    };
    for policy in [Overlap::Skip, Overlap::Delay] {
        let mut desk = backing_off(policy);
        assert_eq!(
            desk.trigger(3).map(|(kind, _)| kind),
            Ok(TransitionKind::TriggerSkipped),
            "{policy:?}: its place is taken"
        );
    }
    let mut replace = backing_off(Overlap::Replace);
    let (kind, run) = replace.trigger(3).unwrap();
    assert_eq!((kind, replace.row().manual.and_then(|manual| manual.run)), (TransitionKind::Triggered, Some(run)));
}

#[test]
fn a_firing_that_is_due_never_starts_with_a_newer_definition() {
    let newer = |policy| Job { params: "newer".into(), ..overlap(policy) };
    let mut due = Desk::new(overlap(Overlap::Skip));
    due.claim(60).unwrap();
    due.update(61, newer(Overlap::Skip)).unwrap();
    assert_eq!((due.history(), due.armed().due_at), (vec!["schedule 60 skipped(updated)".into()], at(120)));

    let mut waits = Desk::new(overlap(Overlap::Delay));
    waits.run(60);
    waits.update(130, newer(Overlap::Delay)).unwrap();
    waits.finish(131, Status::Succeeded).unwrap();
    assert_eq!((waits.history()[0].as_str(), waits.armed().due_at), ("schedule 120 skipped(updated)", at(180)));

    let mut ahead = Desk::new(overlap(Overlap::Skip));
    ahead.claim_ahead(40, 30).unwrap();
    ahead.update(41, newer(Overlap::Skip)).unwrap();
    assert_eq!((ahead.history(), ahead.armed().due_at), (vec![], at(60)), "what is not due yet starts as it is now");

    let mut retried = backing_off(Overlap::Skip);
    retried.update(62, Job { params: "newer".into(), ..retrying(Overlap::Skip, 2, 30) }).unwrap();
    assert_eq!(retried.armed().attempt, 2, "it has started before");

    let mut paused = Desk::new(overlap(Overlap::Skip));
    paused.pause(10, None).unwrap();
    paused.update(130, newer(Overlap::Skip)).unwrap();
    paused.resume(190).unwrap();
    assert_eq!(paused.history(), ["schedule 60..180 x3 skipped(paused)"], "one record a pause");
}

#[test]
fn a_doubtful_start_given_back_after_a_resume_takes_no_recorded_due_time_with_it() {
    let mut desk = Desk::new(misfire(MisfirePolicy::Skip, 0));
    desk.run(60);
    desk.pause(61, None).unwrap();
    desk.resume(130).unwrap();
    desk.reset(131).unwrap();
    desk.claim(132).unwrap();
    assert_eq!((desk.history(), desk.held().firing.due_at), (vec!["schedule 120 skipped(paused)".into()], at(60)));
}

#[test]
fn with_replace_a_manual_run_takes_the_place_of_one_that_is_due_and_has_not_started() {
    let mut desk = Desk::new(overlap(Overlap::Replace));
    desk.claim(60).unwrap();
    let (kind, run) = desk.trigger(61).unwrap();
    assert_eq!((kind, desk.armed().due_at), (TransitionKind::Triggered, at(120)));
    assert_eq!(desk.history(), ["schedule 60 cancelled(replaced)"], "it is as good as running");
    assert_eq!(desk.run(61).run, run);

    let mut manual = Desk::new(overlap(Overlap::Replace));
    let (_, first) = manual.trigger(1).unwrap();
    manual.claim(1).unwrap();
    let (_, second) = manual.trigger(2).unwrap();
    assert_eq!((manual.records[0].id, manual.history()[0].as_str()), (first, "manual 1 cancelled(replaced)"));
    assert_eq!((manual.armed().due_at, manual.run(2).run), (at(60), second));

    let mut ahead = Desk::new(overlap(Overlap::Replace));
    ahead.claim_ahead(40, 30).unwrap();
    ahead.trigger(41).unwrap();
    assert_eq!((ahead.history(), ahead.armed().due_at), (vec![], at(60)), "what is not due yet waits for its time");
}

#[test]
fn a_firing_cancelled_ahead_of_its_time_comes_up_no_second_time() {
    let mut desk = Desk::new(every(60));
    desk.claim_ahead(31, 30).unwrap();
    let run = desk.held().run;
    desk.cancel(32, run).unwrap();
    desk.update(45, every(15)).unwrap();
    assert_eq!(desk.armed().due_at, at(75), "60 is due by the new timing too, and has its record");
    assert_eq!(desk.history(), ["schedule 60 cancelled(cancelled)"]);
}

#[test]
fn a_start_that_was_given_back_is_not_lost_to_a_manual_run() {
    let given_back_before_a_manual_run = || {
        let mut desk = Desk::new(every(60));
        desk.run(60);
        desk.reset(61).unwrap();
        desk.pause(62, None).unwrap();
        desk.trigger(63).unwrap();
        desk.run(63);
        desk
    };
    let mut ended = given_back_before_a_manual_run();
    ended.finish(64, Status::Succeeded).unwrap();
    ended.resume(65).unwrap();
    assert_eq!(ended.history()[1..], ["schedule 60 skipped(paused)"]);
    // The clock is set back, so that a person asks before the time of what runs already.
    let mut earlier = Desk::new(overlap(Overlap::Delay));
    earlier.run(60);
    earlier.trigger(55).unwrap();
    earlier.reset(56).unwrap();
    earlier.run(57);
    earlier.finish(61, Status::Succeeded).unwrap();
    assert_eq!((earlier.history(), earlier.armed().due_at), (vec!["manual 55 succeeded".into()], at(60)));
    let mut lost = given_back_before_a_manual_run();
    lost.sweep(64).unwrap();
    assert_eq!(lost.armed().due_at, at(60));
}

#[test]
fn every_new_definition_is_another_generation() {
    let mut desk = Desk::new(every(60));
    let mut seen = vec![desk.row().generation];
    for job in [every(60), Job { params: "newer".into(), ..every(60) }, every(10)] {
        desk.update(1, job).unwrap();
        seen.push(desk.row().generation);
    }
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[test]
fn what_was_passed_over_with_an_update_leaves_a_further_attempt_in_its_place() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 100));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    desk.update(130, Job { params: "newer".into(), ..retrying(Overlap::Skip, 2, 100) }).unwrap();
    assert_eq!(desk.history()[1..], ["schedule 120 skipped(updated)"]);
    assert_eq!((desk.armed().due_at, desk.armed().start_at, desk.armed().attempt), (at(60), at(161), 2));
}

#[test]
fn nothing_is_armed_beside_a_running_firing_of_the_schedule() {
    let mut desk = Desk::new(overlap(Overlap::Delay));
    desk.run(60);
    desk.update(130, Job { params: "newer".into(), ..overlap(Overlap::Delay) }).unwrap();
    assert_eq!(desk.row().next_due_at(), None);
}

#[test]
fn a_deleted_job_has_no_due_time_to_come_while_its_last_run_ends() {
    let mut desk = Desk::new(every(60));
    desk.trigger(1).unwrap();
    desk.run(1);
    assert_eq!((desk.row().next_due_at(), desk.delete(2)), (Some(at(60)), Ok(TransitionKind::DeletedLater)));
    assert_eq!(desk.row().next_due_at(), None);
}
