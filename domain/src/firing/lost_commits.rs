//! Firings that may have started in lost commits are recorded as lost and never started ([`crate::lost_commits`]).

use super::control::skipped_records;
use super::{Firing, JobState, Waiting};
use crate::guard::{Guard, enabled};
use crate::id::JobId;
use crate::job::Job;
use crate::lost_commits::may_have_started;
use crate::run::{Reason, RunRecord, Status};
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
