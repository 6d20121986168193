//! Lost commits ([`crate::lost_commits`]): runs that their nodes know are written back. Other firings that may have started are recorded as
//! lost and never started.

use super::control::skipped_records;
use super::{ConcurrentRun, Firing, Held, JobState, Phase, Rejected, Transition, TransitionKind, Waiting};
use crate::guard::{Guard, enabled};
use crate::id::JobId;
use crate::job::{Job, Overlap};
use crate::lost_commits::may_have_started;
use crate::policy;
use crate::run::{Reason, RunRecord, Status, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Takes every such firing out of an Idle row and arms the next one after them. Due times of a pause stay: the pause's
/// end records them, and starts none of them either.
pub(super) fn give_up(
    job: &Job,
    timeline: &Timeline,
    next: &mut JobState,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Vec<RunRecord> {
    let Some(until) = until.filter(|_| enabled(Guard::LostCommitsClaim)) else { return Vec::new() };
    let maybe_started = |firing: &Firing| may_have_started(job, firing.due_at, Some(until));
    let manual = next.manual.take_if(|manual| maybe_started(&manual.firing));
    let mut records: Vec<RunRecord> = manual.map(|manual| lost(next.id, &manual, now)).into_iter().collect();
    if let Some(armed) = next.armed.filter(|armed| next.pause.is_none() && maybe_started(armed)) {
        let attempt = Waiting { run: None, firing: armed };
        records.extend((armed.attempt > 1).then(|| lost(next.id, &attempt, now)));
        let skipped = skipped_records(timeline, next, Reason::CommitsLost, until, now);
        records.extend(skipped.into_iter().map(|record| RunRecord { status: Status::Lost, ..record }));
        next.arm_after(timeline, until);
    }
    records
}

/// The record of one firing that may have started.
pub(super) fn lost(job: JobId, waiting: &Waiting, now: Timestamp) -> RunRecord {
    let Firing { due_at, trigger, attempt, .. } = waiting.firing;
    RunRecord::commits_lost(job, waiting.run, (due_at, trigger, attempt), now)
}

/// Gives a run a row again. A row that waits with the run's own firing holds it as before. Any other row stays as it is: it may wait with an
/// older firing of which nobody knows a run, or belong to another run. Then the run gets a row beside it, which keeps the job's next
/// firings from overlapping with it.
pub(super) fn write_back(job: &Job, timeline: &Timeline, state: &JobState, held: Held) -> Result<Transition, Rejected> {
    if matches!(state.phase, Phase::Executing(of) if of.run == held.run && of.session == held.session) {
        return Err(Rejected::AlreadyHeld(held.run));
    }
    let mut next = state.clone();
    let is_here = take_out(&mut next, &held);
    let Firing { due_at, trigger, .. } = held.firing;
    match trigger {
        Trigger::Manual => next.last_manual_at = next.last_manual_at.max(Some(due_at)),
        Trigger::Schedule | Trigger::Misfire if is_here => next.cursor = next.cursor.max(due_at),
        // Due times before it may be unknown. The row comes to them first, and the claim knows which of them have run.
        Trigger::Schedule | Trigger::Misfire => {}
    }
    let of_backlog = trigger == Trigger::Misfire && next.catch_up_until >= Some(due_at);
    // The end of a manual run decides on due times that passed meanwhile. Here they passed before it began, and some may have run.
    let takes_the_row = trigger != Trigger::Manual && (job.overlap != Overlap::Allow || of_backlog);
    if is_here && takes_the_row {
        (next.phase, next.cancel) = (Phase::Executing(held), None);
        return Ok(Transition::to(next, TransitionKind::WrittenBack));
    }
    if is_here && trigger != Trigger::Manual {
        next.arm_after(timeline, due_at);
    }
    let beside = ConcurrentRun::started(&next, held);
    Ok(Transition { concurrent: Some(beside), ..Transition::to(next, TransitionKind::WrittenBackBeside) })
}

/// Takes the firing out of a row that waits with it or holds it unstarted; answers whether it was there.
fn take_out(next: &mut JobState, held: &Held) -> bool {
    let is_it = |firing: &Firing| firing.is_attempt_of(held.firing.due_at, held.firing.trigger);
    match next.phase {
        Phase::Prepared(prepared) if is_it(&prepared.firing) => {
            next.phase = Phase::Idle;
            true
        }
        Phase::Idle => {
            next.armed.take_if(|armed| is_it(armed)).is_some()
                || next.manual.take_if(|manual| is_it(&manual.firing)).is_some()
        }
        Phase::Prepared(_) | Phase::Executing(_) => false,
    }
}

/// Due times of the schedule that have a run or a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownDue {
    /// The last of them, or the only one.
    pub due_at: Timestamp,
    /// Which attempt.
    pub attempt: u32,
    /// The first of them.
    pub first_due_at: Timestamp,
}

/// Moves an Idle row behind the newest due time that is known. Earlier ones that nobody knows are recorded as lost: nobody starts them after
/// a newer one.
pub(super) fn reconcile(
    timeline: &Timeline,
    state: &JobState,
    known: &[KnownDue],
    now: Timestamp,
) -> Result<Transition, Rejected> {
    let armed = state.armed.filter(|_| state.phase == Phase::Idle).ok_or(Rejected::NothingDue)?;
    let is_armed = |one: &KnownDue| one.due_at == armed.due_at && one.attempt >= armed.attempt;
    let behind = || known.iter().filter(|one| one.due_at > armed.due_at || is_armed(one));
    let newest = behind().map(|one| one.due_at).max().ok_or(Rejected::NothingDue)?;
    let mut records = Vec::new();
    // A first attempt is a due time like the others; a later one has a record of its own.
    let mut from = if armed.attempt == 1 { armed.due_at - Timestamp::TICK } else { armed.due_at };
    if armed.attempt > 1 && !known.iter().any(is_armed) {
        records.push(lost(state.id, &Waiting { run: None, firing: armed }, now));
    }
    for one in behind() {
        if let Some(unknown) = policy::due_range(timeline, from, one.first_due_at - Timestamp::TICK) {
            let skipped = RunRecord::skipped(state.id, unknown, Reason::CommitsLost, now);
            records.push(RunRecord { status: Status::Lost, ..skipped });
        }
        from = from.max(one.due_at);
    }
    let mut next = state.clone();
    next.cursor = next.cursor.max(newest);
    next.arm_after(timeline, newest);
    Ok(Transition::to(next, TransitionKind::Rearmed).with(records))
}
