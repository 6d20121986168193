//! Start: Prepared -> Executing.

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

/// How long a deferred firing waits before it is claimed again. Only jobs that stopped allowing overlap defer.
pub(super) const DEFER_FOR: Duration = Duration::from_secs(1);

/// Starts the prepared firing. The holder spawns its child only after this write was acknowledged.
///
/// A prepared firing may have become a misfire. Then the misfire policy decides, as at a claim, and a firing that it
/// runs starts in the same commit. A node that is behind would otherwise write twice, and be late again for the second
/// write.
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
    let displaced = next.release(&held, now);
    let skipped = claim::apply_misfire_policy(job, timeline, &mut next, now);
    // A waiting manual run has an id that the holder does not know, so the next claim has to choose the first firing.
    let due_now = next.armed.filter(|armed| armed.misfire_exempt && armed.start_at <= now && next.manual.is_none());
    let transition = match due_now {
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
    // The runs of a backlog (`catch_up`) run one at a time, whatever the overlap policy.
    let of_backlog = started.firing.trigger == Trigger::Misfire && next.catch_up_until >= Some(started.firing.due_at);
    if job.overlap == Overlap::Allow && !of_backlog {
        return start_concurrently(timeline, next, started);
    }
    if started.firing.trigger != Trigger::Manual {
        next.cursor = next.cursor.max(started.firing.due_at);
    }
    next.phase = Phase::Executing(started);
    next.cancel = None;
    Transition::to(next, TransitionKind::Started)
}

/// Defers the prepared firing, because runs still live from a time when the job allowed overlap. They count as the
/// previous run, so `skip` records a first attempt as skipped. Any other firing waits.
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
        let displaced = next.release(&held, now);
        return Ok(Transition::to(next, TransitionKind::Misfired).with(displaced));
    }
    let record = if job.overlap == Overlap::Skip && held.firing.attempt == 1 {
        control::drop_held(timeline, &mut next, &held, Reason::Overlap, now)
    } else {
        let firing = Firing { misfire_exempt: true, start_at: now + DEFER_FOR, ..held.firing };
        let displaced = next.release(&Held { firing, ..held }, now);
        if firing.trigger != Trigger::Manual {
            next.armed = Some(firing);
        }
        displaced
    };
    Ok(Transition::to(next, TransitionKind::Deferred).with(record))
}

/// The prepared firing of that run, if its time has come.
fn due(state: &JobState, owner: Owner, now: Timestamp) -> Result<Held, Rejected> {
    let Phase::Prepared(_) = state.phase else { return Err(Rejected::NotHeld(owner.1)) };
    let held = *held_by(&state.phase, owner)?;
    let early = now < held.firing.start_at && enabled(Guard::NotEarly);
    if early { Err(Rejected::Early(held.firing.start_at)) } else { Ok(held) }
}

/// Whether the firing has become a misfire while it was prepared.
fn is_late(job: &Job, timeline: &Timeline, held: &Held, now: Timestamp) -> bool {
    let Firing { due_at, misfire_exempt, .. } = held.firing;
    !misfire_exempt && policy::misfire(timeline, &job.misfire, due_at, now).is_some() && enabled(Guard::NotLate)
}

/// `allow`: the run moves to the table `concurrent_run`, and the row is armed for the next due time.
fn start_concurrently(timeline: &Timeline, mut next: JobState, started: Held) -> Transition {
    let due_at = started.firing.due_at;
    next.phase = Phase::Idle;
    if started.firing.trigger != Trigger::Manual {
        next.arm_after(timeline, due_at);
    }
    let concurrent = ConcurrentRun::started(&next, started);
    Transition { concurrent: Some(concurrent), ..Transition::to(next, TransitionKind::StartedConcurrently) }
}
