//! Pausing: the due times of a pause are recorded, never fired, whoever ends it and whatever runs meanwhile.

use std::time::Duration;

use super::control::{put_back_scheduled, refuse_deleted, unrun_records};
use super::{JobState, Pause, Rejected, Transition, TransitionKind};
use crate::guard::{Guard, enabled};
use crate::policy;
use crate::run::{Reason, RunRecord};
use crate::schedule::Timeline;
use crate::time::Timestamp;

const INSTANT: Duration = Duration::from_millis(1);

/// A running run goes on; a prepared firing goes back, so that nothing starts once the call has been answered. A run that
/// a person asked for is not held up.
pub(super) fn pause(
    state: &JobState,
    until: Option<Timestamp>,
    reason: Option<String>,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    let mut next = state.clone();
    if enabled(Guard::PauseReleases) {
        put_back_scheduled(&mut next);
    }
    let since = state.pause.as_ref().map_or(now, |pause| pause.since);
    next.pause = Some(Pause { since, until, reason });
    Ok(Transition::to(next, TransitionKind::Paused))
}

/// Records the due times that passed during the pause and goes on with the next.
pub(super) fn resume(timeline: &Timeline, state: &JobState, now: Timestamp) -> Result<Transition, Rejected> {
    refuse_deleted(state)?;
    if state.pause.is_none() {
        return Ok(Transition::to(state.clone(), TransitionKind::Resumed));
    }
    let (next, records) = ended(timeline, state, now, now);
    Ok(Transition::to(next, TransitionKind::Resumed).with(records))
}

/// The row after a pause whose end has come, and what it swallowed; `None` when there is no such pause. What came due
/// since then was not paused: it is the misfire policy's, or the overlap policy's while something runs.
pub(super) fn lapsed(timeline: &Timeline, state: &JobState, now: Timestamp) -> Option<(JobState, Vec<RunRecord>)> {
    let pause = state.pause.as_ref().filter(|_| !state.deleted)?;
    let until = pause.until.filter(|until| *until <= now)?;
    Some(ended(timeline, state, pause.since.max(until - INSTANT), now))
}

/// Ends a pause whose last paused instant was `last`.
fn ended(timeline: &Timeline, state: &JobState, last: Timestamp, now: Timestamp) -> (JobState, Vec<RunRecord>) {
    let mut next = JobState { pause: None, ..state.clone() };
    let records = unrun_records(timeline, &next, Reason::Paused, last, now);
    let dealt_with = next.cursor.max(last);
    match next.armed {
        // Its own firing runs (or the schedule has ended): the run's end arms what comes after the pause.
        None => (next.cursor, next.catch_up_until) = (dealt_with, None),
        Some(armed) if armed.attempt > 1 || !records.is_empty() => {
            next.take(policy::next_regular(timeline, dealt_with));
        }
        Some(_) => {}
    }
    (next, records)
}
