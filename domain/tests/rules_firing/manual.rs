//! Runs that people ask for: which goes first, which is refused, and that each is a firing of its own.

use carillon_domain::firing::{Rejected, TransitionKind};
use carillon_domain::invariants::recorded_once;
use carillon_domain::job::{MisfirePolicy, Overlap};
use carillon_domain::run::Status;
use carillon_domain::run::Trigger::{Manual, Schedule};

use super::desk::{Desk, at, every, misfire, overlap};

#[test]
fn of_two_that_wait_the_one_that_starts_earlier_goes_first() {
    for (asked_at, first) in [(50, Manual), (60, Schedule), (61, Schedule)] {
        let mut desk = Desk::new(overlap(Overlap::Delay));
        desk.trigger(asked_at).unwrap();
        desk.claim(65).unwrap();
        assert_eq!(desk.held().firing.trigger, first, "asked for at {asked_at}, beside the firing of 60");
    }
}

#[test]
fn runs_asked_for_in_the_same_moment_are_different_firings() {
    let mut beside = Desk::new(overlap(Overlap::Allow));
    let mut recorded = Desk::new(every(600));
    recorded.run(600);
    for _ in 0..3 {
        assert_eq!(beside.trigger(601).map(|(kind, _)| kind), Ok(TransitionKind::TriggeredConcurrently));
        assert_eq!(recorded.trigger(601).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    }
    assert_eq!((beside.concurrent.len(), recorded.records.len()), (3, 3));
    recorded_once(&recorded.records).unwrap();
}

#[test]
fn a_second_run_now_is_refused_while_the_first_waits_and_skipped_once_the_firing_is_at_its_time() {
    for policy in [Overlap::Skip, Overlap::Delay, Overlap::Replace] {
        let mut desk = Desk::new(overlap(policy));
        let (_, first) = desk.trigger(1).unwrap();
        assert_eq!(desk.trigger(2), Err(Rejected::ManualWaiting(first)), "{policy:?}");
    }
    let prepared_for_60 = |asked_at| {
        let mut desk = Desk::new(overlap(Overlap::Skip));
        desk.claim_ahead(40, 30).unwrap();
        desk.trigger(asked_at).map(|(kind, _)| kind)
    };
    assert_eq!(
        (prepared_for_60(59), prepared_for_60(60)),
        (Ok(TransitionKind::Triggered), Ok(TransitionKind::TriggerSkipped))
    );
}

#[test]
fn what_came_due_up_to_the_end_of_a_manual_run_came_due_while_it_lived() {
    for (ended, armed) in [(59, 60), (60, 120), (61, 120)] {
        let mut desk = Desk::new(overlap(Overlap::Skip));
        desk.trigger(50).unwrap();
        desk.run(50);
        desk.finish(ended, Status::Succeeded).unwrap();
        assert_eq!((desk.armed().due_at, desk.history().len()), (at(armed), 1 + usize::from(armed == 120)), "{ended}");
    }
}

#[test]
fn what_a_manual_run_finds_waiting_waits_on_and_is_not_told_again() {
    let mut desk = Desk::new(overlap(Overlap::Delay));
    desk.run(60);
    desk.trigger(100).unwrap();
    desk.finish(250, Status::Succeeded).unwrap();
    assert_eq!(desk.run(250).firing.trigger, Manual, "asked for before the firing that waits came due");
    desk.finish(255, Status::Succeeded).unwrap();
    assert_eq!(
        desk.history(),
        ["schedule 60 succeeded", "schedule 180..240 x2 skipped(overlap)", "manual 100 succeeded"]
    );
    assert_eq!(desk.armed().due_at, at(120));
}

#[test]
fn a_cancel_ends_with_the_run_that_it_was_meant_for() {
    let mut desk = Desk::new(overlap(Overlap::Skip));
    let run = desk.run(60).run;
    desk.cancel(61, run).unwrap();
    desk.finish(62, Status::Cancelled).unwrap();
    desk.claim(120).unwrap();
    assert_eq!(
        (desk.reset(120), desk.armed().due_at),
        (Ok(TransitionKind::Reset), at(120)),
        "the next one is given back, no more"
    );
}

#[test]
fn what_is_to_be_made_good_is_not_overlapped_by_a_manual_run() {
    let mut desk = Desk::new(misfire(MisfirePolicy::FireOnce, 0));
    desk.claim(130).unwrap();
    desk.reset(131).unwrap();
    desk.pause(132, None).unwrap();
    desk.trigger(133).unwrap();
    desk.run(133);
    desk.finish(134, Status::Succeeded).unwrap();
    assert_eq!(desk.armed().due_at, at(120));
    assert_eq!(desk.history(), ["schedule 60 skipped(misfire)", "manual 133 succeeded"]);
}
