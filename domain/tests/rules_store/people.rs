//! The requests of people: put, pause, delete, trigger, cancel.

use std::time::Duration;

use std::sync::Arc;

use carillon_domain::firing::{Event, FiringKey, Phase};
use carillon_domain::id::JobId;
use carillon_domain::job::Job;
use carillon_domain::run::Trigger;
use carillon_domain::store::{
    Author, Change, JobKey, Need, PutIf, PutJob, Refusal, Rows, accept_losses, cancel, change, delete, distinct_names,
    put_jobs, trigger,
};

use super::rows::{JOB, after, at, decided, held, job, prepared, row, rows, run, window, written};

fn key() -> JobKey {
    JobKey { namespace: "default".into(), name: "report".into() }
}

fn author() -> Author {
    Author::new("ann", "10.0.0.9")
}

fn put(when: PutIf) -> PutJob {
    PutJob { job: job(), paused: None, when, author: author() }
}

#[test]
fn a_new_job_gets_a_version_above_every_deleted_one() {
    let mut rows = Rows::at(at(10), 10_000_000);
    assert_eq!(put_jobs(&[put(PutIf::Any)], &rows).map(|_| ()), Err(Need::Named(vec![key()])));
    rows.names.insert(key(), None);
    assert!(matches!(put_jobs(&[put(PutIf::Any)], &rows), Err(Need::NewJobs(jobs)) if jobs.len() == 1));
    rows.new_jobs = Some(vec![JobId(3)]);
    assert_eq!(put_jobs(&[put(PutIf::Any)], &rows).map(|_| ()), Err(Need::HighestVersion));
    for (highest, version) in [(0, 10_000_000), (20_000_000, 20_000_001)] {
        rows.highest_version = Some(highest);
        let saved = decided(put_jobs(&[put(PutIf::Any)], &rows));
        assert!(matches!(&saved.answer[..], [Ok((row, Change::Created))] if row.state.version == version));
    }
}

#[test]
fn a_put_applies_only_under_its_condition() {
    let mut rows = rows(row(&job()));
    rows.names.insert(key(), Some(JOB));
    let generation = row(&job()).state.generation;
    for (when, expected) in [
        (PutIf::Any, Ok(Change::Unchanged)),
        (PutIf::Generation(generation), Ok(Change::Unchanged)),
        (PutIf::Absent, Err(Refusal::NameTaken(key()))),
        (PutIf::Generation(99), Err(Refusal::Stale { expected: 99, current: generation })),
    ] {
        let saved = decided(put_jobs(&[put(when)], &rows)).answer.remove(0);
        assert_eq!(saved.map(|(_, change)| change), expected, "{when:?}");
    }
    let mut missing = Rows::at(at(10), 0);
    missing.names.insert(key(), None);
    let saved = decided(put_jobs(&[put(PutIf::Generation(1))], &missing)).answer.remove(0);
    assert_eq!(saved.map(|_| ()), Err(Refusal::NoJob(key())));
}

#[test]
fn a_put_pauses_and_resumes_with_the_concurrent_runs_of_its_job() {
    let pausing = |paused| PutJob { paused, ..put(PutIf::Any) };
    let running = row(&job());
    let stopped = after(&running, &Event::Pause { until: None, reason: None }, at(5));
    for (stored, paused, changes) in [
        (&running, Some(true), true),
        (&running, Some(false), false),
        (&running, None, false),
        (&stopped, Some(true), false),
        (&stopped, Some(false), true),
        (&stopped, None, false),
    ] {
        let mut rows = rows(stored.clone());
        rows.names.insert(key(), Some(JOB));
        let saved = decided(put_jobs(&[pausing(paused)], &rows)).answer.remove(0);
        let is_paused = saved.as_ref().map(|(row, _)| row.state.pause.is_some());
        assert_eq!(is_paused, Ok(paused.unwrap_or(stored.state.pause.is_some())), "{paused:?}");
        let change = if changes { Change::Updated } else { Change::Unchanged };
        assert_eq!(saved.map(|(_, change)| change), Ok(change), "{paused:?}");
        // Only a change asks for them.
        rows.with_concurrent.clear();
        let asked = put_jobs(&[pausing(paused)], &rows).map(|_| ());
        assert_eq!(asked, if changes { Err(Need::ConcurrentRunsOf(vec![JOB])) } else { Ok(()) }, "{paused:?}");
        let stale = PutJob { when: PutIf::Absent, ..pausing(paused) };
        assert!(put_jobs(&[stale], &rows).is_ok_and(|refused| refused.answer[0].is_err()), "{paused:?}");
    }
}

#[test]
fn a_name_that_comes_twice_begins_another_batch() {
    let of = |namespace: &str, name: &str| PutJob {
        job: Job { namespace: namespace.into(), name: name.into(), ..job() },
        ..put(PutIf::Any)
    };
    let (a, b, other) = (of("default", "a"), of("default", "b"), of("other", "a"));
    assert_eq!(distinct_names(&[]), 0);
    assert_eq!(distinct_names(&[a.clone(), a.clone()]), 1);
    assert_eq!(distinct_names(&[a.clone(), b.clone(), other.clone()]), 3);
    assert_eq!(distinct_names(&[a.clone(), other, a, b]), 2);
}

