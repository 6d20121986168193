//! Rows and answers as adapters read them.

use std::sync::Arc;

use carillon_domain::firing::{Event, FiringKey, JobState};
use carillon_domain::id::JobId;
use carillon_domain::node::port::{RowKey, RunRef, UNCLAIMED_PER_PARTITION, Unclaimed};
use carillon_domain::run::Trigger;
use carillon_domain::store::{
    Action, Change, RecordedLoss, Rows, SessionState, SessionWrite, Standing, Write, WriteSet, peek,
};

use super::rows::{JOB, after, at, job, me, row, run, standing, window};

#[test]
fn values_have_the_names_that_users_read() {
    assert_eq!(SessionState::ALL.map(SessionState::as_str), ["live", "draining", "ended"]);
    let changes = [Change::Created, Change::Updated, Change::Unchanged].map(Change::as_str);
    assert_eq!(changes, ["created", "updated", "unchanged"]);
    let actions = [
        "job.created",
        "job.updated",
        "job.deleted",
        "job.paused",
        "job.resumed",
        "job.run",
        "run.cancelled",
        "losses.accepted",
        "alert.put",
        "alert.deleted",
        "alert.tested",
        "delivery.resent",
    ];
    assert_eq!(Action::ALL.map(Action::as_str), actions);
}

#[test]
fn a_session_is_in_order_while_it_lives_and_no_loss_is_open() {
    let open = Standing { open: Some(window()), ..standing(SessionState::Live) };
    for (name, standing, expected) in [
        ("live", standing(SessionState::Live), true),
        ("draining", standing(SessionState::Draining), true),
        ("ended", standing(SessionState::Ended), false),
        ("unknown", Standing::default(), false),
        ("a loss is open", open, false),
    ] {
        assert_eq!(standing.is_in_order(), expected, "{name}");
    }
}

#[test]
fn a_row_that_was_asked_for_and_is_missing_counts_as_read() {
    let mut rows = Rows::at(at(1), 1_000_000);
    let concurrent = RowKey::Concurrent(FiringKey { job: JOB, due_at: at(10), trigger: Trigger::Schedule });
    let asked = [RowKey::Job(JOB), concurrent].map(|row| RunRef { row, run: run(1), version: 1 });
    assert_eq!(asked.map(|at| rows.has(&at.row)), [false, false]);
    rows.note_missing(&asked);
    assert_eq!(asked.map(|at| rows.has(&at.row)), [true, true]);
    let read = rows.add_job(row(&job()));
    rows.note_missing(&asked);
    assert!(rows.jobs[&JOB].is_some() && rows.has(&read), "a row that is there stays");
}

#[test]
fn a_deletion_is_known_by_a_version_that_no_start_has() {
    let row = row(&job());
    let write = |after: Option<&Arc<JobState>>| Write {
        before: Some(row.state.clone()),
        after: after.cloned(),
        definition: row.definition.clone(),
    };
    assert_eq!(write(Some(&row.state)).deleted_version(), None, "it stays");
    assert_eq!(write(None).deleted_version(), Some(row.state.version + 1), "its row goes");
    let lives = after(&super::rows::executing(&job()), &Event::Delete, at(11)).state;
    assert_eq!(write(Some(&lives)).deleted_version(), Some(lives.version), "its run goes on");
}

#[test]
fn a_write_set_of_jobs_holds_nothing_else() {
    let only = |change: fn(&mut WriteSet)| {
        let mut write = WriteSet::default();
        change(&mut write);
        write.has_only_jobs()
    };
    let definition = |write: &mut WriteSet| write.definitions.push((JOB, row(&job()).definition));
    let params = FiringKey { job: JOB, due_at: at(10), trigger: Trigger::Manual };
    let loss = RecordedLoss { window: window(), session: me(), node: None, accepted_at: None };
    assert!(only(|_| ()));
    assert!(!only(|write| write.deleted.push(JOB)));
    assert!(!only(|write| write.outputs.push((run(1), Arc::default()))));
    assert!(!only(|write| write.sessions.push(SessionWrite::Spend(me()))));
    for change in [
        Box::new(definition) as Box<dyn Fn(&mut WriteSet)>,
        Box::new(|write| write.run_params.push((params, "{}".into()))),
        Box::new(|write| write.loss = Some(loss.clone())),
    ] {
        let mut write = WriteSet::default();
        change(&mut write);
        assert!(!write.has_only_jobs(), "{write:?}");
    }
}

#[test]
fn a_peek_tells_of_the_first_rows_of_each_foreign_partition() {
    let of = |partition, second: i64| Unclaimed {
        partition,
        claim_at: at(second),
        row: RowKey::Job(JobId(second.cast_unsigned())),
        version: 1,
        executor: "shell".into(),
    };
    let most = i64::try_from(UNCLAIMED_PER_PARTITION).unwrap();
    let found: Vec<Unclaimed> =
        (1..=most + 2).rev().flat_map(|second| [of(3, second), of(2, second), of(1, second + 5)]).collect();
    let answer = peek(&[1], found);
    assert_eq!(answer.earliest_claim_at, Some(at(6)), "of its own partition");
    let expected: Vec<Unclaimed> = [2, 3].into_iter().flat_map(|of_it| (1..=most).map(move |s| of(of_it, s))).collect();
    assert_eq!(answer.unclaimed, expected);
    assert_eq!(peek(&[], vec![of(1, 1)]).earliest_claim_at, None);
}
