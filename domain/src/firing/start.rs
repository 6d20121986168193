//! Prepared -> Executing.

use super::{ActiveRow, JobState, Owner, Phase, Rejected, Transition, Why, held_by};
use crate::job::{Job, Overlap};
use crate::policy;
use crate::run::Trigger;
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Starts what its holder prepared. The holder spawns only after this was acknowledged.
///
/// A firing that has become a misfire meanwhile goes back to Idle, so that the policy is applied in one place: the claim.
pub(super) fn start(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let Phase::Prepared(_) = state.phase else {
        return Err(Rejected::NotHeld(owner.1));
    };
    let held = *held_by(&state.phase, owner)?;
    if now < held.firing.start_at {
        return Err(Rejected::Early(held.firing.start_at));
    }
    let mut next = state.clone();
    let late = !held.firing.settled && policy::misfire(timeline, &job.misfire, held.firing.due_at, now).is_some();
    if late {
        let displaced = next.put_back(&held, now);
        return Ok(Transition::to(next, Why::Misfired).with(displaced));
    }
    let fencing_token = state.version + 1;
    let started = super::Held { started_at: Some(now), fencing_token, ..held };
    if job.overlap == Overlap::Allow {
        return Ok(beside(timeline, next, started));
    }
    if started.firing.trigger != Trigger::Manual {
        next.cursor = next.cursor.max(started.firing.due_at);
    }
    next.phase = Phase::Executing(started);
    next.cancel = None;
    Ok(Transition::to(next, Why::Started))
}

/// `allow`: the run moves to the active table and the row is armed for the next due time.
fn beside(timeline: &Timeline, mut next: JobState, started: super::Held) -> Transition {
    let due_at = started.firing.due_at;
    next.phase = Phase::Idle;
    if started.firing.trigger != Trigger::Manual {
        next.arm_after(timeline, due_at);
    }
    let active = ActiveRow::started(&next, started);
    Transition { active: Some(active), ..Transition::to(next, Why::StartedBeside) }
}
