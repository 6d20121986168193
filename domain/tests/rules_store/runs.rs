//! Claim, start, finish, release and settle.

use std::sync::Arc;

use carillon_domain::firing::{Event, JobState, LastEnd, Phase};
use carillon_domain::id::JobId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::call::{ClaimRequest, Me};
use carillon_domain::node::port::{FinishAnswer, Finished, Next, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::{Ending, Output, Status};
use carillon_domain::store::{
    AfterRefusal, ConcurrentJob, JobRow, Need, RecordedLoss, Rows, SessionState, SplitFinish, Standing, claim, finish,
    optimistic_start, release, settle, start,
};

use super::rows::{
    JOB, after, at, claim_request, decided, executing, held, job, me, prepared, row, rows, run, session, standing,
    window, written,
};

fn asks() -> Me {
    Me { session: me(), acked: 5 }
}

fn finished(at: RunRef, next: Option<Next>) -> Finished {
    let ending = Ending { exit_code: Some(0), ..Ending::new(Status::Succeeded, super::rows::at(12)) };
    Finished { at, ending, output: Output { bytes: b"done".to_vec(), truncated: false }.into(), next }
}

#[test]
fn a_claim_takes_due_rows_under_the_ids_given() {
    let claimed = decided(claim(&claim_request(), &rows(row(&job()))));
    assert_eq!((claimed.answer.len(), claimed.answer[0].at.run), (1, run(1)));
    assert!(matches!(written(&claimed), Some(Phase::Prepared(held)) if held.run == run(1) && held.session == me()));
    assert_eq!(claimed.write.jobs[0].before.as_ref().map(|before| before.version), Some(100), "the guard of the write");
}

#[test]
fn a_due_firing_starts_in_the_commit_of_its_claim_where_a_place_is_free() {
    let request = ClaimRequest { places: 1, ..claim_request() };
    let claimed = decided(claim(&request, &rows(row(&job()))));
    assert_eq!(claimed.answer[0].held.started_at, Some(at(10)));
    assert!(matches!(written(&claimed), Some(Phase::Executing(_))));
    let version = claimed.write.jobs[0].after.as_ref().map(|state| state.version);
    assert_eq!((Some(claimed.answer[0].at.version), claimed.answer[0].replace_at), (version, None));
    let late = Rows { now: at(12), ..rows(row(&Job { overlap: Overlap::Replace, ..job() })) };
    let claimed = decided(claim(&request, &late)).answer.remove(0);
    assert_eq!((claimed.held.started_at, claimed.replace_at), (Some(at(12)), Some(at(20))), "a newer one replaces it");
}

#[test]
fn a_claim_starts_no_more_than_it_has_places_for() {
    let request = |places| ClaimRequest { places, ..claim_request() };
    let mut rows = rows(row(&job()));
    let second = row(&job());
    let state = Arc::new(JobState { id: JobId(8), ..JobState::clone(&second.state) });
    let second = rows.add_job(JobRow { state, ..second });
    rows.due.as_mut().expect("the first one").push(second);
    rows.with_concurrent.insert(JobId(8));
    for places in 0..=2 {
        let claimed = decided(claim(&request(places), &rows)).answer;
        let started = claimed.iter().filter(|claimed| claimed.held.started_at.is_some()).count();
        assert_eq!((claimed.len(), started), (2, places), "{places}");
    }
}

#[test]
fn a_claim_that_may_start_needs_the_concurrent_runs_of_a_job_that_forbids_overlap() {
    for (overlap, places, asks) in [(Overlap::Skip, 1, true), (Overlap::Skip, 0, false), (Overlap::Allow, 1, false)] {
        let mut rows = rows(row(&Job { overlap, ..job() }));
        rows.with_concurrent.clear();
        let asked = claim(&ClaimRequest { places, ..claim_request() }, &rows).err();
        assert_eq!(asked, asks.then(|| Need::ConcurrentRunsOf(vec![JOB])), "{overlap:?}, {places} places");
    }
}

/// Who claims nothing: each line is a standing of the session, and whether a loss is recorded.
#[test]
fn only_a_live_session_claims_and_starts() {
    let of = |standing: Standing| {
        let mut rows = rows(prepared(&job()));
        rows.standing = Some(standing);
        rows.spent_seq = Some(None);
        rows.last_heard = Some(None);
        rows
    };
    let open = Standing { open: Some(window()), ..standing(SessionState::Live) };
    let behind = Standing { session: Some(session(3, SessionState::Live)), ..standing(SessionState::Live) };
    let unknown = Standing { session: None, ..standing(SessionState::Live) };
    for (name, standing, starts, noticed) in [
        ("ended", standing(SessionState::Ended), StartAnswer::Gone, false),
        ("a loss window is open", open, StartAnswer::Suspended, false),
        ("its heartbeat is gone", behind, StartAnswer::Suspended, true),
        ("the database has forgotten it", unknown, StartAnswer::Suspended, true),
    ] {
        let rows = of(standing);
        let claimed = decided(claim(&claim_request(), &rows));
        assert_eq!((claimed.answer.len(), written(&claimed)), (0, None), "{name}");
        assert_eq!(claimed.write.loss.is_some(), noticed, "{name}");
        let started = decided(start(asks(), &[held(&prepared(&job()))], &rows));
        assert_eq!((started.answer, started.write.loss.is_some()), (vec![starts], noticed), "{name}");
    }
    let open = Standing { open: Some(window()), ..standing(SessionState::Live) };
    for (name, standing) in
        [("draining", standing(SessionState::Draining)), ("ended", standing(SessionState::Ended)), ("suspended", open)]
    {
        let idle = Rows { standing: Some(standing), ..rows(row(&job())) };
        assert!(decided(claim(&claim_request(), &idle)).answer.is_empty(), "{name}: it claims nothing");
    }
    let started = decided(start(asks(), &[held(&prepared(&job()))], &of(standing(SessionState::Draining))));
    assert!(matches!(started.answer[..], [StartAnswer::Started { .. }]), "but it starts what it holds");
}

#[test]
fn a_noticed_loss_names_the_time_of_the_last_known_heartbeat() {
    let mut rows = rows(row(&job()));
    rows.standing = Some(Standing { session: Some(session(3, SessionState::Live)), ..Standing::default() });
    let RecordedLoss { window, node, .. } = decided(claim(&claim_request(), &rows)).write.loss.expect("a loss");
    assert_eq!((window.from_at, window.until_at, node.as_deref()), (at(9), at(10), Some("a")));
}

#[test]
fn a_start_matches_only_the_version_that_its_holder_saw() {
    let prepared = prepared(&job());
    let at_version = held(&prepared);
    let stray = RunRef { version: at_version.version - 1, ..at_version };
    let other = RunRef { run: run(9), ..at_version };
    let started = decided(start(asks(), &[at_version], &rows(prepared.clone())));
    assert!(matches!(started.answer[..], [StartAnswer::Started { at, .. }] if at.version > at_version.version));
    let neither = RunRef { run: run(9), ..stray };
    for (wrong, answer) in [(stray, StartAnswer::Moved), (other, StartAnswer::Gone), (neither, StartAnswer::Gone)] {
        let refused = decided(start(asks(), &[wrong], &rows(prepared.clone())));
        assert_eq!((written(&refused), refused.answer), (None, vec![answer]));
    }
}

#[test]
fn a_firing_that_may_have_started_in_lost_commits_is_not_started() {
    let mut rows = rows(prepared(&job()));
    rows.standing = Some(Standing { losses_until: Some(at(20)), ..standing(SessionState::Live) });
    let answer = decided(start(asks(), &[held(&prepared(&job()))], &rows)).answer;
    assert_eq!(answer, [StartAnswer::Suspended]);
}

#[test]
fn a_start_needs_the_concurrent_runs_of_a_job_that_forbids_overlap() {
    let mut rows = rows(prepared(&job()));
    rows.with_concurrent.clear();
    let need = start(asks(), &[held(&prepared(&job()))], &rows).map(|_| ());
    assert_eq!(need, Err(Need::ConcurrentRunsOf(vec![JOB])));
}

#[test]
fn an_optimistic_start_is_an_update_of_the_jobs_rows_or_nothing() {
    let prepared = prepared(&job());
    let decided = optimistic_start(me(), &[held(&prepared)], None, &rows(prepared.clone())).expect("it is due");
    assert!(decided.write.has_only_jobs() && decided.write.jobs.len() == 1);
    let mut early = rows(prepared.clone());
    early.now = at(9);
    assert!(
        optimistic_start(me(), &[held(&prepared)], None, &early).is_none(),
        "an answer without a write is not confirmed"
    );
}

/// The end of a pause is noticed by the start, and its due times are recorded with it.
#[test]
fn a_start_that_records_is_not_optimistic() {
    let mut manual = row(&job());
    for (event, second) in [
        (Event::Pause { until: Some(at(15)), reason: None }, 1),
        (Event::Trigger { run: run(50) }, 2),
        (Event::Claim { session: me(), run: run(1), until: at(30), losses_until: None }, 3),
    ] {
        manual = after(&manual, &event, at(second));
    }
    let later = Rows { now: at(20), ..rows(manual.clone()) };
    let started = decided(start(asks(), &[held(&manual)], &later));
    assert!(matches!(started.answer[..], [StartAnswer::Started { .. }]) && started.write.records.len() == 1);
    assert!(optimistic_start(me(), &[held(&manual)], None, &later).is_none());
}

#[test]
fn a_finish_records_the_run_and_may_claim_the_next_firing() {
    let executing = executing(&job());
    let next = Next { run: run(2), until: at(40), has_place: false };
    for (next, executors, claimed) in
        [(None, vec!["shell"], false), (Some(next), vec!["shell"], true), (Some(next), vec!["http"], false)]
    {
        let executors: Vec<String> = executors.into_iter().map(str::to_owned).collect();
        let done = decided(finish(asks(), &[finished(held(&executing), next)], &executors, &rows(executing.clone())));
        assert_eq!((done.write.records.len(), done.write.outputs.len()), (1, 1));
        assert_eq!(matches!(done.answer[..], [FinishAnswer::RecordedAndClaimed(_)]), claimed, "{next:?} {executors:?}");
        assert_eq!(matches!(written(&done), Some(Phase::Prepared(_))), claimed);
        let claim_at = FinishAnswer::Recorded { claim_at: Some(at(20)) };
        assert!(claimed || done.answer == [claim_at], "{:?}", done.answer);
    }
    let idle = rows(row(&job()));
    let mut gone = idle.clone();
    gone.runs.insert(run(1), None);
    let again = finish(asks(), &[finished(held(&executing), None)], &[], &idle).map(|_| ());
    assert_eq!(again, Err(Need::ConcurrentRun(run(1))), "it may have become a concurrent run");
    let again = decided(finish(asks(), &[finished(held(&executing), None)], &[], &gone));
    assert_eq!((again.answer, again.write.records.len()), (vec![FinishAnswer::AlreadyGone], 0), "recorded before");
    assert!(again.write.outputs.is_empty(), "and its output was kept");
}

#[test]
fn the_jobs_row_learns_how_a_concurrent_run_ended_if_that_is_news() {
    let allow = Job { overlap: Overlap::Allow, ..job() };
    let executing = prepared(&allow);
    let started = decided(start(asks(), &[held(&executing)], &rows(executing.clone()))).write;
    let (state, row) = (started.jobs[0].after.clone().unwrap(), started.concurrent[0].after.clone().unwrap());
    let at = RunRef { row: RowKey::Concurrent(row.key), run: run(1), version: row.version };
    let definition = executing.definition.clone();
    let mut beside = Rows::at(super::rows::at(11), 11_000_000);
    beside.add_concurrent(ConcurrentJob { row: row.as_ref().clone(), definition: definition.clone() });
    let need = finish(asks(), &[finished(at, None)], &[], &beside).map(|_| ());
    assert_eq!(need, Err(Need::Jobs(vec![JOB])), "it has the last end before");
    for (status, changed) in [(Status::Succeeded, false), (Status::Failed, true)] {
        let last_end = Some(LastEnd { status: Status::Succeeded, troubled_since: None });
        let state = JobState { last_end, ..JobState::clone(&state) };
        beside.add_job(JobRow { state: Arc::new(state.clone()), definition: definition.clone() });
        let ended = Finished { ending: Ending { status, ..finished(at, None).ending }, ..finished(at, None) };
        let write = decided(finish(asks(), &[ended], &[], &beside)).write;
        assert_eq!(write.jobs.len(), usize::from(changed), "{status:?}");
        for job in &write.jobs {
            let after = job.after.as_ref().unwrap();
            assert_eq!((after.version, after.last_end.unwrap().status), (state.version + 1, status));
        }
    }
}

#[test]
fn a_release_leaves_a_row_at_another_version_alone() {
    let prepared = prepared(&job());
    let at_version = held(&prepared);
    let released = decided(release(me(), &[at_version], &rows(prepared.clone())));
    assert_eq!(written(&released), Some(Phase::Idle));
    let stray = RunRef { version: at_version.version + 1, ..at_version };
    assert_eq!(written(&decided(release(me(), &[stray], &rows(prepared.clone())))), None);
}

#[test]
fn settling_raises_the_version_before_it_looks() {
    let prepared = prepared(&job());
    let settled = decided(settle(me(), &[held(&prepared)], &rows(prepared.clone())));
    let version = settled.write.jobs[0].after.as_ref().map(|state| state.version);
    assert_eq!(version, Some(prepared.state.version + 1), "a stray start matches nothing from now on");
    assert!(matches!(&settled.answer[..], [SettleAnswer::Prepared(claimed)] if Some(claimed.at.version) == version));
}

#[test]
fn settling_tells_of_a_change_that_came_after_the_start() {
    let executing = executing(&job());
    let paused = after(&executing, &Event::Pause { until: None, reason: None }, at(10));
    let cancelled = after(&executing, &Event::Cancel { run: run(1) }, at(10));
    let deleted = after(&executing, &Event::Delete, at(10));
    for (row, expected) in [(executing, false), (paused, true), (cancelled, true), (deleted, true)] {
        let settled = decided(settle(me(), &[held(&row)], &rows(row.clone())));
        assert!(matches!(settled.answer[..], [SettleAnswer::Executing { withdrawn, .. }] if withdrawn == expected));
    }
}

#[test]
fn settling_finds_nothing_of_a_run_that_the_row_does_not_carry() {
    let other = carillon_domain::id::SessionId::from_random(2);
    for row in [prepared(&job()), executing(&job())] {
        assert_eq!(decided(settle(other, &[held(&row)], &rows(row.clone()))).answer, [SettleAnswer::Gone]);
        let mut rows = rows(row.clone());
        rows.runs.insert(run(9), None);
        let stray = RunRef { run: run(9), ..held(&row) };
        assert_eq!(decided(settle(me(), &[stray], &rows)).answer, [SettleAnswer::Gone]);
    }
}

#[test]
fn a_refused_batch_is_halved_until_the_run_to_blame_is_alone() {
    let of = |number| finished(RunRef { run: run(number), ..held(&executing(&job())) }, None);
    let runs: Vec<Finished> = (0..8).map(of).collect();
    let mut batch = SplitFinish::of(&runs);
    let (mut parts, mut bare) = (0, 0);
    while let Some(part) = batch.next_part() {
        parts += 1;
        let to_blame = part.iter().any(|one| one.at.run == run(5) && !one.output.truncated);
        if !to_blame {
            bare += part.iter().filter(|one| one.output.truncated).count();
            batch.recorded(vec![FinishAnswer::AlreadyGone; part.len()]);
        } else if part.len() == 1 {
            assert_eq!(batch.refused(part), AfterRefusal::WithoutOutput(run(5)));
        } else {
            assert_eq!(batch.refused(part), AfterRefusal::Split);
        }
    }
    assert_eq!((batch.answers().len(), bare, parts), (8, 1, 8), "one run of eight loses its output");
    let mut nothing = SplitFinish::of(&[]);
    let part = nothing.next_part().expect("the whole of it");
    assert_eq!(nothing.refused(part), AfterRefusal::GiveUp);
}