#[test]
fn a_pause_releases_the_prepared_firing_and_reads_the_concurrent_runs() {
    let pause = Event::Pause { until: None, reason: None };
    let mut rows = rows(prepared(&job()));
    let paused = decided(change(JOB, &pause, &author(), &rows));
    assert_eq!(written(&paused), Some(Phase::Idle));
    assert!(paused.answer.is_ok_and(|(row, recorded)| row.state.pause.is_some() && !recorded));
    rows.with_concurrent.clear();
    assert_eq!(change(JOB, &pause, &author(), &rows).map(|_| ()), Err(Need::ConcurrentRunsOf(vec![JOB])));
}

#[test]
fn a_resume_tells_whether_it_records_what_passed() {
    let paused = after(&row(&job()), &Event::Pause { until: None, reason: None }, at(5));
    for (now, recorded) in [(6, false), (25, true)] {
        let rows = Rows { now: at(now), ..rows(paused.clone()) };
        let resumed = decided(change(JOB, &Event::Resume, &author(), &rows)).answer;
        assert_eq!(resumed.map(|(_, recorded)| recorded), Ok(recorded), "in second {now}");
    }
}

#[test]
fn a_deletion_frees_the_name_and_guards_against_a_lost_update() {
    let rows = rows(row(&job()));
    let deleted = decided(delete(JOB, None, &author(), &rows));
    assert_eq!((deleted.answer, deleted.write.deleted), (Ok(()), vec![JOB]));
    let stale = decided(delete(JOB, Some(99), &author(), &rows));
    assert!(matches!(stale.answer, Err(Refusal::Stale { expected: 99, .. })) && stale.write.deleted.is_empty());
}

#[test]
fn a_second_manual_run_waits_for_the_first() {
    let once = decided(trigger(JOB, run(50), None, &author(), &rows(row(&job()))));
    let waiting = once.write.jobs[0].after.clone().expect("a row");
    let mut rows = rows(row(&job()));
    rows.jobs.insert(JOB, Some(carillon_domain::store::JobRow { state: waiting, ..row(&job()) }));
    assert!(matches!(decided(trigger(JOB, run(51), None, &author(), &rows)).answer, Err(Refusal::Rejected(_))));
}

#[test]
fn params_of_a_manual_run_are_written_in_the_commit_that_asks_for_it() {
    let params: Arc<str> = Arc::from("{}");
    let asked = decided(trigger(JOB, run(50), Some(&params), &author(), &rows(row(&job()))));
    let manual = asked.write.jobs[0].after.as_ref().and_then(|row| row.manual).expect("it waits");
    let firing = FiringKey { job: JOB, due_at: manual.firing.due_at, trigger: Trigger::Manual };
    assert_eq!(asked.write.run_params, [(firing, params.clone())]);
    assert!(!asked.write.has_only_jobs());
    assert!(decided(trigger(JOB, run(50), None, &author(), &rows(row(&job())))).write.run_params.is_empty());

    let mut waiting = rows(row(&job()));
    let state = asked.write.jobs[0].after.clone().expect("a row");
    waiting.jobs.insert(JOB, Some(carillon_domain::store::JobRow { state, ..row(&job()) }));
    let refused = decided(trigger(JOB, run(51), Some(&params), &author(), &waiting));
    assert!(refused.answer.is_err() && refused.write.run_params.is_empty());
}

#[test]
fn a_cancellation_finds_its_run_wherever_it_is() {
    let prepared = prepared(&job());
    let mut rows = rows(prepared.clone());
    assert_eq!(cancel(run(1), &author(), &rows).map(|_| ()), Err(Need::Run(run(1))));
    rows.runs.insert(run(1), Some(held(&prepared).row));
    let cancelled = decided(cancel(run(1), &author(), &rows));
    assert_eq!((written(&cancelled), cancelled.write.records.len()), (Some(Phase::Idle), 1));
    rows.runs.insert(run(9), None);
    assert_eq!(decided(cancel(run(9), &author(), &rows)).answer, Err(Refusal::NoRun(run(9))));
}

#[test]
fn accepting_closes_only_the_open_windows() {
    let loss = |accepted_at| carillon_domain::store::RecordedLoss {
        window: window(),
        session: super::rows::me(),
        node: None,
        accepted_at,
    };
    let accepted =
        accept_losses(vec![loss(Some(at(9))), loss(None)], &[], Duration::ZERO, &author(), at(20)).unwrap().answer;
    assert_eq!(accepted.iter().map(|one| one.accepted_at).collect::<Vec<_>>(), [Some(at(20))]);
}

#[test]
fn a_job_that_is_gone_is_refused_and_not_asked_for_again() {
    let mut rows = Rows::at(at(10), 0);
    assert_eq!(trigger(JOB, run(50), None, &author(), &rows).map(|_| ()), Err(Need::Jobs(vec![JOB])));
    rows.jobs.insert(JOB, None);
    assert!(matches!(decided(trigger(JOB, run(50), None, &author(), &rows)).answer, Err(Refusal::Rejected(_))));
    assert!(matches!(decided(delete(JOB, None, &author(), &rows)).answer, Err(Refusal::Rejected(_))));
    let resumed = decided(change(JOB, &Event::Resume, &author(), &rows));
    assert!(matches!(resumed.answer, Err(Refusal::Rejected(_))));
}
