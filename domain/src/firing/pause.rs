//! Pause and resume. Due times of a pause are recorded and never fired, even while a run goes on or the pause ends by
//! itself.

use super::control::{refuse_deleted, release_scheduled, skipped_records};
use super::{JobState, Pause, Rejected, Transition, TransitionKind};
use crate::guard::{Guard, enabled};
use crate::policy;
use crate::run::{Reason, RunRecord};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Releases a prepared firing of the schedule, so that nothing starts once the call was answered. An executing run goes
/// on, and manual runs are not affected.
pub(super) fn pause(
    state: &JobState,
    until: Option<Timestamp>,
    reason: Option<String>,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    let mut next = state.clone();
    if enabled(Guard::PauseReleases) {
        release_scheduled(&mut next);
    }
    let since = state.pause.as_ref().map_or(now, |pause| pause.since);
    next.pause = Some(Pause { since, until, reason });
    Ok(Transition::to(next, TransitionKind::Paused))
}

/// Records the due times that passed during the pause and arms the next one.
pub(super) fn resume(timeline: &Timeline, state: &JobState, now: Timestamp) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    if state.pause.is_none() {
        return Ok(Transition::to(state.clone(), TransitionKind::Resumed));
    }
    let (next, records) = ended(timeline, state, now, now);
    Ok(Transition::to(next, TransitionKind::Resumed).with(records))
}

/// The row after a pause that ended by itself, and the records of its due times; `None` when there is no such pause. Due
/// times since its end were not paused: the misfire policy decides on them, or the overlap policy while a run lives.
pub(super) fn lapsed(timeline: &Timeline, state: &JobState, now: Timestamp) -> Option<(JobState, Vec<RunRecord>)> {
    let pause = state.pause.as_ref().filter(|_| !state.deleted)?;
    let until = pause.until.filter(|until| *until <= now)?;
    Some(ended(timeline, state, pause.since.max(until - Timestamp::TICK), now))
}

/// Ends a pause whose last paused instant was `last`.
fn ended(timeline: &Timeline, state: &JobState, last: Timestamp, now: Timestamp) -> (JobState, Vec<RunRecord>) {
    let mut next = JobState { pause: None, ..state.clone() };
    let records = skipped_records(timeline, &next, Reason::Paused, last, now);
    let dealt_with = next.cursor.max(last);
    match next.armed {
        // The job's own firing executes, and its end arms the next; or the schedule has ended.
        None => (next.cursor, next.catch_up_until) = (dealt_with, None),
        Some(armed) if armed.attempt > 1 || !records.is_empty() => {
            next.take(policy::next_regular(timeline, dealt_with));
        }
        Some(_) => {}
    }
    (next, records)
}
