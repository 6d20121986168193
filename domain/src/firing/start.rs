//! Prepared -> Executing.

use std::time::Duration;

use super::{ActiveRow, Firing, Held, JobState, Owner, Phase, Rejected, Transition, Why, control, held_by};
use crate::guard::{Guard, stands};
use crate::job::{Job, Overlap};
use crate::policy;
use crate::run::{Reason, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// How long a firing waits for runs beside the row before the next look. Only after the job ceased to allow overlap.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

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
    let held = due(state, owner, now)?;
    if let Some(misfired) = misfired(job, timeline, state, &held, now) {
        return Ok(misfired);
    }
    let mut next = state.clone();
    let fencing_token = state.version + 1;
    let started = Held { started_at: Some(now), fencing_token, ..held };
    // What `catch_up` works off runs one at a time, whatever the overlap.
    let of_backlog = started.firing.trigger == Trigger::Misfire && next.catch_up_until >= Some(started.firing.due_at);
    if job.overlap == Overlap::Allow && !of_backlog {
        return Ok(beside(timeline, next, started));
    }
    if started.firing.trigger != Trigger::Manual {
        next.cursor = next.cursor.max(started.firing.due_at);
    }
    next.phase = Phase::Executing(started);
    next.cancel = None;
    Ok(Transition::to(next, Why::Started))
}

/// Runs from a time when the job allowed them still live beside the row: they are the previous run, and `skip` records the
/// firing as it records every other that comes due while one lives. Otherwise, and where it has started before, it waits.
pub(super) fn hold_back(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let held = due(state, owner, now)?;
    if let Some(misfired) = misfired(job, timeline, state, &held, now) {
        return Ok(misfired);
    }
    let mut next = state.clone();
    let record = if job.overlap == Overlap::Skip && held.firing.attempt == 1 {
        control::drop_held(timeline, &mut next, &held, Reason::Overlap, now)
    } else {
        let firing = Firing { settled: true, start_at: now + LOOK_AGAIN, ..held.firing };
        let displaced = next.put_back(&Held { firing, ..held }, now);
        if firing.trigger != Trigger::Manual {
            next.armed = Some(firing);
        }
        displaced
    };
    Ok(Transition::to(next, Why::HeldBack).with(record))
}

/// What is prepared under that run, its time having come.
fn due(state: &JobState, owner: Owner, now: Timestamp) -> Result<Held, Rejected> {
    let Phase::Prepared(_) = state.phase else { return Err(Rejected::NotHeld(owner.1)) };
    let held = *held_by(&state.phase, owner)?;
    let early = now < held.firing.start_at && stands(Guard::NotEarly);
    if early { Err(Rejected::Early(held.firing.start_at)) } else { Ok(held) }
}

fn misfired(job: &Job, timeline: &Timeline, state: &JobState, held: &Held, now: Timestamp) -> Option<Transition> {
    let late = !held.firing.settled && policy::misfire(timeline, &job.misfire, held.firing.due_at, now).is_some();
    (late && stands(Guard::NotLate)).then(|| {
        let mut next = state.clone();
        let displaced = next.put_back(held, now);
        Transition::to(next, Why::Misfired).with(displaced)
    })
}

/// `allow`: the run moves to the active table and the row is armed for the next due time.
fn beside(timeline: &Timeline, mut next: JobState, started: Held) -> Transition {
    let due_at = started.firing.due_at;
    next.phase = Phase::Idle;
    if started.firing.trigger != Trigger::Manual {
        next.arm_after(timeline, due_at);
    }
    let active = ActiveRow::started(&next, started);
    Transition { active: Some(active), ..Transition::to(next, Why::StartedBeside) }
}
