//! Queries of a row: the next due time, the time of a replacement, and whether the job is completed.

use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, every, overlap};

#[test]
fn the_next_due_time_is_that_of_the_prepared_firing_until_it_starts() {
    let mut fixture = JobFixture::new(every(60));
    assert_eq!(fixture.row().next_due_at(), Some(at(60)), "idle");
    fixture.claim_ahead(40, 30).unwrap();
    assert_eq!(fixture.row().next_due_at(), Some(at(60)), "prepared");
    fixture.start(60).unwrap();
    assert_eq!(fixture.row().next_due_at(), None, "its end arms the next");
    fixture.finish(61, Status::Succeeded).unwrap();
    fixture.trigger(70).unwrap();
    fixture.claim(70).unwrap();
    assert_eq!(fixture.row().next_due_at(), Some(at(120)), "a manual run is not on the schedule");
}

#[test]
fn a_newer_firing_replaces_a_run_only_with_overlap_replace() {
    let running = |policy| {
        let mut fixture = JobFixture::new(overlap(policy));
        fixture.claim(60).unwrap();
        fixture.start(60).unwrap();
        fixture
    };
    let replace_at = |fixture: &JobFixture, now| fixture.row().replace_at(&fixture.job, &fixture.timeline, at(now));
    for policy in Overlap::ALL {
        let expected = (policy == Overlap::Replace).then(|| at(120));
        assert_eq!(replace_at(&running(policy), 65), expected, "{policy:?}");
    }
    // Paused in second 70: (until, the time of the query, the expected replacement).
    for (until, now, expected) in
        [(None, 70, 120), (None, 200, 240), (Some(150), 70, 120), (Some(150), 200, 180), (Some(180), 200, 180)]
    {
        let mut paused = running(Overlap::Replace);
        paused.pause(70, until).unwrap();
        assert_eq!(replace_at(&paused, now), Some(at(expected)), "paused until {until:?}, at {now}");
    }
    let mut deleted = running(Overlap::Replace);
    deleted.delete(70).unwrap();
    assert_eq!(replace_at(&deleted, 70), None);
}

#[test]
fn a_job_is_completed_when_its_schedule_has_ended_and_no_firing_is_held_or_waits() {
    let mut fixture = JobFixture::new(Job { end_at: Some(at(60)), ..every(60) });
    assert!(!fixture.row().is_completed(), "its last firing is to come");
    fixture.claim(60).unwrap();
    assert!(!fixture.row().is_completed(), "prepared");
    fixture.start(60).unwrap();
    assert!(!fixture.row().is_completed(), "executing");
    fixture.finish(61, Status::Succeeded).unwrap();
    assert!(fixture.row().is_completed());
    fixture.trigger(70).unwrap();
    assert!(!fixture.row().is_completed(), "a manual run waits");
}
