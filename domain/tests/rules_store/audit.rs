//! The audit log: a decision tells of its change, and of nothing else.

use std::time::Duration;

use carillon_domain::firing::Event;
use carillon_domain::job::Job;
use carillon_domain::store::{
    Action, AuditDocument, AuditEntry, Author, Decided, JobKey, PutIf, PutJob, RecordedLoss, Refusal, Rows,
    accept_losses, cancel, change, delete, put_jobs, trigger,
};

use super::rows::{JOB, at, decided, held, job, me, prepared, row, rows, run, window};

fn ann() -> Author {
    Author::new("ann", "10.0.0.9 curl/8")
}

fn key() -> JobKey {
    JobKey { namespace: "default".into(), name: "report".into() }
}

fn put(job: Job, paused: Option<bool>) -> PutJob {
    PutJob { job, paused, when: PutIf::Any, author: ann() }
}

/// The rows in which the job is stored under its name.
fn named() -> Rows {
    let mut rows = rows(row(&job()));
    rows.names.insert(key(), Some(JOB));
    rows
}

/// The one entry of a decision.
fn entry<A>(decided: &Decided<A>) -> &AuditEntry {
    match &decided.write.audit[..] {
        [one] => one,
        other => panic!("one entry is expected, not {other:?}"),
    }
}

/// Schedule and pause of a state.
fn state(document: Option<&AuditDocument>) -> Option<(&str, bool)> {
    match document? {
        AuditDocument::Job { definition, pause } => Some((&definition.schedule, pause.is_some())),
        other => panic!("no state of a job: {other:?}"),
    }
}

fn assert_told<A>(decided: &Decided<A>, action: Action, before: Option<(&str, bool)>, after: Option<(&str, bool)>) {
    let entry = entry(decided);
    assert_eq!((entry.action, entry.at, &entry.author), (action, at(10), &ann()));
    assert_eq!(entry.job, Some((key(), JOB)));
    assert_eq!((state(entry.before.as_ref()), state(entry.after.as_ref())), (before, after));
}

#[test]
fn a_put_tells_of_both_definitions() {
    let mut new = Rows::at(at(10), 10_000_000);
    new.names.insert(key(), None);
    (new.new_jobs, new.highest_version) = (Some(vec![JOB]), Some(0));
    let created = decided(put_jobs(&[put(job(), Some(true))], &new));
    assert_told(&created, Action::JobCreated, None, Some(("@every 10s", true)));

    let changed = || Job { schedule: "@every 60s".into(), ..job() };
    let updated = decided(put_jobs(&[put(changed(), None)], &named()));
    assert_told(&updated, Action::JobUpdated, Some(("@every 10s", false)), Some(("@every 60s", false)));
    let paused = decided(put_jobs(&[put(job(), Some(true))], &named()));
    assert_told(&paused, Action::JobUpdated, Some(("@every 10s", false)), Some(("@every 10s", true)));
}

#[test]
fn a_put_that_changes_nothing_or_is_refused_tells_nothing() {
    for when in [PutIf::Any, PutIf::Absent, PutIf::Generation(99)] {
        let decided = decided(put_jobs(&[PutJob { when, ..put(job(), None) }], &named()));
        assert!(decided.write.audit.is_empty(), "{when:?}");
    }
}

#[test]
fn each_put_of_a_batch_has_its_own_author() {
    let bob = Author::new("bob", "cron");
    let mut rows = Rows::at(at(10), 10_000_000);
    let other = Job { name: "other".into(), ..job() };
    rows.names.extend([(key(), None), (JobKey::of(&other), None)]);
    (rows.new_jobs, rows.highest_version) = (Some(vec![JOB, carillon_domain::id::JobId(8)]), Some(0));
    let puts = [put(job(), None), PutJob { author: bob.clone(), ..put(other, None) }];
    let authors: Vec<Author> =
        decided(put_jobs(&puts, &rows)).write.audit.into_iter().map(|entry| entry.author).collect();
    assert_eq!(authors, [ann(), bob]);
}

#[test]
fn actions_tell_of_job_and_run() {
    let daily = Some(("@every 10s", false));
    let deleted = decided(delete(JOB, None, &ann(), &rows(row(&job()))));
    assert_told(&deleted, Action::JobDeleted, daily, None);
    let generation = Some(row(&job()).state.generation);
    assert_eq!(entry(&deleted).generation, generation);
    let pause = Event::Pause { until: None, reason: None };
    let paused = decided(change(JOB, &pause, &ann(), &rows(row(&job()))));
    assert_told(&paused, Action::JobPaused, daily, Some(("@every 10s", true)));
    assert_eq!(entry(&paused).generation, generation);
    let resumed = decided(change(JOB, &Event::Resume, &ann(), &rows(paused.answer.expect("a row").0)));
    assert_told(&resumed, Action::JobResumed, Some(("@every 10s", true)), daily);

    let triggered = decided(trigger(JOB, run(50), None, &ann(), &rows(row(&job()))));
    assert_told(&triggered, Action::JobRun, None, None);
    assert_eq!(entry(&triggered).run, Some(run(50)));
    let params: std::sync::Arc<str> = "{}".into();
    let with_params = decided(trigger(JOB, run(50), Some(&params), &ann(), &rows(row(&job()))));
    assert_eq!(entry(&with_params).after, Some(AuditDocument::RunParams(params)));
    let held_row = prepared(&job());
    let mut rows = rows(held_row.clone());
    rows.runs.insert(run(1), Some(held(&held_row).row));
    let cancelled = decided(cancel(run(1), &ann(), &rows));
    assert_told(&cancelled, Action::RunCancelled, None, None);
    assert_eq!(entry(&cancelled).run, Some(run(1)));
}

#[test]
fn a_refused_action_tells_nothing() {
    let stale = decided(delete(JOB, Some(99), &ann(), &rows(row(&job()))));
    assert!(matches!(stale.answer, Err(Refusal::Stale { .. })) && stale.write.audit.is_empty());
    let mut gone = Rows::at(at(10), 0);
    gone.jobs.insert(JOB, None);
    gone.runs.insert(run(9), None);
    assert!(decided(trigger(JOB, run(9), None, &ann(), &gone)).write.audit.is_empty());
    assert!(decided(change(JOB, &Event::Resume, &ann(), &gone)).write.audit.is_empty());
    assert!(decided(cancel(run(9), &ann(), &gone)).write.audit.is_empty());
}

#[test]
fn an_acceptance_tells_of_the_windows_that_it_closes() {
    let open = RecordedLoss { window: window(), session: me(), node: None, accepted_at: None };
    let accepted = accept_losses(vec![open.clone()], &[], Duration::ZERO, &ann(), at(20)).unwrap();
    let told = entry(&accepted);
    assert_eq!((told.action, told.at, &told.job), (Action::LossesAccepted, at(20), &None));
    assert_eq!(told.before, Some(AuditDocument::LossWindows(vec![open])));
    assert_eq!(told.after, Some(AuditDocument::LossWindows(accepted.answer.clone())));
    assert!(
        accept_losses(accepted.answer, &[], Duration::ZERO, &ann(), at(30)).unwrap().write.audit.is_empty(),
        "nothing was open"
    );
}
