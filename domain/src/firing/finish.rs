//! Executing -> Idle.

use std::time::Duration;

use super::{
    CancelledBy, Firing, Held, JobState, Owner, Phase, Rejected, Transition, TransitionKind, Waiting, held_by,
};
use crate::guard::{Guard, enabled};
use crate::id::JobId;
use crate::job::{Job, OnLost, Overlap};
use crate::policy;
use crate::run::{Ending, Reason, RunRecord, Status, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

const INSTANT: Duration = Duration::from_millis(1);

/// Records how the run ended and arms what comes next.
pub(super) fn finish(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    ending: &Ending,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let Phase::Executing(_) = state.phase else {
        return Err(Rejected::NotHeld(owner.1));
    };
    let held = *held_by(&state.phase, owner)?;
    Ok(ended(job, timeline, state, &held, ending, now))
}

/// What a run's end makes of its row, whoever tells it: the holder, or the sweep of the holder's session.
pub(super) fn ended(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    held: &Held,
    ending: &Ending,
    now: Timestamp,
) -> Transition {
    let ending = Ending { ended_at: ending.ended_at.min(now), ..ending.clone() };
    let record = run_record(state.id, held, &ending, state.cancel);
    if state.deleted && enabled(Guard::FinishDeleted) {
        return Transition::gone(TransitionKind::FinishedDeleted).with([record]);
    }
    let mut next = JobState { phase: Phase::Idle, cancel: None, ..state.clone() };
    let may_go_on = state.pause.is_none() && state.cancel.is_none();
    let again = if may_go_on { next_attempt(job, &held.firing, &ending) } else { None };
    if let Some(firing) = again.filter(|firing| !superseded(job, timeline, state, firing)) {
        match firing.trigger {
            Trigger::Manual => next.manual = Some(Waiting { run: None, firing }),
            Trigger::Schedule | Trigger::Misfire => next.armed = Some(firing),
        }
        return Transition::to(next, TransitionKind::Retried).with([record]);
    }
    let skipped = arm_next(job, timeline, &mut next, held, &ending, now);
    Transition::to(next, TransitionKind::Finished).with([record]).with(skipped)
}

/// The next attempt that retry or `on_lost` asks for.
pub(super) fn next_attempt(job: &Job, firing: &Firing, ending: &Ending) -> Option<Firing> {
    match ending.status {
        Status::Failed | Status::TimedOut => {
            job.retry.wait_after(firing.attempt).map(|wait| firing.next_attempt(ending.ended_at + wait))
        }
        Status::Lost if job.on_lost == OnLost::Rerun => Some(firing.next_attempt(ending.ended_at)),
        Status::Lost | Status::Succeeded | Status::Cancelled | Status::Running | Status::Skipped => None,
    }
}

/// A manual run that waits takes the place of the next attempt of another one: a person asked for no more than to run it
/// again. With `replace`, so does whatever is newer and comes up before that attempt.
fn superseded(job: &Job, timeline: &Timeline, state: &JobState, attempt: &Firing) -> bool {
    let replaced = || timeline.next_after(state.cursor).is_some_and(|due| due <= attempt.start_at);
    match (attempt.trigger, job.overlap) {
        (Trigger::Manual, _) if state.manual.is_some() => true,
        (_, Overlap::Replace) => state.manual.is_some() || replaced(),
        (_, Overlap::Skip | Overlap::Delay | Overlap::Allow) => false,
    }
}

fn arm_next(
    job: &Job,
    timeline: &Timeline,
    next: &mut JobState,
    held: &Held,
    ending: &Ending,
    now: Timestamp,
) -> Option<RunRecord> {
    let mut from = next.cursor;
    if held.firing.trigger != Trigger::Manual {
        next.armed = policy::next_of_backlog(timeline, held.firing.due_at, next.catch_up_until);
        if next.armed.is_some() {
            return skip_beside_backlog(job, timeline, next, held, ending, now);
        }
    } else if let Some(armed) = next.armed {
        // What has come due in a pause is recorded by its end.
        let waits = next.pause.is_some() || armed.misfire_exempt || armed.trigger == Trigger::Misfire;
        if waits || armed.due_at > ending.ended_at {
            return None;
        }
        // A start that was given back has moved the cursor to it.
        from = from.min(armed.due_at - INSTANT);
    }
    // Of a lost run nobody knows until when it lived: what passed meanwhile goes to the misfire policy at the next claim.
    let selection = match ending.status {
        Status::Lost => policy::next_regular(timeline, from),
        // Nor did what passed before this run of a backlog began come due while it lived.
        _ if job.overlap == Overlap::Skip && came_before(timeline, from, held) => policy::next_regular(timeline, from),
        _ => policy::after_run(timeline, job.overlap, from, ending.ended_at),
    };
    let record = selection.skipped.map(|skipped| RunRecord::skipped(next.id, skipped, Reason::Overlap, now));
    next.take(selection);
    record
}

/// What came due while a run of a backlog lived, with more of the backlog to come, is recorded as at any run's end: by then the
/// runs that follow would not tell it from what came due between them.
fn skip_beside_backlog(
    job: &Job,
    timeline: &Timeline,
    next: &mut JobState,
    held: &Held,
    ending: &Ending,
    now: Timestamp,
) -> Option<RunRecord> {
    let overlaps = job.overlap == Overlap::Skip && ending.status != Status::Lost;
    if !overlaps || came_before(timeline, next.cursor, held) {
        return None;
    }
    let passed = policy::due_range(timeline, next.cursor, ending.ended_at)?;
    next.cursor = passed.last;
    Some(RunRecord::skipped(next.id, passed, Reason::Overlap, now))
}

/// Whether the first due time after `cursor` came before this run of what is made good began: nobody could start it, and no run
/// of the job lived. A further attempt counts as running since the first one.
fn came_before(timeline: &Timeline, cursor: Timestamp, held: &Held) -> bool {
    let made_good = held.firing.trigger == Trigger::Misfire && held.firing.attempt == 1;
    let began = held.started_at.filter(|_| made_good);
    began.is_some_and(|began| timeline.next_after(cursor).is_some_and(|first| first <= began))
}

/// The history row of a run that ended.
pub(super) fn run_record(job: JobId, held: &Held, ending: &Ending, cancel: Option<CancelledBy>) -> RunRecord {
    // A run that was asked to end and ended badly was cancelled, whatever its exit looks like; one that succeeded first
    // has succeeded.
    let cancelled = cancel.filter(|_| matches!(ending.status, Status::Failed | Status::Cancelled));
    let status = if cancelled.is_some() { Status::Cancelled } else { ending.status };
    RunRecord {
        id: held.run,
        job,
        due_at: held.firing.due_at,
        trigger: held.firing.trigger,
        attempt: held.firing.attempt,
        status,
        reason: cancelled.map(CancelledBy::reason).or_else(|| ending.reason.clone()),
        exit_code: ending.exit_code,
        signal: ending.signal,
        started_at: held.started_at,
        finished_at: ending.ended_at.max(held.started_at.unwrap_or(ending.ended_at)),
        lag_ms: held.started_at.map(|started| started.as_ms() - held.firing.start_at.as_ms()),
        session: Some(held.session),
        fencing_token: Some(held.fencing_token),
        count: 1,
        first_due_at: held.firing.due_at,
    }
}
