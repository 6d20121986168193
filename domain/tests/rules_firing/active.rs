//! Runs beside the job's row: every event in every phase.

use carillon_domain::firing::{Event, FiringKey, Rejected, Why};
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
    assert_eq!(desk.start(60), Ok(Why::StartedBeside));
    let (key, row) = desk.active.iter().next().map(|(key, row)| (*key, row.phase)).unwrap();
    (desk, key, row.held().unwrap().run)
}

fn finish(desk: &mut Desk, key: FiringKey, now: i64, status: Status) -> Result<Why, Rejected> {
    desk.now = at(now);
    let run = desk.active[&key].phase.held().unwrap().run;
    desk.apply_active(key, &Event::Finish { session: me(), run, ending: ending(status, at(now)) })
}

#[test]
fn nothing_beside_a_paused_job_starts() {
    let (mut failed, key, _) = beside();
    failed.pause(61, None).unwrap();
    assert_eq!(finish(&mut failed, key, 62, Status::Failed), Ok(Why::Finished), "no further attempt");
    assert!(failed.active.is_empty());

    let (mut given_back, key, run) = beside();
    given_back.pause(61, None).unwrap();
    given_back.apply_active(key, &Event::Reset { session: me(), run }).unwrap();
    assert!(given_back.active.is_empty(), "a start that was in doubt when the pause was answered");
    let reason = "the job was paused or deleted before the start";
    assert_eq!(given_back.history(), [format!("schedule 60 skipped({reason})")]);

    let (mut unstarted, key, run) = beside();
    unstarted.apply_active(key, &Event::Reset { session: me(), run }).unwrap();
    unstarted.pause(61, None).unwrap();
    assert_eq!(unstarted.history(), ["schedule 60 skipped(paused)"]);

    let (mut backing_off, key, _) = beside();
    finish(&mut backing_off, key, 62, Status::Failed).unwrap();
    backing_off.pause(63, None).unwrap();
    assert_eq!((backing_off.active.len(), backing_off.history().len()), (0, 1), "its first attempt has its record");
}
