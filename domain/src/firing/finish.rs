//! Finish: Executing -> Idle.

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

/// Records how the run ended and arms the next firing.
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

/// The row after a run's end. The holder's finish and the sweep of the holder's session share this rule.
pub(super) fn ended(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    held: &Held,
    ending: &Ending,
    now: Timestamp,
) -> Transition {
    let ending = ending.by(now);
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

/// Whether `retry` or `on_lost` asks for another attempt after this end.
pub fn goes_on(job: &Job, firing: &Firing, ending: &Ending) -> bool {
    next_attempt(job, firing, ending).is_some()
}

/// The record of a run that no row carries any more.
pub fn record_of_end(job: JobId, held: &Held, ending: &Ending, now: Timestamp) -> RunRecord {
    run_record(job, held, &ending.by(now), None)
}

/// The next attempt, if `retry` or `on_lost` asks for one.
pub(super) fn next_attempt(job: &Job, firing: &Firing, ending: &Ending) -> Option<Firing> {
    match ending.status {
        Status::Failed | Status::TimedOut => {
            job.retry.wait_after(firing.attempt).map(|wait| firing.next_attempt(ending.ended_at + wait))
        }
        Status::Lost if job.on_lost == OnLost::Rerun => Some(firing.next_attempt(ending.ended_at)),
        Status::Lost | Status::Succeeded | Status::Cancelled | Status::Running | Status::Skipped => None,
    }
}

/// Whether another firing takes the place of this next attempt. A waiting manual run replaces the attempt of another
/// manual run, because both only ask to run the job again. With `replace`, any newer firing that starts before the
/// attempt does.
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
            return skip_overlapping_backlog(job, timeline, next, held, ending, now);
        }
    } else if let Some(armed) = next.armed {
        // Due times of a pause are recorded when the pause ends.
        let waits = next.pause.is_some() || armed.misfire_exempt || armed.trigger == Trigger::Misfire;
        if waits || armed.due_at > ending.ended_at {
            return None;
        }
        // A start that was released has already moved the cursor to the armed firing.
        from = from.min(armed.due_at - Timestamp::TICK);
    }
    let selection = match ending.status {
        // It is unknown when a lost run ended, so the misfire policy decides at the next claim on due times since then.
        Status::Lost => policy::next_regular(timeline, from),
        // Due times from before this misfire run began did not overlap with it; they are misfires too.
        _ if job.overlap == Overlap::Skip && came_before(timeline, from, held) => policy::next_regular(timeline, from),
        _ => policy::after_run(timeline, job.overlap, from, ending.ended_at),
    };
    let record = selection.skipped.map(|skipped| RunRecord::skipped(next.id, skipped, Reason::Overlap, now));
    next.take(selection);
    record
}

/// Records the due times that overlapped with a run of a backlog which has more runs to come. It has to happen now: the
/// later runs could not tell these due times from those that passed between two runs.
fn skip_overlapping_backlog(
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

/// Whether the first due time after `cursor` passed before this misfire run began. No run lived at that time, so it was
/// missed and did not overlap. Retries count as running since the first attempt, so they never qualify.
fn came_before(timeline: &Timeline, cursor: Timestamp, held: &Held) -> bool {
    let first_misfire_run = held.firing.trigger == Trigger::Misfire && held.firing.attempt == 1;
    let began = held.started_at.filter(|_| first_misfire_run);
    began.is_some_and(|began| timeline.next_after(cursor).is_some_and(|first| first <= began))
}

/// The history row of a run that ended.
pub(super) fn run_record(job: JobId, held: &Held, ending: &Ending, cancel: Option<CancelledBy>) -> RunRecord {
    // A run that was asked to end and failed was cancelled, whatever its exit code. One that succeeded first has
    // succeeded.
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
        prepared_ms: held
            .started_at
            .zip(ending.claimed_at.0)
            .map(|(started, claimed)| whole_ms(started.since(claimed))),
        usage: ending.usage,
        session: Some(held.session),
        fencing_token: Some(held.fencing_token),
        count: 1,
        first_due_at: held.firing.due_at,
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
