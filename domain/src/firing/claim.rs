//! Claim: Idle -> Prepared.

use super::{Firing, Held, JobState, Owner, Phase, Rejected, Transition, TransitionKind, lost_commits};
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::job::Job;
use crate::policy;
use crate::run::{Reason, RunRecord};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Takes the armed firing or the manual one, whichever starts earlier, if it starts by `until`. Before that, firings
/// that may have started in lost commits are recorded, and the misfire policy decides on due times that passed.
pub(super) fn claim(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    owner: Owner,
    (until, losses_until): (Timestamp, Option<Timestamp>),
    now: Timestamp,
) -> Result<Transition, Rejected> {
    if let Some(held) = state.phase.held().filter(|_| enabled(Guard::ClaimIdle)) {
        return Err(Rejected::AlreadyHeld(held.run));
    }
    if state.claim_at().is_none_or(|at| at > until) {
        return Err(Rejected::NothingDue);
    }
    let mut next = state.clone();
    let mut records = lost_commits::give_up(job, timeline, &mut next, losses_until, now);
    records.extend(apply_misfire_policy(job, timeline, &mut next, now));
    let (session, run) = owner;
    let Some((firing, run)) = take_earliest(&mut next, until, run) else {
        if next == *state {
            return Err(Rejected::NothingDue);
        }
        return Ok(Transition::to(next, TransitionKind::Rearmed).with(records));
    };
    next.phase = Phase::Prepared(Held { firing, run, session, started_at: None, fencing_token: 0 });
    Ok(Transition::to(next, TransitionKind::Claimed).with(records))
}

/// Applies the misfire policy to the armed firing, unless it is exempt. Returns the record of the due times that it
/// skips.
pub(super) fn apply_misfire_policy(
    job: &Job,
    timeline: &Timeline,
    next: &mut JobState,
    now: Timestamp,
) -> Option<RunRecord> {
    if next.pause.is_some() {
        return None;
    }
    let armed = next.armed.filter(|armed| !armed.misfire_exempt)?;
    let selection = policy::misfire(timeline, &job.misfire, armed.due_at, now)?;
    let record = selection.skipped.map(|skipped| RunRecord::skipped(next.id, skipped, Reason::Misfire, now));
    next.take(selection);
    record
}

/// Takes the firing that starts first out of the row. Returns it with the id of its run.
fn take_earliest(next: &mut JobState, until: Timestamp, run: RunId) -> Option<(Firing, RunId)> {
    let armed = next.armed.filter(|armed| armed.start_at <= until);
    let armed = armed.filter(|_| next.pause.is_none() || !enabled(Guard::ClaimUnpaused));
    let manual = next.manual.filter(|manual| manual.firing.start_at <= until && !next.in_backoff());
    match (armed, manual) {
        (Some(armed), Some(manual)) if armed.start_at <= manual.firing.start_at => take_armed(next, armed, run),
        (_, Some(manual)) => {
            next.manual = None;
            Some((manual.firing, manual.run.unwrap_or(run)))
        }
        (Some(armed), None) => take_armed(next, armed, run),
        (None, None) => None,
    }
}

fn take_armed(next: &mut JobState, armed: Firing, run: RunId) -> Option<(Firing, RunId)> {
    next.armed = None;
    Some((armed, run))
}
