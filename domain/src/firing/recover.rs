//! Reset and sweep: Prepared or Executing -> Idle without a finish of the run.

use super::control::{drop_unstarted, waiting_record};
use super::{JobState, Owner, Phase, Rejected, Transition, TransitionKind, finish, held_by};
use crate::guard::{Guard, enabled};
use crate::id::SessionId;
use crate::job::Job;
use crate::run::{Ending, Reason};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// The holder releases a firing that it never spawned. The firing keeps its due time and its attempt, because nothing
/// ran.
pub(super) fn reset(
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let held = *held_by(&state.phase, owner)?;
    if state.deleted && enabled(Guard::ResetDeleted) {
        let first = Some(held.waiting()).filter(|waiting| waiting.firing.attempt == 1);
        let unstarted = first.and_then(|first| waiting_record(state.id, first, Reason::Deleted, now));
        return Ok(Transition::gone(TransitionKind::FinishedDeleted).with(unstarted));
    }
    let mut next = state.clone();
    if let Some(by) = state.cancel {
        return Ok(drop_unstarted(timeline, next, &held, by, now));
    }
    let displaced = next.release(&held, now);
    Ok(Transition::to(next, TransitionKind::Reset).with(displaced))
}

/// The holder's session has ended and its children are dead. A prepared firing never started, so it is claimed again for
/// the same due time. An executing run is lost.
pub(super) fn sweep(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    session: SessionId,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let mine = |of: SessionId| of == session || !enabled(Guard::SweepOwn);
    match state.phase {
        Phase::Prepared(held) if mine(held.session) => {
            let mut next = state.clone();
            let displaced = next.release(&held, now);
            Ok(Transition::to(next, TransitionKind::SweptUnstarted).with(displaced))
        }
        Phase::Executing(held) if mine(held.session) => {
            let lost = finish::ended(job, timeline, state, &held, &Ending::lost(now), now);
            let kind = if lost.next.is_some() { TransitionKind::SweptLost } else { lost.kind };
            Ok(Transition { kind, ..lost })
        }
        Phase::Prepared(held) | Phase::Executing(held) => Err(Rejected::NotHeld(held.run)),
        Phase::Idle => Err(Rejected::NothingDue),
    }
}
