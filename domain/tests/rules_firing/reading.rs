//! What a row tells people and nodes: what comes next, what takes its run's place, whether it is over.

use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::Status;

use super::desk::{Desk, at, every, overlap};

#[test]
fn the_next_due_time_is_that_of_what_is_prepared_until_it_has_started() {
    let mut desk = Desk::new(every(60));
    assert_eq!(desk.row().next_due_at(), Some(at(60)), "idle");
    desk.claim_ahead(40, 30).unwrap();
    assert_eq!(desk.row().next_due_at(), Some(at(60)), "prepared");
    desk.start(60).unwrap();
    assert_eq!(desk.row().next_due_at(), None, "its end arms the next");
    desk.finish(61, Status::Succeeded).unwrap();
    desk.trigger(70).unwrap();
    desk.claim(70).unwrap();
    assert_eq!(desk.row().next_due_at(), Some(at(120)), "what a person asked for is not on the schedule");
}

#[test]
fn a_newer_firing_takes_the_place_of_what_runs_where_the_job_says_so() {
    let running = |policy| {
        let mut desk = Desk::new(overlap(policy));
        desk.claim(60).unwrap();
        desk.start(60).unwrap();
        desk
    };
    let replace_at = |desk: &Desk, now| desk.row().replace_at(&desk.job, &desk.timeline, at(now));
    for policy in Overlap::ALL {
        let expected = (policy == Overlap::Replace).then(|| at(120));
        assert_eq!(replace_at(&running(policy), 65), expected, "{policy:?}");
    }
    // In second 70 paused until then, and looked at then.
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
fn a_job_is_completed_once_its_schedule_has_ended_and_nothing_is_held_or_waits() {
    let mut desk = Desk::new(Job { end_at: Some(at(60)), ..every(60) });
    assert!(!desk.row().is_completed(), "its last firing is to come");
    desk.claim(60).unwrap();
    assert!(!desk.row().is_completed(), "prepared");
    desk.start(60).unwrap();
    assert!(!desk.row().is_completed(), "executing");
    desk.finish(61, Status::Succeeded).unwrap();
    assert!(desk.row().is_completed());
    desk.trigger(70).unwrap();
    assert!(!desk.row().is_completed(), "a person wants it once more");
}
