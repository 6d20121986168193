//! People change a job after lost commits, before its row was claimed again.

use carillon_domain::firing::Event;
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::store::{Author, JobKey, JobRow, Need, PutIf, PutJob, Rows, WriteSet, change, delete, put_jobs};
use carillon_domain::time::Timestamp;

use super::rows::{JOB, after, at, decided, job, row, run};

fn author() -> Author {
    Author::new("ann", "10.0.0.9")
}

/// The rows of a transaction in second 46. Commits up to second 45 are lost; runs of 20 and 40 were written back, and are over.
fn rows_of(row: JobRow) -> Rows {
    let mut rows = super::rows::rows(row);
    rows.now = at(46);
    rows.losses = Some((at(0), Some(at(45))));
    let ended = |number, due: i64| RunRecord {
        status: Status::Succeeded,
        ..RunRecord::commits_lost(JOB, Some(run(number)), (at(due), Trigger::Schedule, 1), at(due + 1))
    };
    rows.add_history(vec![JOB], at(0), vec![ended(2, 20), ended(4, 40)]);
    rows.names.insert(JobKey { namespace: "default".into(), name: "report".into() }, Some(JOB));
    rows
}

fn paused() -> JobRow {
    after(&row(&job()), &Event::Pause { until: None, reason: None }, at(5))
}

/// From which due time to which each record stands, and what it says.
fn told(write: &WriteSet) -> Vec<(Timestamp, Timestamp, Status)> {
    write.records.iter().map(|record| (record.first_due_at, record.due_at, record.status)).collect()
}

fn updated(rows: &Rows) -> Result<WriteSet, Need> {
    let mut job = job();
    job.params = r#"{"command": "true"}"#.into();
    put_jobs(&[PutJob { job, paused: None, when: PutIf::Any, author: author() }], rows).map(|done| done.write)
}

#[test]
fn what_a_row_has_forgotten_is_recorded_beside_the_runs_that_are_known() {
    let lost = |due| (at(due), at(due), Status::Lost);
    let resumed = decided(change(JOB, &Event::Resume, &author(), &rows_of(paused())));
    assert_eq!(told(&resumed.write), [lost(10), lost(30)], "a resume");
    let write = updated(&rows_of(row(&job()))).expect("it needs no more");
    assert_eq!(told(&write), [lost(10), lost(30)], "an update");
    let armed = write.jobs[0].after.as_ref().and_then(|state| state.armed);
    assert_eq!(armed.map(|firing| firing.due_at), Some(at(50)), "an update");
    let deleted = decided(delete(JOB, None, &author(), &rows_of(row(&job()))));
    assert_eq!(told(&deleted.write), [lost(10), lost(30)], "a deletion");
}

#[test]
fn what_nobody_knows_of_is_recorded_as_before() {
    let mut rows = rows_of(paused());
    rows.add_history(vec![JOB], at(0), Vec::new());
    let resumed = decided(change(JOB, &Event::Resume, &author(), &rows));
    assert_eq!(told(&resumed.write), [(at(10), at(40), Status::Skipped)]);
}

#[test]
fn history_is_read_only_of_rows_that_wait_since_lost_commits() {
    let mut rows = rows_of(row(&job()));
    (rows.losses, rows.history) = (None, Default::default());
    assert_eq!(updated(&rows).map(|_| ()), Err(Need::Losses(at(10))));
    for (until, asks) in [(None, false), (Some(at(9)), false), (Some(at(10)), true)] {
        rows.losses = Some((at(10), until));
        let asked = updated(&rows).err();
        assert_eq!(asked, asks.then(|| Need::History(vec![JOB], at(10))), "{until:?}");
    }
    rows.losses = None;
    rows.now = at(9);
    assert!(updated(&rows).is_ok(), "nothing is due");
    let same = PutJob { job: job(), paused: None, when: PutIf::Any, author: author() };
    rows.now = at(46);
    assert!(put_jobs(&[same], &rows).is_ok(), "nothing is changed");
}
