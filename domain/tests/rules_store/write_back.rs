//! Runs are written back after lost commits, and a loss is accepted once all nodes have.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{ConcurrentRun, Event, Firing, FiringKey, Held, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::{Job, OnLost, Overlap, Retry};
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{Me, WriteBackRequest};
use carillon_domain::node::port::{KnownRun, RowKey, RunRef, WriteBackAnswer};
use carillon_domain::run::{Ending, RunRecord, Status, Trigger};
use carillon_domain::store::{
    Author, ConcurrentJob, Decided, JobRow, Need, Refusal, Rows, SessionState, SessionWrite, Standing, WritingSession,
    accept_losses, claim, still_unknown, write_back,
};
use carillon_domain::time::Timestamp;

use super::rows::{JOB, after, at, claim_request, decided, executing, job, me, prepared, row, rows, run, standing};

/// The run in the job's own row, and those beside it.
pub type HeldRuns = (Option<RunId>, Vec<RunId>);

/// The decision on a request.
pub type Answer = Decided<Option<Vec<WriteBackAnswer>>>;

/// Commits up to second 45 are lost.
fn lost() -> LossWindow {
    LossWindow { from_at: at(5), until_at: at(45), noticed_at: at(45) }
}

pub fn known(number: u64, due: i64) -> KnownRun {
    let firing = Firing::regular(at(due));
    let held = Held { firing, run: run(number), session: me(), started_at: Some(at(due)), fencing_token: 100 + number };
    KnownRun { at: RunRef { row: RowKey::Job(JOB), run: held.run, version: held.fencing_token }, held, ended: None }
}

pub fn ended(number: u64, due: i64, status: Status) -> KnownRun {
    KnownRun { ended: Some(Ending::new(status, at(due + 1))), ..known(number, due) }
}

pub fn request(runs: Vec<KnownRun>, last: bool) -> WriteBackRequest {
    WriteBackRequest { me: Me { session: me(), acked: 5 }, until: at(45), runs, last }
}

/// The rows of a transaction in second 46, in which nothing is recorded of the job.
pub fn rows_of(row: JobRow) -> Rows {
    let mut rows = rows(row);
    rows.now = at(46);
    rows.standing = Some(Standing { open: Some(lost()), ..standing(SessionState::Live) });
    rows.add_history(vec![JOB], at(0), Vec::new());
    rows.recorded.extend((1..10).map(|number| (run(number), false)));
    rows
}

pub fn written(runs: Vec<KnownRun>, row: JobRow) -> Answer {
    decided(write_back(&request(runs, true), &rows_of(row)))
}

fn key(due: i64) -> FiringKey {
    FiringKey { job: JOB, due_at: at(due), trigger: Trigger::Schedule }
}

/// The rows after a commit: the run in the job's own row, and those beside it.
pub fn held_after(written: &Answer) -> HeldRuns {
    let own = written.write.jobs.first().and_then(|write| write.after.as_ref());
    let executing = |phase: &Phase| match phase {
        Phase::Executing(held) => Some(held.run),
        Phase::Idle | Phase::Prepared(_) => None,
    };
    let beside = written.write.concurrent.iter().filter_map(|write| executing(&write.after.as_ref()?.phase));
    (own.and_then(|state| executing(&state.phase)), beside.collect())
}

pub fn statuses(written: &Answer) -> Vec<(Timestamp, u32, Status)> {
    written.write.records.iter().map(|record| (record.due_at, record.attempt, record.status)).collect()
}

fn allows(overlap: Overlap) -> Job {
    Job { overlap, ..job() }
}

