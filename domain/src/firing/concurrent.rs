//! Concurrent runs: the runs of jobs with `overlap = allow`, and manual runs of such jobs. Each has a row of its own in
//! the table `concurrent_run`, so that the job's row is free for the next due time.
//!
//! These rows follow the same events, guards and sweeps as the job's row. They have no schedule.

use super::start::DEFER_FOR;
use super::{
    CancelledBy, Event, Firing, Held, JobState, Owner, Phase, Rejected, TransitionKind, Waiting, control, finish,
    held_by, lost_commits,
};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, RunId, SessionId};
use crate::job::Job;
use crate::lost_commits::may_have_started;
use crate::run::{Ending, Reason, RunRecord, Trigger};
use crate::time::Timestamp;

/// The reason in history when a start of unknown outcome turns out not to have happened before a pause or a deletion.
const WITHDRAWN: &str = "the job was paused or deleted before the start";

/// The identity of a firing. All its attempts share one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiringKey {
    /// The job.
    pub job: JobId,
    /// The due time.
    pub due_at: Timestamp,
    /// Why it starts.
    pub trigger: Trigger,
}

/// A row of the table `concurrent_run`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConcurrentRun {
    /// Which firing it is.
    pub key: FiringKey,
    /// As [`JobState::version`].
    pub version: u64,
    /// Whether a session holds the row.
    pub phase: Phase,
    /// The waiting firing while no session holds it.
    pub waiting: Option<Waiting>,
    /// Set when the executing run must end early.
    pub cancel: Option<CancelledBy>,
    /// Set when the job was deleted or paused during the run. The firing gets no retry, and no start if this one never
    /// happened.
    pub withdrawn: bool,
}

/// The row of a concurrent run to write, and the history of the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrentTransition {
    /// The row; `None` to delete it.
    pub next: Option<ConcurrentRun>,
    /// Which transition this is.
    pub kind: TransitionKind,
    /// New rows of history.
    pub records: Vec<RunRecord>,
}

impl ConcurrentRun {
    pub(super) fn started(state: &JobState, held: Held) -> Self {
        Self::new(state, held.firing, Phase::Executing(held), None)
    }

    pub(super) fn waiting(state: &JobState, run: RunId, firing: Firing) -> Self {
        Self::new(state, firing, Phase::Idle, Some(Waiting { run: Some(run), firing }))
    }

    fn new(state: &JobState, firing: Firing, phase: Phase, waiting: Option<Waiting>) -> Self {
        let key = FiringKey { job: state.id, due_at: firing.due_at, trigger: firing.trigger };
        Self { key, version: state.version + 1, phase, waiting, cancel: None, withdrawn: false }
    }

    /// As [`JobState::claim_at`].
    pub fn claim_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Idle => Some(self.waiting.map_or(Timestamp::MAX, |waiting| waiting.firing.start_at)),
            Phase::Prepared(_) | Phase::Executing(_) => None,
        }
    }

    fn release(&self, held: &Held) -> Self {
        Self { phase: Phase::Idle, waiting: Some(held.waiting()), ..self.clone() }
    }
}

/// Applies `event` to a row of the table `concurrent_run`, as [`apply`](super::apply) does to a job's row.
///
/// # Errors
/// [`Rejected`] when the event does not apply. Then nothing must be written.
pub fn apply_concurrent(
    job: &Job,
    row: &ConcurrentRun,
    event: &Event,
    now: Timestamp,
) -> Result<ConcurrentTransition, Rejected> {
    let mut transition = match event {
        Event::Claim { session, run, until, losses_until } => match row.waiting {
            Some(waiting)
                if may_have_started(job, waiting.firing.due_at, *losses_until) && enabled(Guard::LostCommitsClaim) =>
            {
                give_up(row, &waiting, now)
            }
            _ => claim(row, (*session, *run), *until),
        },
        Event::Defer { session, run } => defer(row, (*session, *run), now),
        Event::Supersede => supersede(row, now),
        Event::Finish { session, run, ending } => {
            let Phase::Executing(_) = row.phase else { return Err(Rejected::NotHeld(*run)) };
            let held = *held_by(&row.phase, (*session, *run))?;
            Ok(ended(job, row, &held, ending, now))
        }
        Event::Reset { session, run } => reset(row, (*session, *run), now),
        Event::Sweep { session } => sweep(job, row, *session, now),
        Event::WriteBack { held, losses_until: _ } => write_back(row, *held),
        Event::Pause { .. } => pause(row, now),
        Event::Delete => withdraw(row, TransitionKind::Deleted, Reason::Deleted, now),
        Event::Cancel { run } => cancel(row, *run, now),
        // A start writes two rows, so `start_concurrent` does it.
        Event::Start { .. }
        | Event::Resume
        | Event::Update { .. }
        | Event::Trigger { .. }
        | Event::Reconcile { .. } => Err(Rejected::NothingDue),
    }?;
    if let Some(next) = &mut transition.next {
        next.version = row.version + 1;
    }
    Ok(transition)
}

