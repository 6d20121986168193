//! Calls of operators: update, delete, run now, cancel. Each may come at any moment.

use super::{CancelledBy, ConcurrentRun, Firing, Held, JobState, Phase, Rejected, Transition, TransitionKind, Waiting};
use crate::id::{JobId, RunId};
use crate::job::{Job, Overlap};
use crate::policy::{self, Selection};
use crate::run::{DueRange, Reason, RunRecord, Status, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Replaces the definition; `job` and `timeline` are the new ones. Due times up to now that have not started are
/// recorded, so that no older due time starts with a newer definition. Future due times change only if the timing
/// changed. A paused job with unchanged timing records nothing here, because the end of the pause does.
pub(super) fn update(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    previous: &(Job, Timeline),
    now: Timestamp,
) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    let mut next = JobState { generation: state.generation + 1, ..state.clone() };
    release_scheduled(&mut next);
    let retimed = job.timing_differs(&previous.0);
    if !retimed && next.pause.is_some() {
        return Ok(Transition::to(next, TransitionKind::Updated));
    }
    let reason = if next.pause.is_some() { Reason::Paused } else { Reason::Updated };
    let records = skipped_records(&previous.1, &next, reason, now, now);
    if !retimed && records.is_empty() {
        return Ok(Transition::to(next, TransitionKind::Updated));
    }
    // Never from before the cursor: a clock that was set back would show due times that already ran or have a record.
    let fresh = policy::next_regular(timeline, now.max(next.cursor));
    if retimed {
        next.anchor_at = now;
        fresh.armed.ok_or(Rejected::NeverFires)?;
    }
    // Nothing is armed while the job's own firing executes: the run's end arms the next one after the cursor.
    let runs = matches!(next.phase, Phase::Executing(held) if held.firing.trigger != Trigger::Manual);
    let retry = next.armed.filter(|armed| armed.attempt > 1 && !retimed);
    next.take(Selection { armed: retry.or(fresh.armed.filter(|_| !runs)), ..fresh });
    Ok(Transition::to(next, TransitionKind::Updated).with(records))
}

/// Deletes the row, or marks it while a run executes, so that the run may finish. Firings that were due and have not
/// started are recorded.
pub(super) fn delete(timeline: &Timeline, state: &JobState, now: Timestamp) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    let mut next = state.clone();
    release_scheduled(&mut next);
    let prepared = if let Phase::Prepared(held) = next.phase { Some(held.waiting()) } else { None };
    let reason = if next.pause.is_some() { Reason::Paused } else { Reason::Deleted };
    let records = skipped_records(timeline, &next, reason, now, now);
    let manual = prepared.into_iter().chain(next.manual.take());
    let manual = manual.filter_map(|manual| waiting_record(state.id, manual, Reason::Deleted, now));
    let transition = match next.phase {
        Phase::Executing(_) => {
            Transition::to(JobState { deleted: true, armed: None, ..next }, TransitionKind::DeletedLater)
        }
        Phase::Idle | Phase::Prepared(_) => Transition::gone(TransitionKind::Deleted),
    };
    Ok(transition.with(records).with(manual))
}

/// Asks for a run now. It follows the job's overlap policy like any firing, but a pause does not stop it.
pub(super) fn trigger(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    run: RunId,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    let due_at = state.last_manual_at.map_or(now, |last| now.max(last + std::time::Duration::from_millis(1)));
    let manual = Waiting { run: Some(run), firing: Firing::manual(due_at) };
    let mut next = JobState { last_manual_at: Some(due_at), ..state.clone() };
    if job.overlap == Overlap::Allow {
        let concurrent = ConcurrentRun::waiting(&next, run, manual.firing);
        return Ok(Transition {
            concurrent: Some(concurrent),
            ..Transition::to(next, TransitionKind::TriggeredConcurrently)
        });
    }
    // A firing that was claimed ahead of its time waits for the manual run. One whose time has come counts as running.
    let ahead = next.phase.held().is_some_and(|held| held.firing.start_at > now);
    if ahead {
        release_scheduled(&mut next);
    }
    let mut replaced = None;
    let backing_off = next.in_backoff() || next.manual.is_some_and(|manual| manual.firing.attempt > 1);
    let running = next.phase.held().is_some() || backing_off;
    match (job.overlap, running, next.manual) {
        (Overlap::Skip, true, _) | (Overlap::Delay, true, Some(_)) => {
            let record = waiting_record(state.id, manual, Reason::Overlap, now);
            // No manual run goes first, so the prepared firing stays where it is.
            let unmoved = JobState { last_manual_at: Some(due_at), ..state.clone() };
            return Ok(Transition::to(unmoved, TransitionKind::TriggerSkipped).with(record));
        }
        (_, _, Some(waits)) if waits.firing.attempt == 1 => {
            return Err(Rejected::ManualWaiting(waits.run.unwrap_or(run)));
        }
        (Overlap::Replace, true, _) => replaced = replace(timeline, &mut next, now),
        (Overlap::Skip | Overlap::Delay | Overlap::Replace | Overlap::Allow, _, _) => {}
    }
    next.manual = Some(manual);
    Ok(Transition::to(next, TransitionKind::Triggered).with(replaced))
}

