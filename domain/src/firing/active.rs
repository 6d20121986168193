//! Runs beside the job's own: those of `overlap = allow`, and manual runs of such jobs.
//!
//! Same matrix, guards and sweeps as the job's row (DESIGN section 2); what is missing here is the schedule.

use super::start::LOOK_AGAIN;
use super::{
    CancelledBy, Event, Firing, Held, JobState, Owner, Phase, Rejected, Waiting, Why, control, finish, held_by,
    uncertain,
};
use crate::guard::{Guard, stands};
use crate::id::{JobId, RunId, SessionId};
use crate::job::Job;
use crate::run::{Ending, Reason, RunRecord, Trigger};
use crate::time::Timestamp;
use crate::uncertain::may_have_started;

const WITHDRAWN: &str = "the job was paused or deleted before the start";

/// What identifies a firing: its attempts follow one another under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiringKey {
    /// Whose firing it is.
    pub job: JobId,
    /// Its due time.
    pub due_at: Timestamp,
    /// What made it come up.
    pub trigger: Trigger,
}

/// A row of the active table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ActiveRow {
    /// Which firing it is.
    pub key: FiringKey,
    /// As in [`JobState::version`].
    pub version: u64,
    /// Who holds it.
    pub phase: Phase,
    /// What waits while nobody holds it.
    pub waiting: Option<Waiting>,
    /// Set when the running run is to end early.
    pub cancel: Option<CancelledBy>,
    /// Its job was deleted, or paused while it ran: no further attempt, and no start if this one never happened.
    pub withdrawn: bool,
}

/// An active row as it must be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTransition {
    /// The row; `None` when it goes.
    pub next: Option<ActiveRow>,
    /// Which transition this is.
    pub why: Why,
    /// History rows.
    pub records: Vec<RunRecord>,
}

impl ActiveRow {
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

    fn put_back(&self, held: &Held) -> Self {
        Self { phase: Phase::Idle, waiting: Some(held.waiting()), ..self.clone() }
    }
}

/// Applies `event` to a row of the active table.
///
/// # Errors
/// [`Rejected`] when the event does not apply; nothing is to be written then.
pub fn apply_active(job: &Job, row: &ActiveRow, event: &Event, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    let mut transition = match event {
        Event::Claim { session, run, until, uncertain_until } => match row.waiting {
            Some(waiting)
                if may_have_started(job, waiting.firing.due_at, *uncertain_until) && stands(Guard::UncertainClaim) =>
            {
                give_up(row, &waiting, now)
            }
            _ => claim(row, (*session, *run), *until),
        },
        Event::HoldBack { session, run } => hold_back(row, (*session, *run), now),
        Event::Supersede => supersede(row, now),
        Event::Finish { session, run, ending } => {
            let Phase::Executing(_) = row.phase else { return Err(Rejected::NotHeld(*run)) };
            let held = *held_by(&row.phase, (*session, *run))?;
            Ok(ended(job, row, &held, ending, now))
        }
        Event::Reset { session, run } => reset(row, (*session, *run), now),
        Event::Sweep { session } => sweep(job, row, *session, now),
        Event::Pause { .. } => pause(row, now),
        Event::Delete => withdraw(row, Why::Deleted, Reason::Deleted, now),
        Event::Cancel { run } => cancel(row, *run, now),
        // Starts are `start_beside`'s.
        Event::Start { .. } | Event::Resume | Event::Update { .. } | Event::Trigger { .. } => Err(Rejected::NothingDue),
    }?;
    if let Some(next) = &mut transition.next {
        next.version = row.version + 1;
    }
    Ok(transition)
}