/// Each line: where the row went back to, what its node runs, and where that stands afterwards.
#[test]
fn a_living_run_has_a_row_again_whatever_its_row_went_back_to() {
    let (own, beside) = (Some(run(9)), vec![run(9)]);
    let table: Vec<(&str, JobRow, KnownRun, HeldRuns)> = vec![
        ("idle, and armed for it", row(&job()), known(9, 10), (own, vec![])),
        ("prepared under another id", prepared(&job()), known(9, 10), (own, vec![])),
        ("prepared under this id", prepared(&job()), known(1, 10), (Some(run(1)), vec![])),
        ("idle, and armed for an older firing", row(&job()), known(9, 30), (None, beside.clone())),
        ("prepared for an older firing", prepared(&job()), known(9, 30), (None, beside.clone())),
        ("executing an older run", executing(&job()), known(9, 30), (Some(run(1)), beside.clone())),
        ("armed for it, and it may overlap", row(&allows(Overlap::Allow)), known(9, 10), (None, beside)),
    ];
    for (name, row, run, expected) in table {
        let done = written(vec![run.clone()], row.clone());
        assert_eq!(held_after(&done), expected, "{name}");
        let Some(answers) = &done.answer else { panic!("{name}") };
        let [WriteBackAnswer::Executing { at, .. }] = answers[..] else { panic!("{name}: {answers:?}") };
        let is_beside = matches!(at.row, RowKey::Concurrent(_));
        assert_eq!((at.run, is_beside), (run.held.run, !expected.1.is_empty()), "{name}");
        let state = done.write.jobs[0].after.as_ref().expect("the row");
        let highest_lost = lost().until_at.as_ms() as u64 * 1_000;
        assert!(state.version > highest_lost && at.version > highest_lost, "{name}: above every lost token");
        let armed = state.armed.map(|armed| armed.due_at);
        let is_passed = state.cursor >= run.held.firing.due_at;
        assert!(is_passed || armed < Some(run.held.firing.due_at), "{name}: no due time before it is left out");
        assert!(done.write.records.is_empty(), "{name}");
    }
}

#[test]
fn a_row_that_still_says_so_is_left_alone() {
    let done = written(vec![known(1, 10)], executing(&job()));
    assert!(done.write.jobs.is_empty() && done.write.concurrent.is_empty());
    assert!(
        matches!(done.answer.as_deref(), Some([WriteBackAnswer::Executing { at, .. }]) if at.row == RowKey::Job(JOB))
    );
}

#[test]
fn the_armed_firing_of_a_job_that_allows_overlap_moves_on() {
    let runs = vec![known(1, 10), known(2, 20), known(3, 30)];
    let done = written(runs, row(&allows(Overlap::Allow)));
    assert_eq!(held_after(&done).1, [run(1), run(2), run(3)]);
    let armed = done.write.jobs[0].after.as_ref().and_then(|state| state.armed);
    assert_eq!(armed.map(|firing| firing.due_at), Some(at(40)));
}

#[test]
fn a_run_of_a_job_that_is_gone_has_no_row() {
    let mut rows = Rows::at(at(46), 46_000_000);
    rows.standing = Some(Standing { open: Some(lost()), ..standing(SessionState::Live) });
    rows.jobs.insert(JOB, None);
    rows.with_concurrent.insert(JOB);
    rows.recorded.insert(run(9), false);
    let done = decided(write_back(&request(vec![known(9, 10)], true), &rows));
    assert_eq!(done.answer, Some(vec![WriteBackAnswer::Nowhere]));
    assert_eq!(done.write.sessions.len(), 1, "it has written what it can");
}

/// A row of the same firing beside the job's: only a run of another session may live there too.
#[test]
fn a_row_beside_is_taken_unless_another_session_runs_the_same_firing() {
    let (mine, other) = (me(), SessionId::from_random(2));
    for (session, phase, taken) in [(mine, "executing", true), (other, "executing", false), (other, "prepared", true)] {
        let held = Held { run: run(77), session, ..known(9, 30).held };
        let phase = if phase == "executing" { Phase::Executing(held) } else { Phase::Prepared(held) };
        let mut rows = rows_of(row(&allows(Overlap::Allow)));
        let (state, definition) = (row(&job()).state, row(&allows(Overlap::Allow)).definition);
        let beside = ConcurrentRun {
            key: key(30),
            version: state.version,
            phase,
            waiting: None,
            cancel: None,
            withdrawn: false,
        };
        rows.add_concurrent(ConcurrentJob { row: beside, definition });
        let done = decided(write_back(&request(vec![known(9, 30)], true), &rows));
        let expected = if taken { vec![run(9)] } else { vec![] };
        assert_eq!(held_after(&done).1, expected, "{phase:?}");
        assert_eq!(done.answer == Some(vec![WriteBackAnswer::Nowhere]), !taken, "{phase:?}");
    }
}

