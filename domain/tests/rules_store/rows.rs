//! Rows for the tests: one job, claimed and started by applying the rules themselves.

use std::sync::Arc;

use carillon_domain::firing::{Event, JobState, Phase, apply};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lost_commits::LossWindow;
use carillon_domain::node::call::{ClaimRequest, Me};
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::store::{
    Decided, Decision, Definition, JobRow, KnownSession, Rows, SessionBeat, SessionState, Standing,
};
use carillon_domain::time::Timestamp;

pub const JOB: JobId = JobId(7);

pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

pub fn me() -> SessionId {
    SessionId::from_random(1)
}

pub fn run(number: u64) -> RunId {
    RunId::drawn(me(), number)
}

/// A job each ten seconds.
pub fn job() -> Job {
    Job::new(("default", "report"), "@every 10s", "{}")
}

pub fn row(job: &Job) -> JobRow {
    let timeline = job.timeline(at(0)).expect("a schedule");
    let state = JobState::new(JOB, &timeline, 100, at(0)).expect("it fires");
    let (generation, anchor_at, created_at, updated_at) = (state.generation, at(0), at(0), at(0));
    let definition = Definition { job: Arc::new(job.clone()), timeline, generation, anchor_at, created_at, updated_at };
    JobRow { state: Arc::new(state), definition: Arc::new(definition) }
}

/// The row after an event.
pub fn after(row: &JobRow, event: &Event, now: Timestamp) -> JobRow {
    let JobRow { state, definition } = row;
    let done = apply(&definition.job, &definition.timeline, state, event, now).expect("a legal event");
    JobRow { state: Arc::new(done.next.expect("a row")), definition: definition.clone() }
}

/// The row once run 1 is prepared for second 10.
pub fn prepared(job: &Job) -> JobRow {
    let claim = Event::Claim { session: me(), run: run(1), until: at(30), losses_until: None };
    after(&row(job), &claim, at(1))
}

/// The row once run 1 executes.
pub fn executing(job: &Job) -> JobRow {
    after(&prepared(job), &Event::Start { session: me(), run: run(1) }, at(10))
}

/// The reference that the holder of a row has.
pub fn held(row: &JobRow) -> RunRef {
    let held = row.state.phase.held().expect("a held row");
    RunRef { row: RowKey::Job(JOB), run: held.run, version: row.state.version }
}

pub fn session(seq: u64, state: SessionState) -> KnownSession {
    KnownSession { beat: SessionBeat { id: me(), seq, state }, node: "a".to_owned(), heartbeat_at: at(9) }
}

pub fn standing(state: SessionState) -> Standing {
    Standing { session: Some(session(5, state)), open: None, losses_until: None }
}

pub fn window() -> LossWindow {
    LossWindow { from_at: at(1), until_at: at(8), noticed_at: at(8) }
}

/// The rows of a transaction at second 10 in which `row` was read, and whose session is live.
pub fn rows(row: JobRow) -> Rows {
    let mut rows = Rows::at(at(10), 10_000_000);
    rows.standing = Some(standing(SessionState::Live));
    rows.with_concurrent.insert(JOB);
    rows.losses = Some((at(0), None));
    rows.due = Some(vec![rows.add_job(row)]);
    rows
}

pub fn claim_request() -> ClaimRequest {
    ClaimRequest {
        me: Me { session: me(), acked: 5 },
        partitions: vec![0],
        until: at(30),
        runs: vec![run(1), run(2)],
        places: 0,
        executors: vec!["shell".to_owned()],
    }
}

/// A decision that needs no more rows.
pub fn decided<A>(decision: Decision<A>) -> Decided<A> {
    decision.unwrap_or_else(|need| panic!("it needs {need:?}"))
}

/// The phase that the one row is to be written with.
pub fn written<A>(decided: &Decided<A>) -> Option<Phase> {
    match &decided.write.jobs[..] {
        [] => None,
        [one] => one.after.as_ref().map(|state| state.phase),
        more => panic!("{} rows", more.len()),
    }
}