/// Replaces the executing run, the prepared firing or the waiting retry by a newer firing.
fn replace(timeline: &Timeline, next: &mut JobState, now: Timestamp) -> Option<RunRecord> {
    if let Some(attempt) = next.armed.filter(|_| next.in_backoff()) {
        next.arm_after(timeline, attempt.due_at);
    }
    match next.phase {
        Phase::Idle => None,
        Phase::Prepared(held) => drop_held(timeline, next, &held, Reason::Replaced, now),
        Phase::Executing(_) => {
            next.cancel = next.cancel.or(Some(CancelledBy::NewerFiring));
            None
        }
    }
}

/// Asks an executing run to end. A run that has not started never will.
pub(super) fn cancel(
    timeline: &Timeline,
    state: &JobState,
    run: RunId,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let mut next = state.clone();
    if let Some(manual) = state.manual.filter(|manual| manual.run == Some(run)) {
        next.manual = None;
        let record = waiting_record(state.id, manual, Reason::Cancelled, now);
        return Ok(Transition::to(next, TransitionKind::CancelledUnstarted).with(record));
    }
    match state.phase {
        Phase::Executing(held) if held.run == run => {
            next.cancel = Some(CancelledBy::Person);
            Ok(Transition::to(next, TransitionKind::CancelRequested))
        }
        Phase::Prepared(held) if held.run == run => Ok(drop_unstarted(timeline, next, &held, CancelledBy::Person, now)),
        Phase::Idle | Phase::Prepared(_) | Phase::Executing(_) => Err(Rejected::NotHeld(run)),
    }
}

/// Records the held firing as cancelled before its start, and arms the next one.
pub(super) fn drop_unstarted(
    timeline: &Timeline,
    mut next: JobState,
    held: &Held,
    by: CancelledBy,
    now: Timestamp,
) -> Transition {
    let record = drop_held(timeline, &mut next, held, by.reason(), now);
    Transition::to(next, TransitionKind::CancelledUnstarted).with(record)
}

/// Takes a held firing that has not started out of the row, and arms the next one.
pub(super) fn drop_held(
    timeline: &Timeline,
    next: &mut JobState,
    held: &Held,
    reason: Reason,
    now: Timestamp,
) -> Option<RunRecord> {
    next.phase = Phase::Idle;
    next.cancel = None;
    if held.firing.trigger != Trigger::Manual {
        next.arm_after(timeline, held.firing.due_at);
    }
    waiting_record(next.id, held.waiting(), reason, now)
}

pub(super) fn refuse_deleted(state: &JobState) -> Result<(), Rejected> {
    if state.deleted { Err(Rejected::Deleted) } else { Ok(()) }
}

/// Releases a prepared firing of the schedule. Executing runs and manual runs stay.
pub(super) fn release_scheduled(next: &mut JobState) {
    if let Phase::Prepared(held) = next.phase
        && held.firing.trigger != Trigger::Manual
    {
        next.phase = Phase::Idle;
        next.armed = Some(held.firing);
    }
}

/// The records of all due times up to `last` that have neither run nor been recorded. These are the armed one (unless it
/// is a retry), the rest of a backlog, and due times after the cursor. They share one record where no due time between
/// them has a record already.
pub(super) fn skipped_records(
    timeline: &Timeline,
    state: &JobState,
    reason: Reason,
    last: Timestamp,
    now: Timestamp,
) -> Vec<RunRecord> {
    let armed = state.armed.filter(|armed| armed.attempt == 1 && armed.due_at <= last);
    let own = armed.map(|armed| DueRange { count: 1, first: armed.due_at, last: armed.due_at });
    let running = state.phase.held().map(|held| held.firing).filter(|firing| firing.trigger != Trigger::Manual);
    let from = state.armed.or(running).map_or(state.cursor, |firing| firing.due_at);
    let backlog = state.catch_up_until.and_then(|until| policy::due_range(timeline, from, until.min(last)));
    let later = policy::due_range(timeline, state.cursor.max(from), last);
    let before_cursor = own.into_iter().chain(backlog).reduce(DueRange::join);
    let ranges = match (before_cursor, later) {
        // No due time between the two ranges has run or has a record.
        (Some(before), Some(later)) if state.cursor <= before.last => vec![before.join(later)],
        (before, later) => before.into_iter().chain(later).collect(),
    };
    ranges.into_iter().map(|due_range| RunRecord::skipped(state.id, due_range, reason.clone(), now)).collect()
}

/// The record of a firing that did not start; `None` if no run id was drawn for it.
pub(super) fn waiting_record(job: JobId, waiting: Waiting, reason: Reason, now: Timestamp) -> Option<RunRecord> {
    let due = waiting.firing.due_at;
    let cancelled = matches!(reason, Reason::Cancelled | Reason::Replaced);
    let status = if cancelled { Status::Cancelled } else { Status::Skipped };
    let due_range = DueRange { count: 1, first: due, last: due };
    Some(RunRecord {
        id: waiting.run?,
        trigger: waiting.firing.trigger,
        attempt: waiting.firing.attempt,
        status,
        ..RunRecord::skipped(job, due_range, reason, now)
    })
}