#[test]
fn an_end_is_recorded_once_and_the_row_goes_on() {
    let done = written(vec![ended(1, 10, Status::Succeeded), known(2, 20)], row(&job()));
    assert_eq!(statuses(&done), [(at(10), 1, Status::Succeeded)]);
    assert_eq!(held_after(&done), (Some(run(2)), vec![]), "the next firing was armed by that end");
    let answers = done.answer.expect("answers");
    assert!(matches!(answers[..], [WriteBackAnswer::Recorded, WriteBackAnswer::Executing { .. }]));

    // Its record is not lost, or it has ended since a request was sent that comes late.
    for run_of in [ended(1, 10, Status::Succeeded), known(1, 10)] {
        let mut rows = rows_of(row(&job()));
        rows.recorded.insert(run(1), true);
        let again = decided(write_back(&request(vec![run_of], true), &rows));
        assert!(again.write.records.is_empty() && again.write.jobs.is_empty());
        assert_eq!(again.answer, Some(vec![WriteBackAnswer::Recorded]));
    }
}

/// A newer run stands beside, then the end of an older one is written: the due times between them are not left out.
#[test]
fn an_end_that_is_written_late_leaves_no_due_time_out() {
    let first = written(vec![known(3, 30)], row(&job()));
    let row = JobRow { state: first.write.jobs[0].after.clone().expect("the row"), definition: row(&job()).definition };
    let done = written(vec![ended(1, 10, Status::Succeeded)], row);
    let armed = done.write.jobs[0].after.as_ref().and_then(|state| state.armed);
    assert_eq!(armed.map(|firing| firing.due_at), Some(at(20)), "nobody knows of it yet");
}

/// The row waits with a manual run and with the firing of second 10. The manual run began late, so it says nothing about due times that passed
/// before; some of them have run.
#[test]
fn a_manual_run_that_is_written_back_decides_no_due_time() {
    let triggered = after(&row(&job()), &Event::Trigger { run: run(9) }, at(5));
    let known = known(9, 5);
    let firing = Firing::manual(at(5));
    let lives = KnownRun { held: Held { firing, started_at: Some(at(31)), ..known.held }, ..known };
    let over = KnownRun { ended: Some(Ending::new(Status::Succeeded, at(32))), ..lives.clone() };
    for (name, run_of, records) in [("it lives", lives, vec![]), ("it is over", over, vec![Status::Succeeded])] {
        let done = written(vec![run_of], triggered.clone());
        let told: Vec<Status> = done.write.records.iter().map(|record| record.status).collect();
        assert_eq!(told, records, "{name}");
        let state = done.write.jobs[0].after.as_ref().expect("the row");
        assert_eq!(state.armed.map(|armed| armed.due_at), Some(at(10)), "{name}");
        assert_eq!((state.phase, state.manual), (Phase::Idle, None), "{name}");
    }
}

#[test]
fn an_end_in_a_row_that_still_executes_is_the_end_of_that_row() {
    let done = written(vec![ended(1, 10, Status::Failed)], executing(&job()));
    assert_eq!((statuses(&done), held_after(&done)), (vec![(at(10), 1, Status::Failed)], (None, vec![])));
}

#[test]
fn the_retry_of_a_failed_end_waits() {
    let retry = Retry { max_attempts: 2, ..Retry::default() };
    let done = written(vec![ended(1, 10, Status::Failed)], row(&Job { retry, ..job() }));
    let armed = done.write.jobs[0].after.as_ref().and_then(|state| state.armed);
    assert_eq!(armed.map(|firing| (firing.due_at, firing.attempt)), Some((at(10), 2)));
}