/// Starts a concurrent run. The job's row is written too, because its version is the source of all fencing tokens of the
/// job. So tokens grow from start to start, whichever row a run has.
///
/// # Errors
/// [`Rejected`] when the start does not apply. Then nothing must be written.
pub fn start_concurrent(
    state: &JobState,
    row: &ConcurrentRun,
    owner: (SessionId, RunId),
    now: Timestamp,
) -> Result<(JobState, ConcurrentTransition), Rejected> {
    control::refuse_deleted(state)?;
    let held = due(row, owner, now)?;
    let next = JobState { version: state.version + 1, ..state.clone() };
    let fencing_token = if enabled(Guard::TokenOfJob) { next.version } else { row.version + 1 };
    let started = Held { started_at: Some(now), fencing_token, ..held };
    let row = ConcurrentRun { phase: Phase::Executing(started), version: row.version + 1, ..row.clone() };
    Ok((next, ConcurrentTransition::to(row, TransitionKind::Started)))
}

/// The prepared firing of that run, if its time has come.
fn due(row: &ConcurrentRun, owner: Owner, now: Timestamp) -> Result<Held, Rejected> {
    let Phase::Prepared(_) = row.phase else { return Err(Rejected::NotHeld(owner.1)) };
    let held = *held_by(&row.phase, owner)?;
    if now < held.firing.start_at { Err(Rejected::Early(held.firing.start_at)) } else { Ok(held) }
}

impl ConcurrentTransition {
    fn to(next: ConcurrentRun, kind: TransitionKind) -> Self {
        Self { next: Some(next), kind, records: Vec::new() }
    }

    fn gone(kind: TransitionKind, records: impl IntoIterator<Item = RunRecord>) -> Self {
        Self { next: None, kind, records: records.into_iter().collect() }
    }
}

fn claim(row: &ConcurrentRun, (session, run): Owner, until: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    if let Some(held) = row.phase.held() {
        return Err(Rejected::AlreadyHeld(held.run));
    }
    let waiting = row.waiting.filter(|waiting| waiting.firing.start_at <= until).ok_or(Rejected::NothingDue)?;
    let run = waiting.run.unwrap_or(run);
    let held = Held { firing: waiting.firing, run, session, started_at: None, fencing_token: 0 };
    Ok(ConcurrentTransition::to(
        ConcurrentRun { phase: Phase::Prepared(held), waiting: None, ..row.clone() },
        TransitionKind::Claimed,
    ))
}

/// Records the waiting firing as lost, however far away its start is: it must not start again.
fn give_up(row: &ConcurrentRun, waiting: &Waiting, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    if let Some(held) = row.phase.held() {
        return Err(Rejected::AlreadyHeld(held.run));
    }
    Ok(ConcurrentTransition::gone(TransitionKind::GivenUp, [lost_commits::lost(row.key.job, waiting, now)]))
}

/// Another run of the job executes, and the job no longer allows overlap: this one waits.
fn defer(row: &ConcurrentRun, owner: Owner, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    let held = due(row, owner, now)?;
    let firing = Firing { start_at: now + DEFER_FOR, ..held.firing };
    Ok(ConcurrentTransition::to(row.release(&Held { firing, ..held }), TransitionKind::Deferred))
}

/// Asks an executing run to end. A firing that has not started never will.
fn supersede(row: &ConcurrentRun, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    let waiting = match row.phase {
        Phase::Executing(_) if row.cancel.is_some() => return Err(Rejected::NothingDue),
        Phase::Executing(_) => {
            let next = ConcurrentRun { cancel: Some(CancelledBy::NewerFiring), ..row.clone() };
            return Ok(ConcurrentTransition::to(next, TransitionKind::CancelRequested));
        }
        Phase::Prepared(held) => Some(held.waiting()),
        Phase::Idle => row.waiting,
    };
    let record = waiting.and_then(|waiting| control::waiting_record(row.key.job, waiting, Reason::Replaced, now));
    Ok(ConcurrentTransition::gone(TransitionKind::CancelledUnstarted, record))
}

fn ended(job: &Job, row: &ConcurrentRun, held: &Held, ending: &Ending, now: Timestamp) -> ConcurrentTransition {
    let ending = ending.by(now);
    let record = finish::run_record(row.key.job, held, &ending, row.cancel);
    let may_go_on = row.cancel.is_none() && !(row.withdrawn && enabled(Guard::WithdrawnEnds));
    match finish::next_attempt(job, &held.firing, &ending).filter(|_| may_go_on) {
        None => ConcurrentTransition::gone(TransitionKind::Finished, [record]),
        Some(firing) => {
            let waiting = Some(Waiting { run: None, firing });
            let next = ConcurrentRun { phase: Phase::Idle, waiting, ..row.clone() };
            ConcurrentTransition { records: vec![record], ..ConcurrentTransition::to(next, TransitionKind::Retried) }
        }
    }
}

