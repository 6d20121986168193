//! Rows whose runs never started are released; rows of unknown outcome are settled by a write.

use super::located;
use crate::firing::{Event, JobState, Phase};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, SessionId};
use crate::node::port::{RowKey, RunRef, SettleAnswer};
use crate::run::Trigger;
use crate::store::unit_of_work::UnitOfWork;
use crate::store::{Decision, Need, Rows};

/// Prepared or Executing -> Idle, for runs that were never spawned. A row that does not carry the run, or not at the version
/// that was given, is left alone.
pub fn release(session: SessionId, runs: &[RunRef], rows: &Rows) -> Decision<()> {
    rows.require(runs, Need::Stored)?;
    let mut work = UnitOfWork::of(rows);
    for at in runs {
        let at_version = work.phase(&at.row).is_some_and(|(_, version, _)| version == at.version);
        if work.carries(at) && (at_version || !enabled(Guard::ResetVersion)) {
            let _not_mine = work.apply_to(&at.row, &Event::Reset { session, run: at.run });
        }
    }
    Ok(work.decided(()))
}

/// Raises the version of each row, which disarms a stray statement guarded on the old one, then answers what the row says.
pub fn settle(session: SessionId, runs: &[RunRef], rows: &Rows) -> Decision<Vec<SettleAnswer>> {
    rows.require(runs, Need::Stored)?;
    let mut work = UnitOfWork::of(rows);
    let mut located_rows = Vec::with_capacity(runs.len());
    for at in runs {
        if enabled(Guard::SettleDisarms) {
            work.disarm(&at.row, at.version);
        }
        located_rows.push(located(rows, &work, at)?);
    }
    // The job's row tells whether a concurrent run was withdrawn.
    rows.require_jobs(jobs_of_concurrent(&located_rows))?;
    let found = runs.iter().zip(&located_rows).map(|(at, row)| found(&work, session, at, row)).collect();
    Ok(work.decided(found))
}

fn jobs_of_concurrent(rows: &[RowKey]) -> Vec<JobId> {
    let job = |row: &RowKey| match row {
        RowKey::Concurrent(key) => Some(key.job),
        RowKey::Job(_) => None,
    };
    rows.iter().filter_map(job).collect()
}

/// The finding of a settling write.
pub(super) fn found(work: &UnitOfWork, session: SessionId, at: &RunRef, row: &RowKey) -> SettleAnswer {
    match work.phase(row) {
        Some((Phase::Prepared(held), ..)) if held.run == at.run && held.session == session => {
            work.claimed(row).map_or(SettleAnswer::Gone, SettleAnswer::Prepared)
        }
        Some((Phase::Executing(held), version, _)) if held.run == at.run && held.session == session => {
            SettleAnswer::Executing {
                at: RunRef { row: *row, run: at.run, version },
                held,
                replace_at: work.replace_at(row),
                withdrawn: withdrawn(work, row, held.firing.trigger),
            }
        }
        _ => SettleAnswer::Gone,
    }
}

/// Deleted, cancelled, or, unless a person asked for the run, paused.
fn withdrawn(work: &UnitOfWork, row: &RowKey, trigger: Trigger) -> bool {
    if !enabled(Guard::SettleRechecks) {
        return false;
    }
    let paused = |state: &JobState| state.pause.is_some() && trigger != Trigger::Manual;
    match row {
        RowKey::Job(id) => {
            work.job(*id).is_none_or(|(state, _)| state.deleted || state.cancel.is_some() || paused(state))
        }
        RowKey::Concurrent(key) => {
            work.concurrent(key).is_none_or(|(row, _)| row.withdrawn || row.cancel.is_some())
                || work.job(key.job).is_none_or(|(state, _)| paused(state))
        }
    }
}
