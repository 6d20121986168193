//! Manual runs: their order, their rejections, and that each is a firing of its own.

use carillon_domain::firing::{Rejected, TransitionKind};
use carillon_domain::invariants::recorded_once;
use carillon_domain::job::{MisfirePolicy, Overlap};
use carillon_domain::run::Status;
use carillon_domain::run::Trigger::{Manual, Schedule};

use super::fixture::{JobFixture, at, every, misfire, overlap};

#[test]
fn the_waiting_firing_with_the_earlier_start_goes_first() {
    for (asked_at, first) in [(50, Manual), (60, Schedule), (61, Schedule)] {
        let mut fixture = JobFixture::new(overlap(Overlap::Delay));
        fixture.trigger(asked_at).unwrap();
        fixture.claim(65).unwrap();
        assert_eq!(fixture.held().firing.trigger, first, "triggered at {asked_at}, with the firing of 60 armed");
    }
}

#[test]
fn manual_runs_of_the_same_moment_are_different_firings() {
    let mut concurrent_rows = JobFixture::new(overlap(Overlap::Allow));
    let mut recorded = JobFixture::new(every(600));
    recorded.run(600);
    for _ in 0..3 {
        assert_eq!(concurrent_rows.trigger(601).map(|(kind, _)| kind), Ok(TransitionKind::TriggeredConcurrently));
        assert_eq!(recorded.trigger(601).map(|(kind, _)| kind), Ok(TransitionKind::TriggerSkipped));
    }
    assert_eq!((concurrent_rows.concurrent.len(), recorded.records.len()), (3, 3));
    recorded_once(&recorded.records).unwrap();
}

#[test]
fn a_second_manual_run_is_refused_while_the_first_waits_and_skipped_when_a_firing_is_due() {
    for policy in [Overlap::Skip, Overlap::Delay, Overlap::Replace] {
        let mut fixture = JobFixture::new(overlap(policy));
        let (_, first) = fixture.trigger(1).unwrap();
        assert_eq!(fixture.trigger(2), Err(Rejected::ManualWaiting(first)), "{policy:?}");
    }
    let prepared_for_60 = |asked_at| {
        let mut fixture = JobFixture::new(overlap(Overlap::Skip));
        fixture.claim_ahead(40, 30).unwrap();
        fixture.trigger(asked_at).map(|(kind, _)| kind)
    };
    assert_eq!(
        (prepared_for_60(59), prepared_for_60(60)),
        (Ok(TransitionKind::Triggered), Ok(TransitionKind::TriggerSkipped))
    );
}

#[test]
fn due_times_up_to_the_end_of_a_manual_run_overlap_with_it() {
    for (ended, armed) in [(59, 60), (60, 120), (61, 120)] {
        let mut fixture = JobFixture::new(overlap(Overlap::Skip));
        fixture.trigger(50).unwrap();
        fixture.run(50);
        fixture.finish(ended, Status::Succeeded).unwrap();
        assert_eq!(
            (fixture.armed().due_at, fixture.history().len()),
            (at(armed), 1 + usize::from(armed == 120)),
            "{ended}"
        );
    }
}

#[test]
fn a_delayed_firing_waits_for_a_manual_run_and_is_not_recorded_again() {
    let mut fixture = JobFixture::new(overlap(Overlap::Delay));
    fixture.run(60);
    fixture.trigger(100).unwrap();
    fixture.finish(250, Status::Succeeded).unwrap();
    assert_eq!(fixture.run(250).firing.trigger, Manual, "it is due before the delayed firing");
    fixture.finish(255, Status::Succeeded).unwrap();
    assert_eq!(
        fixture.history(),
        ["schedule 60 succeeded", "schedule 180..240 x2 skipped(overlap)", "manual 100 succeeded"]
    );
    assert_eq!(fixture.armed().due_at, at(120));
}

#[test]
fn a_cancel_affects_only_the_run_it_names() {
    let mut fixture = JobFixture::new(overlap(Overlap::Skip));
    let run = fixture.run(60).run;
    fixture.cancel(61, run).unwrap();
    fixture.finish(62, Status::Cancelled).unwrap();
    fixture.claim(120).unwrap();
    assert_eq!(
        (fixture.reset(120), fixture.armed().due_at),
        (Ok(TransitionKind::Reset), at(120)),
        "the next one is only released"
    );
}

#[test]
fn a_misfire_run_is_not_skipped_for_a_manual_run() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::FireOnce, 0));
    fixture.claim(130).unwrap();
    fixture.reset(131).unwrap();
    fixture.pause(132, None).unwrap();
    fixture.trigger(133).unwrap();
    fixture.run(133);
    fixture.finish(134, Status::Succeeded).unwrap();
    assert_eq!(fixture.armed().due_at, at(120));
    assert_eq!(fixture.history(), ["schedule 60 skipped(misfire)", "manual 133 succeeded"]);
}