fn reset(row: &ConcurrentRun, owner: Owner, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    let held = *held_by(&row.phase, owner)?;
    if row.cancel.is_none() && !row.withdrawn {
        return Ok(ConcurrentTransition::to(row.release(&held), TransitionKind::Reset));
    }
    let reason = row.cancel.map_or_else(|| Reason::Said(WITHDRAWN.into()), CancelledBy::reason);
    let record = control::waiting_record(row.key.job, held.waiting(), reason, now);
    Ok(ConcurrentTransition::gone(TransitionKind::CancelledUnstarted, record))
}

fn sweep(job: &Job, row: &ConcurrentRun, session: SessionId, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    match row.phase {
        Phase::Prepared(held) if held.session == session => {
            Ok(ConcurrentTransition::to(row.release(&held), TransitionKind::SweptUnstarted))
        }
        Phase::Executing(held) if held.session == session => {
            let lost = ended(job, row, &held, &Ending::lost(now), now);
            Ok(ConcurrentTransition { kind: TransitionKind::SweptLost, ..lost })
        }
        Phase::Prepared(held) | Phase::Executing(held) => Err(Rejected::NotHeld(held.run)),
        Phase::Idle => Err(Rejected::NothingDue),
    }
}

/// The database has lost the start of this firing's run, which lives. A run of another session in the row may live as well.
fn write_back(row: &ConcurrentRun, held: Held) -> Result<ConcurrentTransition, Rejected> {
    match row.phase {
        Phase::Executing(of) if of.session != held.session || of.run == held.run => Err(Rejected::AlreadyHeld(of.run)),
        Phase::Executing(_) | Phase::Prepared(_) | Phase::Idle => Ok(ConcurrentTransition::to(
            ConcurrentRun { phase: Phase::Executing(held), waiting: None, cancel: None, ..row.clone() },
            TransitionKind::WrittenBack,
        )),
    }
}

/// A pause does not affect manual runs.
fn pause(row: &ConcurrentRun, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    match row.key.trigger {
        Trigger::Manual => Err(Rejected::NothingDue),
        Trigger::Schedule | Trigger::Misfire => withdraw(row, TransitionKind::Paused, Reason::Paused, now),
    }
}

/// Lets an executing run finish. A firing that has not started never will: its first attempt is recorded, and a retry
/// has the records of the attempts before it.
fn withdraw(
    row: &ConcurrentRun,
    kind: TransitionKind,
    reason: Reason,
    now: Timestamp,
) -> Result<ConcurrentTransition, Rejected> {
    let waiting = match row.phase {
        Phase::Executing(_) if row.withdrawn => return Err(Rejected::NothingDue),
        Phase::Executing(_) => {
            let kind = if kind == TransitionKind::Deleted { TransitionKind::DeletedLater } else { kind };
            return Ok(ConcurrentTransition::to(ConcurrentRun { withdrawn: true, ..row.clone() }, kind));
        }
        Phase::Prepared(held) => Some(held.waiting()),
        Phase::Idle => row.waiting,
    };
    let first = waiting.filter(|waiting| waiting.firing.attempt == 1);
    let record = first.and_then(|first| control::waiting_record(row.key.job, first, reason, now));
    Ok(ConcurrentTransition::gone(kind, record))
}

fn cancel(row: &ConcurrentRun, run: RunId, now: Timestamp) -> Result<ConcurrentTransition, Rejected> {
    match (row.phase, row.waiting) {
        (Phase::Executing(held), _) if held.run == run => {
            let next = ConcurrentRun { cancel: Some(CancelledBy::Person), ..row.clone() };
            Ok(ConcurrentTransition::to(next, TransitionKind::CancelRequested))
        }
        (Phase::Prepared(held), _) if held.run == run => {
            let record = control::waiting_record(row.key.job, held.waiting(), Reason::Cancelled, now);
            Ok(ConcurrentTransition::gone(TransitionKind::CancelledUnstarted, record))
        }
        (Phase::Idle, Some(waiting)) if waiting.run == Some(run) => {
            let record = control::waiting_record(row.key.job, waiting, Reason::Cancelled, now);
            Ok(ConcurrentTransition::gone(TransitionKind::CancelledUnstarted, record))
        }
        (Phase::Idle | Phase::Prepared(_) | Phase::Executing(_), _) => Err(Rejected::NotHeld(run)),
    }
}
