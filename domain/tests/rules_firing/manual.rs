//! Runs that people ask for: which goes first, which is refused, and that each is a firing of its own.

use carillon_domain::firing::{Rejected, Why};
use carillon_domain::invariants::recorded_once;
use carillon_domain::job::Overlap;
use carillon_domain::run::Trigger::{Manual, Schedule};

use super::desk::{Desk, every, overlap};

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
        assert_eq!(beside.trigger(601).map(|(why, _)| why), Ok(Why::TriggeredBeside));
        assert_eq!(recorded.trigger(601).map(|(why, _)| why), Ok(Why::TriggerSkipped));
    }
    assert_eq!((beside.active.len(), recorded.records.len()), (3, 3));
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
        desk.trigger(asked_at).map(|(why, _)| why)
    };
    assert_eq!((prepared_for_60(59), prepared_for_60(60)), (Ok(Why::Triggered), Ok(Why::TriggerSkipped)));
}