#[test]
fn only_a_session_that_lives_writes_and_only_while_a_loss_is_open() {
    let open = Standing { open: Some(lost()), ..standing(SessionState::Live) };
    for (name, standing, writes) in [
        ("live", open.clone(), true),
        ("draining", Standing { open: Some(lost()), ..standing(SessionState::Draining) }, true),
        ("ended", Standing { open: Some(lost()), ..standing(SessionState::Ended) }, false),
        ("nothing is open", standing(SessionState::Live), false),
    ] {
        let mut rows = rows_of(row(&job()));
        rows.standing = Some(standing);
        let done = decided(write_back(&request(vec![known(9, 10)], true), &rows));
        assert_eq!((done.answer.is_some(), !done.write.jobs.is_empty()), (writes, writes), "{name}");
        let said = [SessionWrite::WroteBack { session: me(), until: at(45) }];
        assert_eq!(done.write.sessions, if writes { said.to_vec() } else { vec![] }, "{name}");
    }
    let mut rows = rows_of(row(&job()));
    rows.standing = Some(open);
    let behind = WriteBackRequest { me: Me { session: me(), acked: 6 }, ..request(vec![known(9, 10)], true) };
    let done = decided(write_back(&behind, &rows));
    assert_eq!((done.answer, done.write.loss.is_some(), done.write.jobs.len()), (None, true, 0), "more was lost");
    let more = decided(write_back(&request(vec![known(9, 10)], false), &rows));
    assert!(more.write.sessions.is_empty(), "more follows");
}

/// The row is armed for second 10. Runs of 20 and 30 are known: one has a record, one executes beside.
#[test]
fn a_claim_after_it_records_as_lost_only_what_nobody_knows() {
    for (on_lost, expected) in
        [(OnLost::Skip, vec![(at(10), at(10), 1), (at(40), at(40), 1)]), (OnLost::Rerun, vec![(at(10), at(10), 1)])]
    {
        let job = Job { on_lost, ..job() };
        let beside = written(vec![known(3, 30)], row(&job));
        let state = beside.write.jobs[0].after.clone().expect("the row");
        let definition = row(&job).definition;
        let mut rows = rows_of(JobRow { state, definition: definition.clone() });
        let beside = Arc::unwrap_or_clone(beside.write.concurrent[0].after.clone().expect("a row beside"));
        // A run of another job tells nothing of this one.
        let other = FiringKey { job: JobId(8), ..key(40) };
        let of_other = ConcurrentRun { key: other, ..beside.clone() };
        rows.add_concurrent(ConcurrentJob { row: of_other, definition: definition.clone() });
        rows.add_concurrent(ConcurrentJob { row: beside, definition });
        let mut record = RunRecord::commits_lost(JOB, Some(run(2)), (at(20), Trigger::Schedule, 1), at(21));
        record.status = Status::Succeeded;
        rows.add_history(vec![JOB], at(0), vec![record]);
        rows.standing = Some(Standing { losses_until: Some(at(45)), ..standing(SessionState::Live) });
        let request = carillon_domain::node::call::ClaimRequest { until: at(60), ..claim_request() };
        let claimed = decided(claim(&request, &rows));
        let lost: Vec<_> = claimed.write.records.iter().filter(|record| record.status == Status::Lost).collect();
        let told: Vec<_> = lost.iter().map(|record| (record.first_due_at, record.due_at, record.count)).collect();
        assert_eq!(told, expected, "{on_lost:?}");
        let due = claimed.answer.first().map(|one| one.held.firing.due_at);
        let next = if on_lost == OnLost::Skip { at(50) } else { at(40) };
        assert_eq!(due, Some(next), "{on_lost:?}: neither 20 nor 30 again");
    }
}

#[test]
fn a_claim_asks_for_history_only_of_what_was_due_in_lost_commits() {
    let mut rows = rows_of(row(&job()));
    rows.history.clear();
    for (losses_until, asks) in [(None, false), (Some(at(9)), false), (Some(at(10)), true)] {
        rows.standing = Some(Standing { losses_until, ..standing(SessionState::Live) });
        let asked = claim(&claim_request(), &rows).err();
        assert_eq!(asked, asks.then(|| Need::History(vec![JOB], at(10))), "{losses_until:?}");
    }
}

/// The end of a manual run claims no firing that may be known: a claim of its own looks.
#[test]
fn a_finish_claims_no_firing_that_was_due_in_lost_commits() {
    use carillon_domain::node::port::{FinishAnswer, Finished, Next};
    let triggered = after(&row(&job()), &Event::Trigger { run: run(1) }, at(1));
    let claim = Event::Claim { session: me(), run: run(1), until: at(5), losses_until: None };
    let manual = after(&after(&triggered, &claim, at(1)), &Event::Start { session: me(), run: run(1) }, at(2));
    for (losses_until, claims) in [(None, true), (Some(at(10)), false)] {
        let mut rows = rows(manual.clone());
        rows.standing = Some(Standing { losses_until, ..standing(SessionState::Live) });
        let next = Some(Next { run: run(2), until: at(30), has_place: false });
        let ending = Ending::new(Status::Succeeded, at(3));
        let finished = Finished { at: super::rows::held(&manual), ending, output: Arc::default(), next };
        let me = Me { session: me(), acked: 5 };
        let done = decided(carillon_domain::store::finish(me, &[finished], &["shell".to_owned()], &rows));
        assert_eq!(matches!(done.answer[..], [FinishAnswer::RecordedAndClaimed(_)]), claims, "{losses_until:?}");
    }
}

