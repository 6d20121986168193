//! Prepared -> Executing.

use std::time::Duration;

use super::{
    ConcurrentRun, Firing, Held, JobState, Owner, Phase, Rejected, Transition, TransitionKind, claim, control, held_by,
};
use crate::guard::{Guard, enabled};
use crate::job::{Job, Overlap};
use crate::policy;
use crate::run::{Reason, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// How long a firing waits for runs beside the row before the next look. Only after the job ceased to allow overlap.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Starts what its holder prepared. The holder spawns only after this was acknowledged.
///
/// Of a firing that has become a misfire meanwhile the policy says, as at a claim, what becomes of it. What is made good
/// starts in the same commit: a node that is behind would otherwise write, and come to be late again, once for nothing.
pub(super) fn start(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let held = due(state, owner, now)?;
    if !is_late(job, timeline, &held, now) {
        return Ok(started(job, timeline, state.clone(), held, now));
    }
    let mut next = state.clone();
    let displaced = next.put_back(&held, now);
    let skipped = claim::deal_with_misfires(job, timeline, &mut next, now);
    // A manual run goes under its own id, which its holder does not know yet: the next claim takes what comes first.
    let made_good = next.armed.filter(|armed| armed.misfire_exempt && armed.start_at <= now && next.manual.is_none());
    let transition = match made_good {
        None => Transition::to(next, TransitionKind::Misfired),
        Some(firing) => {
            next.armed = None;
            started(job, timeline, next, Held { firing, ..held }, now)
        }
    };
    Ok(transition.with(displaced).with(skipped))
}

fn started(job: &Job, timeline: &Timeline, mut next: JobState, held: Held, now: Timestamp) -> Transition {
    let fencing_token = next.version + 1;
    let started = Held { started_at: Some(now), fencing_token, ..held };
    // What `catch_up` works off runs one at a time, whatever the overlap.
    let of_backlog = started.firing.trigger == Trigger::Misfire && next.catch_up_until >= Some(started.firing.due_at);
    if job.overlap == Overlap::Allow && !of_backlog {
        return beside(timeline, next, started);
    }
    if started.firing.trigger != Trigger::Manual {
        next.cursor = next.cursor.max(started.firing.due_at);
    }
    next.phase = Phase::Executing(started);
    next.cancel = None;
    Transition::to(next, TransitionKind::Started)
}

/// Runs from a time when the job allowed them still live beside the row: they are the previous run, and `skip` records the
/// firing as it records every other that comes due while one lives. Otherwise, and where it has started before, it waits.
pub(super) fn defer(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let held = due(state, owner, now)?;
    let mut next = state.clone();
    if is_late(job, timeline, &held, now) {
        let displaced = next.put_back(&held, now);
        return Ok(Transition::to(next, TransitionKind::Misfired).with(displaced));
    }
    let record = if job.overlap == Overlap::Skip && held.firing.attempt == 1 {
        control::drop_held(timeline, &mut next, &held, Reason::Overlap, now)
    } else {
        let firing = Firing { misfire_exempt: true, start_at: now + LOOK_AGAIN, ..held.firing };
        let displaced = next.put_back(&Held { firing, ..held }, now);
        if firing.trigger != Trigger::Manual {
            next.armed = Some(firing);
        }
        displaced
    };
    Ok(Transition::to(next, TransitionKind::Deferred).with(record))
}

/// What is prepared under that run, its time having come.
fn due(state: &JobState, owner: Owner, now: Timestamp) -> Result<Held, Rejected> {
    let Phase::Prepared(_) = state.phase else { return Err(Rejected::NotHeld(owner.1)) };
    let held = *held_by(&state.phase, owner)?;
    let early = now < held.firing.start_at && enabled(Guard::NotEarly);
    if early { Err(Rejected::Early(held.firing.start_at)) } else { Ok(held) }
}

/// Whether it has become a misfire while it was prepared.
fn is_late(job: &Job, timeline: &Timeline, held: &Held, now: Timestamp) -> bool {
    let Firing { due_at, misfire_exempt, .. } = held.firing;
    !misfire_exempt && policy::misfire(timeline, &job.misfire, due_at, now).is_some() && enabled(Guard::NotLate)
}

/// `allow`: the run moves to the table `concurrent_run` and the row is armed for the next due time.
fn beside(timeline: &Timeline, mut next: JobState, started: Held) -> Transition {
    let due_at = started.firing.due_at;
    next.phase = Phase::Idle;
    if started.firing.trigger != Trigger::Manual {
        next.arm_after(timeline, due_at);
    }
    let concurrent = ConcurrentRun::started(&next, started);
    Transition { concurrent: Some(concurrent), ..Transition::to(next, TransitionKind::StartedConcurrently) }
}