/// Starts a run beside the row of its job, which is written too: its version is where all tokens of the job are drawn from,
/// so that they grow from start to start in whichever row.
///
/// # Errors
/// [`Rejected`] when it does not apply; nothing is to be written then.
pub fn start_beside(
    state: &JobState,
    row: &ActiveRow,
    owner: (SessionId, RunId),
    now: Timestamp,
) -> Result<(JobState, ActiveTransition), Rejected> {
    control::refuse_deleted(state)?;
    let held = due(row, owner, now)?;
    let next = JobState { version: state.version + 1, ..state.clone() };
    let fencing_token = if stands(Guard::TokenOfJob) { next.version } else { row.version + 1 };
    let started = Held { started_at: Some(now), fencing_token, ..held };
    let row = ActiveRow { phase: Phase::Executing(started), version: row.version + 1, ..row.clone() };
    Ok((next, ActiveTransition::to(row, Why::Started)))
}

/// What is prepared under that run, its time having come.
fn due(row: &ActiveRow, owner: Owner, now: Timestamp) -> Result<Held, Rejected> {
    let Phase::Prepared(_) = row.phase else { return Err(Rejected::NotHeld(owner.1)) };
    let held = *held_by(&row.phase, owner)?;
    if now < held.firing.start_at { Err(Rejected::Early(held.firing.start_at)) } else { Ok(held) }
}

impl ActiveTransition {
    fn to(next: ActiveRow, why: Why) -> Self {
        Self { next: Some(next), why, records: Vec::new() }
    }

    fn gone(why: Why, records: impl IntoIterator<Item = RunRecord>) -> Self {
        Self { next: None, why, records: records.into_iter().collect() }
    }
}

fn claim(row: &ActiveRow, (session, run): Owner, until: Timestamp) -> Result<ActiveTransition, Rejected> {
    if let Some(held) = row.phase.held() {
        return Err(Rejected::Held(held.run));
    }
    let waiting = row.waiting.filter(|waiting| waiting.firing.start_at <= until).ok_or(Rejected::NothingDue)?;
    let run = waiting.run.unwrap_or(run);
    let held = Held { firing: waiting.firing, run, session, started_at: None, fencing_token: 0 };
    Ok(ActiveTransition::to(ActiveRow { phase: Phase::Prepared(held), waiting: None, ..row.clone() }, Why::Claimed))
}

/// Whatever its time: it comes up no more.
fn give_up(row: &ActiveRow, waiting: &Waiting, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    if let Some(held) = row.phase.held() {
        return Err(Rejected::Held(held.run));
    }
    Ok(ActiveTransition::gone(Why::GivenUp, [uncertain::lost(row.key.job, waiting, now)]))
}

/// Another run of the job executes, and the job allows no overlap any more: this one waits.
fn hold_back(row: &ActiveRow, owner: Owner, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    let held = due(row, owner, now)?;
    let firing = Firing { start_at: now + LOOK_AGAIN, ..held.firing };
    Ok(ActiveTransition::to(row.put_back(&Held { firing, ..held }), Why::HeldBack))
}

/// What runs is asked to end, what has not started never will.
fn supersede(row: &ActiveRow, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    let waiting = match row.phase {
        Phase::Executing(_) if row.cancel.is_some() => return Err(Rejected::NothingDue),
        Phase::Executing(_) => {
            let next = ActiveRow { cancel: Some(CancelledBy::NewerFiring), ..row.clone() };
            return Ok(ActiveTransition::to(next, Why::CancelRequested));
        }
        Phase::Prepared(held) => Some(held.waiting()),
        Phase::Idle => row.waiting,
    };
    let record = waiting.and_then(|waiting| control::waiting_record(row.key.job, waiting, Reason::Replaced, now));
    Ok(ActiveTransition::gone(Why::CancelledUnstarted, record))
}