fn session(node: &str, heartbeat: i64, wrote_back: Option<i64>) -> WritingSession {
    WritingSession {
        node: node.to_owned(),
        state: SessionState::Live,
        heartbeat_at: at(heartbeat),
        wrote_back: wrote_back.map(at),
    }
}

/// With a patience of 20 s: the nodes that are waited for, and until when.
#[test]
fn a_loss_is_accepted_once_all_that_live_have_written_back() {
    let patience = Duration::from_secs(20);
    let ended = WritingSession { state: SessionState::Ended, ..session("ended", 70, Some(0)) };
    type Case<'a> = (&'a str, WritingSession, i64, Option<(Vec<&'a str>, i64)>);
    let table: Vec<Case<'_>> = vec![
        ("it has", session("a", 70, Some(45)), 70, None),
        ("it has not", session("a", 70, Some(44)), 70, Some((vec!["a"], 90))),
        ("it has for an older loss", session("a", 70, Some(0)), 89, Some((vec!["a"], 90))),
        ("it is silent for long enough", session("a", 70, Some(0)), 90, None),
        ("its heartbeat may have come back", session("a", 1, Some(0)), 64, Some((vec!["a"], 65))),
        ("it was silent since", session("a", 1, Some(0)), 65, None),
        ("its binary cannot", session("a", 70, None), 70, None),
        ("it was ended", ended, 70, None),
        ("forgotten ones may live", session("a", 50, Some(45)), 64, Some((vec![], 65))),
        ("forgotten ones are dead", session("a", 50, Some(45)), 65, None),
    ];
    for (name, one, now, expected) in table {
        let found = still_unknown(&lost(), &[one], patience, at(now));
        let found = found.as_ref().map(|still| (still.nodes.iter().map(String::as_str).collect(), still.until));
        assert_eq!(found, expected.map(|(nodes, until)| (nodes, at(until))), "{name}");
    }
    let both = [session("dead", 50, Some(0)), session("lives", 60, Some(0))];
    let found = still_unknown(&lost(), &both, patience, at(70)).map(|still| (still.nodes, still.until));
    assert_eq!(found, Some((vec!["lives".to_owned()], at(80))), "nobody waits for the dead one");
    assert_eq!(still_unknown(&lost(), &[session("a", 70, Some(0))], Duration::ZERO, at(70)), None, "one process");
}

#[test]
fn a_refusal_names_the_nodes_and_a_time() {
    let loss =
        |accepted_at| carillon_domain::store::RecordedLoss { window: lost(), session: me(), node: None, accepted_at };
    let author = Author { name: "ann".into(), origin: "test".into() };
    let accept = |sessions: &[WritingSession], now| {
        accept_losses(vec![loss(None)], sessions, Duration::from_secs(20), &author, at(now))
    };
    let both = [session("b", 50, Some(0)), session("a", 50, Some(0)), session("c", 50, Some(45))];
    let Err(Refusal::StillUnknown(still)) = accept(&both, 50) else { panic!("refused") };
    let said = still.to_string();
    assert!(said.contains("run: a, b; try") && said.contains(&at(70).to_string()), "{said}");
    let Err(refusal) = accept(&[], 50) else { panic!("refused") };
    assert!(refusal.to_string().contains("forgotten"), "{refusal}");
    assert_eq!(accept(&[session("c", 66, Some(45))], 66).map(|done| done.answer.len()), Ok(1));
    let accepted = accept_losses(vec![loss(Some(at(50)))], &both, Duration::from_secs(20), &author, at(51));
    assert_eq!(accepted.map(|done| done.answer.len()), Ok(0), "nothing is open");
}
