//! Runs of one job beside each other: who waits for whom, and what is told of them.

use std::sync::Arc;

use carillon_domain::firing::{CancelledBy, ConcurrentRun, Event, Firing, FiringKey, Held, JobState, Phase, Waiting};
use carillon_domain::id::SessionId;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::call::{ClaimRequest, Me, WriteBackRequest};
use carillon_domain::node::port::{FinishAnswer, Finished, KnownRun, Next, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::{Ending, Output, Status};
use carillon_domain::store::{
    Author, ConcurrentJob, Decided, JobRow, Need, Rows, SessionState, Standing, change, claim, delete, finish, release,
    settle, start, write_back,
};

use super::rows::{
    JOB, after, at, claim_request, decided, executing, held, job, me, prepared, row, rows, run, standing, window,
};

fn asks() -> Me {
    Me { session: me(), acked: 5 }
}

fn held_for(number: u64, due: i64) -> Held {
    Held { firing: Firing::regular(at(due)), run: run(number), session: me(), started_at: None, fencing_token: 1 }
}

/// A concurrent run at version 7.
fn beside(due: i64, phase: Phase) -> ConcurrentRun {
    let key = FiringKey { job: JOB, due_at: at(due), trigger: Firing::regular(at(due)).trigger };
    ConcurrentRun { key, version: 7, phase, waiting: None, cancel: None, withdrawn: false }
}

fn executes(number: u64, due: i64) -> ConcurrentRun {
    beside(due, Phase::Executing(Held { started_at: Some(at(due)), ..held_for(number, due) }))
}

fn reference(of: &ConcurrentRun) -> RunRef {
    RunRef { row: RowKey::Concurrent(of.key), run: of.phase.held().expect("a held row").run, version: of.version }
}

fn with(own: JobRow, beside: &[ConcurrentRun]) -> Rows {
    let definition = own.definition.clone();
    let mut rows = rows(own);
    for row in beside {
        rows.add_concurrent(ConcurrentJob { row: row.clone(), definition: definition.clone() });
    }
    rows
}

#[test]
fn a_concurrent_run_waits_for_those_that_execute() {
    let mine = beside(3, Phase::Prepared(held_for(5, 3)));
    let waits = beside(4, Phase::Prepared(held_for(6, 4)));
    for (name, own, other, starts) in [
        ("nobody", row(&job()), None, true),
        ("one that is prepared", row(&job()), Some(waits), true),
        ("one that executes", row(&job()), Some(executes(6, 4)), false),
        ("the job's own", executing(&job()), None, false),
        ("one that executes, and overlap is allowed", row(&allows(Overlap::Allow)), Some(executes(6, 4)), true),
    ] {
        let others: Vec<ConcurrentRun> = [mine.clone()].into_iter().chain(other).collect();
        let started = decided(start(asks(), &[reference(&mine)], &with(own, &others))).answer;
        assert_eq!(matches!(started[..], [StartAnswer::Started { .. }]), starts, "{name}: {started:?}");
    }
}

fn allows(overlap: Overlap) -> Job {
    Job { overlap, ..job() }
}

/// A start of its own defers it, as the deferral needs an answer.
#[test]
fn a_claim_does_not_start_what_must_wait() {
    let request = ClaimRequest { places: 1, ..claim_request() };
    let claimed = decided(claim(&request, &with(row(&job()), &[executes(5, 3)])));
    assert_eq!(claimed.answer[0].held.started_at, None);
    assert!(claimed.write.jobs[0].after.as_ref().is_some_and(|state| matches!(state.phase, Phase::Prepared(_))));
}

/// Its row tells of tokens and pauses.
#[test]
fn a_concurrent_run_needs_the_row_of_its_job() {
    let (waits, lives) = (beside(3, Phase::Prepared(held_for(5, 3))), executes(5, 3));
    let mut rows = with(row(&job()), std::slice::from_ref(&waits));
    rows.jobs.clear();
    assert_eq!(start(asks(), &[reference(&waits)], &rows).map(|_| ()), Err(Need::Jobs(vec![JOB])));
    let mut rows = with(row(&job()), std::slice::from_ref(&lives));
    rows.jobs.clear();
    assert_eq!(settle(me(), &[reference(&lives)], &rows).map(|_| ()), Err(Need::Jobs(vec![JOB])));
}

#[test]
fn rows_that_were_not_read_are_needed() {
    let runs = vec![RunRef { row: RowKey::Job(JOB), run: run(1), version: 1 }];
    let mut rows = rows(row(&job()));
    rows.jobs.clear();
    assert_eq!(start(asks(), &runs, &rows).map(|_| ()), Err(Need::Held(runs.clone())));
    assert_eq!(settle(me(), &runs, &rows).map(|_| ()), Err(Need::Stored(runs.clone())));
    assert_eq!(release(me(), &runs, &rows).map(|_| ()), Err(Need::Stored(runs.clone())));
    let ending = Ending::new(Status::Succeeded, at(9));
    let finished = Finished { at: runs[0], ending, output: Arc::<Output>::default(), next: None };
    assert_eq!(finish(asks(), &[finished], &[], &rows).map(|_| ()), Err(Need::Held(runs.clone())));
}

/// They live from a time when the job allowed overlap.
#[test]
fn a_firing_that_replaces_asks_the_runs_beside_it_to_end() {
    for (overlap, cancel) in [(Overlap::Replace, Some(CancelledBy::NewerFiring)), (Overlap::Delay, None)] {
        let own = prepared(&allows(overlap));
        let rows = with(own.clone(), &[executes(5, 3)]);
        let deferred = decided(start(asks(), &[held(&own)], &rows));
        assert_eq!(deferred.answer, [StartAnswer::Gone], "{overlap:?}");
        let asked = deferred.write.concurrent.first().and_then(|write| write.after.as_ref()?.cancel);
        assert_eq!((asked, deferred.write.concurrent.len()), (cancel, usize::from(cancel.is_some())), "{overlap:?}");
    }
}

#[test]
fn a_concurrent_run_that_is_deferred_asks_nobody_to_end() {
    let mine = beside(3, Phase::Prepared(held_for(5, 3)));
    let rows = with(row(&allows(Overlap::Replace)), &[mine.clone(), executes(6, 4)]);
    let deferred = decided(start(asks(), &[reference(&mine)], &rows));
    let asked = deferred.write.concurrent.iter().filter_map(|write| write.after.as_ref()?.cancel);
    assert_eq!(asked.count(), 0);
}

#[test]
fn settling_a_concurrent_run_raises_its_version_and_tells_whether_it_is_withdrawn() {
    let paused = || after(&row(&job()), &Event::Pause { until: None, reason: None }, at(5));
    let lives = executes(5, 3);
    let cancelled = ConcurrentRun { cancel: Some(CancelledBy::Person), ..lives.clone() };
    let gone = ConcurrentRun { withdrawn: true, ..lives.clone() };
    for (name, own, beside, expected) in [
        ("it lives", row(&job()), &lives, false),
        ("it is cancelled", row(&job()), &cancelled, true),
        ("it is withdrawn", row(&job()), &gone, true),
        ("its job is paused", paused(), &lives, true),
    ] {
        let settled = decided(settle(me(), &[reference(beside)], &with(own, std::slice::from_ref(beside))));
        let [SettleAnswer::Executing { at, withdrawn, .. }] = settled.answer[..] else { panic!("{name}") };
        assert_eq!((at.version, withdrawn), (8, expected), "{name}");
        assert_eq!(settled.write.concurrent[0].after.as_ref().map(|row| row.version), Some(8), "{name}");
    }
    let stray = RunRef { version: 6, ..reference(&lives) };
    let settled = decided(settle(me(), &[stray], &with(row(&job()), std::slice::from_ref(&lives))));
    assert!(settled.write.concurrent.is_empty(), "another version is left alone");
}

/// A finish of unknown outcome is asked again. The row shows what became of the claim in its commit.
#[test]
fn a_finish_that_is_repeated_finds_the_firing_that_it_claimed() {
    let replaces = allows(Overlap::Replace);
    let ended = RunRef { row: RowKey::Job(JOB), run: run(9), version: 3 };
    let ask = |next: u64, session: SessionId, row: &JobRow| {
        let next = Some(Next { run: run(next), until: at(30), has_place: false });
        let ending = Ending::new(Status::Succeeded, at(9));
        let finished = Finished { at: ended, ending, output: Arc::<Output>::default(), next };
        let mut rows = rows(row.clone());
        rows.runs.insert(run(9), None);
        decided(finish(Me { session, acked: 5 }, &[finished], &["shell".to_owned()], &rows))
    };
    let waits = ask(1, me(), &prepared(&replaces));
    let [FinishAnswer::RecordedAndClaimed(claimed)] = &waits.answer[..] else { panic!("{:?}", waits.answer) };
    assert_eq!((claimed.at, waits.write.jobs.len()), (held(&prepared(&replaces)), 0), "a look is enough");
    let lives = executing(&replaces);
    let started = ask(1, me(), &lives);
    let [FinishAnswer::RecordedAndClaimed(claimed)] = &started.answer[..] else { panic!("{:?}", started.answer) };
    assert_eq!((claimed.at.version, claimed.held.started_at), (lives.state.version + 1, Some(at(10))), "settled");
    assert_eq!(claimed.replace_at, Some(at(20)), "a newer firing replaces it");
    let withdrawn = after(&lives, &Event::Pause { until: None, reason: None }, at(10));
    for (name, next, session, row) in [
        ("it is another run", 2, me(), &lives),
        ("it is another session's", 1, SessionId::from_random(2), &lives),
        ("it was withdrawn", 1, me(), &withdrawn),
    ] {
        assert_eq!(ask(next, session, row).answer, [FinishAnswer::AlreadyGone], "{name}");
    }
}

#[test]
fn a_pause_and_a_deletion_concern_the_runs_beside() {
    let pause = Event::Pause { until: None, reason: None };
    let (rows, ann) = (with(row(&job()), &[executes(5, 3)]), Author::new("ann", "10.0.0.9"));
    let paused = decided(change(JOB, &pause, &ann, &rows)).write;
    let deleted = decided(delete(JOB, None, &ann, &rows)).write;
    for write in [paused, deleted] {
        assert!(write.concurrent[0].after.as_ref().is_some_and(|row| row.withdrawn), "{write:?}");
    }
}

/// Commits up to second 8 are lost, and a node knows that this firing runs.
fn written_back(firing: Firing, own: JobRow, beside: &[ConcurrentRun]) -> Decided<()> {
    let held = Held { firing, started_at: Some(at(3)), ..held_for(9, 3) };
    let known = KnownRun { at: RunRef { row: RowKey::Job(JOB), run: run(9), version: 1 }, held, ended: None };
    let request = WriteBackRequest { me: asks(), until: at(8), runs: vec![known], last: false };
    let mut rows = with(own, beside);
    rows.standing = Some(Standing { open: Some(window()), ..standing(SessionState::Live) });
    rows.add_history(vec![JOB], at(0), Vec::new());
    assert_eq!(write_back(&request, &rows).map(|_| ()), Err(Need::Recorded(vec![run(9)])));
    rows.recorded.insert(run(9), false);
    let Decided { write, answer } = decided(write_back(&request, &rows));
    assert!(answer.is_some());
    Decided { write, answer: () }
}

#[test]
fn a_row_beside_that_lost_the_start_of_its_run_has_it_again() {
    let firing = Firing::regular(at(3));
    let waiting = Some(Waiting { run: None, firing });
    let went_back = ConcurrentRun { waiting, cancel: Some(CancelledBy::Person), ..beside(3, Phase::Idle) };
    let write = written_back(firing, row(&job()), &[went_back]).write;
    let after = write.concurrent[0].after.as_ref().expect("a row");
    assert!(matches!(after.phase, Phase::Executing(held) if held.run == run(9)), "{after:?}");
    assert_eq!((after.waiting, after.cancel), (None, None));
    let highest_lost = (at(8).as_ms().cast_unsigned() + 1) * 1_000;
    let version = write.jobs[0].after.as_ref().map(|state| state.version);
    assert!(version > Some(highest_lost), "its next start has a higher token: {version:?}");
}

/// A run of a backlog keeps the next one from starting, even where runs may overlap.
#[test]
fn a_run_of_a_backlog_is_written_back_into_the_jobs_row() {
    let missed = Firing::misfired(at(10));
    for (until, in_own) in [(Some(at(30)), true), (Some(at(10)), true), (Some(at(9)), false), (None, false)] {
        let armed = row(&allows(Overlap::Allow));
        let state = JobState { armed: Some(missed), catch_up_until: until, ..JobState::clone(&armed.state) };
        let write = written_back(missed, JobRow { state: Arc::new(state), ..armed }, &[]).write;
        let own = write.jobs[0].after.as_ref().and_then(|state| state.phase.held().map(|held| held.run));
        assert_eq!((own, write.concurrent.len()), (in_own.then(|| run(9)), usize::from(!in_own)), "{until:?}");
    }
}