fn ended(job: &Job, row: &ActiveRow, held: &Held, ending: &Ending, now: Timestamp) -> ActiveTransition {
    let ending = Ending { ended_at: ending.ended_at.min(now), ..ending.clone() };
    let record = finish::run_record(row.key.job, held, &ending, row.cancel);
    let may_go_on = row.cancel.is_none() && !(row.withdrawn && stands(Guard::WithdrawnEnds));
    match finish::next_attempt(job, &held.firing, &ending).filter(|_| may_go_on) {
        None => ActiveTransition::gone(Why::Finished, [record]),
        Some(firing) => {
            let waiting = Some(Waiting { run: None, firing });
            let next = ActiveRow { phase: Phase::Idle, waiting, ..row.clone() };
            ActiveTransition { records: vec![record], ..ActiveTransition::to(next, Why::Retried) }
        }
    }
}

fn reset(row: &ActiveRow, owner: Owner, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    let held = *held_by(&row.phase, owner)?;
    if row.cancel.is_none() && !row.withdrawn {
        return Ok(ActiveTransition::to(row.put_back(&held), Why::Reset));
    }
    let reason = row.cancel.map_or_else(|| Reason::Said(WITHDRAWN.into()), CancelledBy::reason);
    let record = control::waiting_record(row.key.job, held.waiting(), reason, now);
    Ok(ActiveTransition::gone(Why::CancelledUnstarted, record))
}

fn sweep(job: &Job, row: &ActiveRow, session: SessionId, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    match row.phase {
        Phase::Prepared(held) if held.session == session => {
            Ok(ActiveTransition::to(row.put_back(&held), Why::SweptUnstarted))
        }
        Phase::Executing(held) if held.session == session => {
            let lost = ended(job, row, &held, &Ending::lost(now), now);
            Ok(ActiveTransition { why: Why::SweptLost, ..lost })
        }
        Phase::Prepared(held) | Phase::Executing(held) => Err(Rejected::NotHeld(held.run)),
        Phase::Idle => Err(Rejected::NothingDue),
    }
}

/// Manual runs go on.
fn pause(row: &ActiveRow, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    match row.key.trigger {
        Trigger::Manual => Err(Rejected::NothingDue),
        Trigger::Schedule | Trigger::Misfire => withdraw(row, Why::Paused, Reason::Paused, now),
    }
}

/// What runs may finish; what has not started never will. A further attempt that waits has the records of those before it.
fn withdraw(row: &ActiveRow, why: Why, reason: Reason, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    let waiting = match row.phase {
        Phase::Executing(_) if row.withdrawn => return Err(Rejected::NothingDue),
        Phase::Executing(_) => {
            let why = if why == Why::Deleted { Why::DeletedLater } else { why };
            return Ok(ActiveTransition::to(ActiveRow { withdrawn: true, ..row.clone() }, why));
        }
        Phase::Prepared(held) => Some(held.waiting()),
        Phase::Idle => row.waiting,
    };
    let first = waiting.filter(|waiting| waiting.firing.attempt == 1);
    let record = first.and_then(|first| control::waiting_record(row.key.job, first, reason, now));
    Ok(ActiveTransition::gone(why, record))
}

fn cancel(row: &ActiveRow, run: RunId, now: Timestamp) -> Result<ActiveTransition, Rejected> {
    match (row.phase, row.waiting) {
        (Phase::Executing(held), _) if held.run == run => {
            let next = ActiveRow { cancel: Some(CancelledBy::Person), ..row.clone() };
            Ok(ActiveTransition::to(next, Why::CancelRequested))
        }
        (Phase::Prepared(held), _) if held.run == run => {
            let record = control::waiting_record(row.key.job, held.waiting(), Reason::Cancelled, now);
            Ok(ActiveTransition::gone(Why::CancelledUnstarted, record))
        }
        (Phase::Idle, Some(waiting)) if waiting.run == Some(run) => {
            let record = control::waiting_record(row.key.job, waiting, Reason::Cancelled, now);
            Ok(ActiveTransition::gone(Why::CancelledUnstarted, record))
        }
        (Phase::Idle | Phase::Prepared(_) | Phase::Executing(_), _) => Err(Rejected::NotHeld(run)),
    }
}
